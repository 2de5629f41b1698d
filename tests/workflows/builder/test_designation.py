import pytest

from agentbench.exceptions import ValidationTypeEnum
from agentbench.workflows.builder.designation import Designation, resolve_designation
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.graph.validation import OutputDesignation, designation_errors


def quiet(key):
    return FunctionExecutor(lambda m: None, key, input=str)


def speaking(key):
    return FunctionExecutor(lambda m: None, key, input=str, workflow_output=str)


A, B, C, MUTE = speaking("a"), speaking("b"), speaking("c"), quiet("mute")
EXECUTORS = {node.id: node for node in (A, B, MUTE, C)}


def outputs(given=None):
    return Designation("output_from", ("all",), given)


def intermediate(given=None):
    return Designation("intermediate_output_from", ("all_other", "all"), given)


def resolve(first=None, second=None):
    return resolve_designation(outputs(first), intermediate(second), EXECUTORS, lambda node: node.id)


def messages(first=None, second=None):
    errors = designation_errors(EXECUTORS, resolve(first, second))
    assert all(error.validation_type is ValidationTypeEnum.OUTPUT_VALIDATION for error in errors)
    return [error.message for error in errors]


@pytest.mark.parametrize(
    ("first", "second", "output_ids", "intermediate_ids"),
    [
        (None, None, None, None),
        (None, [], None, None),
        ("all", None, ("a", "b", "c"), ()),
        ("all", "all_other", ("a", "b", "c"), ()),
        ([A], None, ("a",), ()),
        (A, None, ("a",), ()),
        ([A], [B], ("a",), ("b",)),
        ([A], "all_other", ("a",), ("b", "c")),
        (None, "all_other", (), ("a", "b", "c")),
        (None, "all", (), ("a", "b", "c")),
        ([], "all_other", (), ("a", "b", "c")),
        ([], "all", (), ("a", "b", "c")),
        ([], [B], (), ("b",)),
        (None, [B], (), ("b",)),
    ],
)
def test_designations_expand_to_ids_in_builder_order(first, second, output_ids, intermediate_ids):
    assert resolve(first, second) == OutputDesignation(output_ids, intermediate_ids)
    assert messages(first, second) == []


@pytest.mark.parametrize("second", [None, []])
def test_an_empty_list_and_nothing_else_designates_nothing_and_is_refused(second):
    (message,) = messages([], second)
    assert "no output would ever leave" in message


def test_an_executor_that_is_named_twice_is_refused():
    (message,) = messages([A, B, A])
    assert message.startswith("output_from names ['a'] more than once")
    (message,) = messages([A], [B, B])
    assert message.startswith("intermediate_output_from names ['b']")


def test_an_executor_in_both_lists_is_refused():
    (message,) = messages([A, B], [B])
    assert "['b'] are designated both" in message


def test_all_as_intermediate_beside_a_list_overlaps_with_it():
    (message,) = messages([A], "all")
    assert "['a'] are designated both" in message


def test_an_executor_outside_the_workflow_is_refused_and_the_known_ones_are_named():
    (message,) = messages([speaking("stranger")])
    assert "'stranger'" in message
    assert "['a', 'b', 'c', 'mute']" in message


def test_an_executor_that_declares_no_outputs_is_refused():
    (message,) = messages([A], [MUTE])
    assert "'mute'" in message
    assert "WorkflowContext[Sent, Yielded]" in message


def test_every_problem_is_reported():
    assert len(messages([A, A, MUTE], [A])) == 3


@pytest.mark.parametrize("make", [outputs, intermediate])
def test_an_unknown_word_is_refused_at_once(make):
    with pytest.raises(ValueError, match="'everything' is not known"):
        make("everything")


def test_all_other_is_no_word_for_outputs():
    with pytest.raises(ValueError, match="output_from='all_other'"):
        outputs("all_other")


def test_nodes_can_be_added_to_a_list_one_by_one():
    designation = outputs([A])
    designation.add([B])
    designation.add([C])
    assert designation.entries == [A, B, C]


def test_a_word_can_be_added_where_nothing_was_named():
    designation = intermediate()
    assert designation.is_open
    designation.add(["all_other"])
    assert not designation.is_open
    assert designation.word == "all_other"


def test_a_list_cannot_be_added_to_a_word_nor_a_word_to_a_list():
    with pytest.raises(ValueError, match="either the word or a list"):
        outputs("all").add([A])
    with pytest.raises(ValueError, match="either 'all' or a list"):
        outputs([A]).add(["all"])
