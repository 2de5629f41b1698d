import pytest

from agentbench.exceptions import GraphConnectivityError, ValidationTypeEnum
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.selection import FanOutEdgeGroup
from agentbench.workflows.graph.validation import infer_starts


def starts(ids, *groups, **options):
    return infer_starts({key: Executor(key, defer_discovery=True) for key in ids}, groups, **options)


def test_the_only_node_that_nothing_leads_to_is_the_start():
    assert starts("cba", SingleEdgeGroup("a", "b"), SingleEdgeGroup("b", "c")) == ("a",)
    assert starts("a") == ("a",)


def test_an_edge_to_itself_does_not_disqualify_a_start():
    assert starts("ab", SingleEdgeGroup("a", "a"), SingleEdgeGroup("a", "b")) == ("a",)


def test_on_a_pure_cycle_the_first_added_node_is_the_start():
    assert starts("bac", SingleEdgeGroup("a", "b"), SingleEdgeGroup("b", "c"), SingleEdgeGroup("c", "a")) == ("b",)


def test_nodes_that_feed_one_fan_in_start_together_in_the_order_of_adding():
    assert starts("bac", FanInEdgeGroup(["a", "b"], "c")) == ("b", "a")


def test_roots_that_hang_together_through_several_steps_start_together():
    groups = [SingleEdgeGroup("a", "m"), FanInEdgeGroup(["m", "b"], "t")]
    assert starts("ambt", *groups) == ("a", "b")


def test_a_root_that_feeds_no_fan_in_is_refused_and_named():
    with pytest.raises(GraphConnectivityError, match=r"\['b', 'z'\]") as caught:
        starts("azbc", SingleEdgeGroup("a", "c"), SingleEdgeGroup("b", "c"))
    assert caught.value.validation_type is ValidationTypeEnum.GRAPH_CONNECTIVITY
    assert "set_start()" in caught.value.message


def test_a_fan_in_that_does_not_hang_together_with_the_start_is_refused():
    with pytest.raises(GraphConnectivityError, match=r"\['x', 'y'\]"):
        starts("abxyz", FanOutEdgeGroup("a", ["b", "c"]), FanInEdgeGroup(["x", "y"], "z"))


def test_without_the_check_further_roots_are_left_out():
    assert starts("azb", SingleEdgeGroup("a", "b"), check_roots=False) == ("a",)
    assert starts("abzc", FanInEdgeGroup(["a", "b"], "c"), check_roots=False) == ("a", "b")


def test_a_graph_without_nodes_has_no_start():
    with pytest.raises(ValueError, match="no executors"):
        starts("")
