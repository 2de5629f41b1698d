import pytest

from agentbench.exceptions import ValidationTypeEnum
from agentbench.workflows.builder.nodes import Designation, resolve_designation
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.graph.validation import OutputDesignation, designation_errors
from tests.parts.errors import raises


def node(key, **declared):
    return FunctionExecutor(lambda m: None, key, input=str, **declared)


A, B, C = (node(key, workflow_output=str) for key in "abc")
MUTE = node("mute")
EXECUTORS = {each.id: each for each in (A, B, MUTE, C)}


def outputs(value=None):
    return Designation("output_from", ("all",), value)


def intermediate(value=None):
    return Designation("intermediate_output_from", ("all_other", "all"), value)


def resolve(first=None, second=None):
    return resolve_designation(outputs(first), intermediate(second), EXECUTORS, lambda each: each.id)


@pytest.mark.parametrize(
    ("first", "second", "output_ids", "intermediate_ids"),
    [
        (None, None, None, None),
        ("all", "all_other", ("a", "b", "c"), ()),
        (A, None, ("a",), ()),
        ([A], [B], ("a",), ("b",)),
        ([A], "all_other", ("a",), ("b", "c")),
        (None, "all", (), ("a", "b", "c")),
        ([], "all_other", (), ("a", "b", "c")),
        (None, [B], (), ("b",)),
    ],
)
def test_designations_expand_to_ids_in_builder_order(first, second, output_ids, intermediate_ids):
    designation = resolve(first, second)
    assert designation == OutputDesignation(output_ids, intermediate_ids)
    assert designation_errors(EXECUTORS, designation) == []


@pytest.mark.parametrize(
    ("first", "second", "complaints"),
    [
        ([], None, ["no output would ever leave"]),
        (None, [], ["no output would ever leave"]),
        ([], [], ["no output would ever leave"]),
        ([A, B, A], None, ["output_from names ['a'] more than once"]),
        ([A], [B, B], ["intermediate_output_from names ['b']"]),
        ([A, B], [B], ["['b'] are designated both"]),
        ([A], "all", ["['a'] are designated both"]),
        ([node("stranger")], None, ["'stranger' is designated for outputs, but is not part"]),
        ([A], [MUTE], ["'mute' is designated for outputs, but declares none"]),
        ([A, A, MUTE], [A], ["more than once", "designated both", "'mute'"]),
    ],
)
def test_everything_that_is_wrong_with_a_designation_is_reported(first, second, complaints):
    errors = designation_errors(EXECUTORS, resolve(first, second))
    assert {error.validation_type for error in errors} == {ValidationTypeEnum.OUTPUT_VALIDATION}
    assert all(complaint in error.message for error, complaint in zip(errors, complaints, strict=True))


def test_an_unknown_word_is_refused_at_once():
    for make in (outputs, intermediate):
        with raises(ValueError, "'everything'"):
            make("everything")
    with raises(ValueError, "output_from='all_other'"):
        outputs("all_other")


def test_nodes_can_be_added_to_a_list_and_a_word_where_nothing_was_named():
    designation = outputs([A])
    designation.add([B])
    designation.add([C])
    assert designation.value == [A, B, C]
    word = intermediate()
    word.add(["all_other"])
    assert word.value == "all_other"


def test_a_list_cannot_be_added_to_a_word_nor_a_word_to_a_list():
    with raises(ValueError, "either"):
        outputs("all").add([A])
    with raises(ValueError, "'all'"):
        outputs([A]).add(["all"])
