import logging
from typing import Any, Never

import pytest

from agentbench.exceptions import (
    EdgeDuplicationError,
    GraphConnectivityError,
    TypeCompatibilityError,
    ValidationTypeEnum,
    WorkflowValidationError,
    WorkflowWarning,
)
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor, executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.selection import FanOutEdgeGroup
from agentbench.workflows.graph.validation import (
    WorkflowGraphValidator,
    infer_starts,
    validate_workflow_graph,
)
from tests.parts.errors import raises


class Base:
    pass


class Sub(Base):
    pass


class Silent(Executor):
    """Declares nothing."""

    def __init__(self, key):
        super().__init__(key, defer_discovery=True)


def node(key, takes=str, sends=str, yields=None):
    declared = {"input": takes, "output": sends} | ({} if yields is None else {"workflow_output": yields})
    return FunctionExecutor(lambda message: None, key, **declared)


def by_id(*executors):
    return {executor.id: executor for executor in executors}


def validate(groups, *executors, start="a", outputs=None, intermediate=None):
    validate_workflow_graph(groups, by_id(*executors), start, outputs, intermediate)


def one_edge(sends, takes):
    validate([SingleEdgeGroup("a", "b")], node("a", sends=sends), node("b", takes=takes))


# ---------------------------------------------------------------------------------------------------- start and ends


def test_a_start_or_an_end_outside_the_graph_is_refused():
    for start in ("z", node("z")):
        with raises(GraphConnectivityError, "'z'", "['a']"):
            validate([], node("a"), start=start)
    with raises(GraphConnectivityError, "'a->z'", "'z'"):
        validate([SingleEdgeGroup("a", "z")], node("a"))


def test_a_single_node_is_a_graph_and_internal_edges_are_not_checked():
    validate([], node("a"))
    validate([InternalEdgeGroup("a")], node("a", takes=str, sends=int), start=node("a"))


# --------------------------------------------------------------------------------------------------------- duplicates


@pytest.mark.parametrize(
    "groups",
    [
        [SingleEdgeGroup("a", "b", bool), SingleEdgeGroup("a", "b", callable)],
        [SingleEdgeGroup("a", "b"), FanOutEdgeGroup("a", ["b", "c"])],
        [FanInEdgeGroup(["a", "c"], "b"), SingleEdgeGroup("a", "b"), SingleEdgeGroup("a", "c")],
        [SingleEdgeGroup("a", "b")] * 3,
    ],
    ids=["other condition", "in a fan-out", "in a fan-in", "three times"],
)
def test_edges_between_the_same_executors_are_refused_once_over_all_groups(groups):
    with pytest.raises(EdgeDuplicationError) as caught:
        validate(groups, node("a"), node("b"), node("c"))
    assert [e.edge_id for e in caught.value.all_errors if isinstance(e, EdgeDuplicationError)] == ["a->b"]
    assert str(caught.value).startswith("[EDGE_DUPLICATION] ")


# -------------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(("sends", "takes"), [(int | str, str), (str, str | int), (Sub, Base), (Any, str), (str, Any)])
def test_types_that_share_something_pass(sends, takes):
    one_edge(sends, takes)


def test_types_that_share_nothing_are_refused_with_both_ends_and_their_types():
    for sends, takes in ((Base, Sub), (int | bytes, str), (list[int], list[str])):
        with pytest.raises(TypeCompatibilityError):
            one_edge(sends, takes)
    with pytest.raises(TypeCompatibilityError) as caught:
        one_edge(int, str)
    error = caught.value
    assert "'a' sends int, but 'b' takes str" in str(error)
    with raises(TypeCompatibilityError, "list[Base", "str]"):
        one_edge(int, list[Base | str])
    assert (error.source_executor_id, error.target_executor_id) == ("a", "b")
    assert (error.source_types, error.target_types) == ([int], [str])
    assert error.validation_type is ValidationTypeEnum.TYPE_COMPATIBILITY


def fan_in(first, second, takes, mode="auto"):
    groups = [FanOutEdgeGroup("a", ["b", "c"]), FanInEdgeGroup(["b", "c"], "d", mode=mode)]
    validate(groups, node("a"), node("b", sends=first), node("c", sends=second), node("d", takes=takes))


@pytest.mark.parametrize(
    ("first", "second", "takes", "mode"),
    [
        (str, int, list[str | int], "auto"),
        (str, int, str | int, "auto"),
        (str, str, str, "independent"),
        (str, int, list, "barrier"),
        (Any, Any, list[str], "auto"),  # the first message decides
    ],
)
def test_a_fan_in_is_checked_in_the_form_in_which_it_delivers(first, second, takes, mode):
    fan_in(first, second, takes, mode)


@pytest.mark.parametrize(
    ("first", "second", "takes", "mode"),
    [
        (str, str, list[int], "auto"),
        (str, str, str, "barrier"),
        (str, str, list[str], "independent"),
        (str, int, list[str], "auto"),
    ],
)
def test_a_fan_in_that_would_deliver_nothing_is_refused(first, second, takes, mode):
    with pytest.raises(TypeCompatibilityError):
        fan_in(first, second, takes, mode)


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        (Silent("a"), node("b"), "'a' has outgoing edges, but declares no type"),
        (node("a"), Silent("b"), "'b' declares no type that it takes"),
    ],
)
def test_an_end_that_declares_nothing_is_logged_and_not_checked(first, second, complaint, caplog):
    with caplog.at_level(logging.WARNING):
        validate([SingleEdgeGroup("a", "b")], first, second)
    assert complaint in caplog.text


@executor
async def show(text: str, ctx: WorkflowContext[Never, str]) -> None: ...


@executor
async def bare(text: str, ctx: WorkflowContext) -> None: ...


class Asks(Executor):
    """Sends only when it has an answer."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never]) -> None: ...

    @response_handler
    async def decide(self, text: str, answer: bool, ctx: WorkflowContext[str]) -> None: ...


class Shows(Executor):
    @handler
    async def text(self, text: str, ctx: WorkflowContext[Never]) -> None: ...

    @handler
    async def number(self, number: int, ctx: WorkflowContext[Never, str]) -> None: ...


@pytest.mark.parametrize("source", [show, Shows("show")], ids=["function", "class"])
def test_an_edge_from_an_executor_that_declares_never_is_warned_about(source, caplog):
    with pytest.warns(WorkflowWarning, match=r"'show->b'.*WorkflowContext\[str\]") as caught:
        validate([SingleEdgeGroup("show", "b")], source, node("b"), start="show")
    assert [warning.filename for warning in caught] == [__file__]
    assert not caplog.records


@pytest.mark.parametrize(
    "source", [bare, Asks("asks"), Silent("silent"), FunctionExecutor(lambda text: None, "plain", input=str)]
)
def test_an_executor_that_may_send_or_declares_nothing_is_not_warned_about(source, recwarn):
    validate([SingleEdgeGroup(source.id, "b")], source, node("b"), start=source.id)
    assert not recwarn.list


# ------------------------------------------------------------------------------------------------------- connectivity


@pytest.mark.parametrize(
    ("edges", "unreachable"),
    [(["ab"], ["c", "d"]), (["ab", "cb", "bd"], ["c"]), (["ab", "cd", "dc"], ["c", "d"])],
    ids=["isolated", "backwards", "a cycle of its own"],
)
def test_executors_that_cannot_be_reached_are_listed_sorted(edges, unreachable):
    groups = [SingleEdgeGroup(*ends) for ends in edges]
    with pytest.raises(GraphConnectivityError) as caught:
        validate(groups, *map(node, "adcb"))
    assert str(unreachable) in caught.value.message


# ----------------------------------------------------------------------------------------------------- logs, outputs


def test_an_edge_to_itself_is_legal_and_warned_about(caplog):
    with caplog.at_level(logging.WARNING):
        validate([SingleEdgeGroup("a", "a")], node("a"))
    assert "'a' has an edge to itself" in caplog.text


# ------------------------------------------------------------------------------------------------------ order and all


def test_the_first_breach_is_raised_and_carries_all_others_in_the_order_of_the_rules():
    groups: list[EdgeGroup] = [SingleEdgeGroup("a", "b"), SingleEdgeGroup("a", "b")]
    with pytest.raises(EdgeDuplicationError) as caught:
        validate(groups, node("a", sends=int), node("b"), node("c"), outputs=["c"])
    kinds = [type(error) for error in caught.value.all_errors]
    assert kinds == [
        EdgeDuplicationError,
        TypeCompatibilityError,
        TypeCompatibilityError,
        GraphConnectivityError,
        WorkflowValidationError,
    ]
    assert caught.value.all_errors[0] is caught.value


def test_a_rule_can_be_replaced_by_overriding_the_check():
    class Lenient(WorkflowGraphValidator):
        def check(self, edge_groups, executors, start_executor_ids, designation):
            return [
                error
                for error in super().check(edge_groups, executors, start_executor_ids, designation)
                if error.validation_type is not ValidationTypeEnum.GRAPH_CONNECTIVITY
            ]

    Lenient().validate_workflow([], by_id(node("a"), node("b")), "a")


# ----------------------------------------------------------------------------------------------------------- the start


def starts(ids, *groups, **options):
    return infer_starts({key: Executor(key, defer_discovery=True) for key in ids}, groups, **options)


def test_the_only_node_that_nothing_leads_to_is_the_start():
    assert starts("cba", SingleEdgeGroup("a", "b"), SingleEdgeGroup("b", "c")) == ("a",)
    assert starts("ab", SingleEdgeGroup("a", "a"), SingleEdgeGroup("a", "b")) == ("a",)  # not even itself


def test_on_a_pure_cycle_the_first_added_node_is_the_start():
    assert starts("bac", SingleEdgeGroup("a", "b"), SingleEdgeGroup("b", "c"), SingleEdgeGroup("c", "a")) == ("b",)


def test_roots_that_feed_a_fan_in_and_are_connected_start_together_in_the_order_of_adding():
    assert starts("bac", FanInEdgeGroup(["a", "b"], "c")) == ("b", "a")
    groups = [SingleEdgeGroup("a", "m"), FanInEdgeGroup(["m", "b"], "t")]
    assert starts("ambt", *groups) == ("a", "b")


def test_a_root_that_feeds_no_fan_in_is_refused_and_named():
    with raises(GraphConnectivityError, "'b'", "'z'") as caught:
        starts("azbc", SingleEdgeGroup("a", "c"), SingleEdgeGroup("b", "c"))
    assert caught.value.validation_type is ValidationTypeEnum.GRAPH_CONNECTIVITY
    assert "set_start()" in caught.value.message


def test_a_fan_in_that_is_not_connected_with_the_start_is_refused():
    with raises(GraphConnectivityError, "'x'", "'y'"):
        starts("abxyz", FanOutEdgeGroup("a", ["b", "c"]), FanInEdgeGroup(["x", "y"], "z"))


def test_without_the_check_further_roots_are_left_out():
    assert starts("azb", SingleEdgeGroup("a", "b"), check_roots=False) == ("a",)
    assert starts("abzc", FanInEdgeGroup(["a", "b"], "c"), check_roots=False) == ("a", "b")


def test_a_graph_without_nodes_has_no_start():
    with raises(ValueError, "executors"):
        starts("")
