import functools
import gc
import itertools
import weakref
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.shape import GraphShape, back_edges, path_lengths, read_shape, running_order
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.graph.edges import Case, Default
from tests.notebook import graphs

NODES = [str(index) for index in range(7)]
EDGES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=25)


def kinds(shape: GraphShape) -> dict[str, str]:
    return {f"{edge.source}->{edge.target}": edge.kind for edge in shape.edges}


def test_nodes_come_in_builder_order_with_their_kinds():
    shape = read_shape(graphs.research())
    assert [node.id for node in shape.nodes] == ["plan", "search", "draft", "review", "publish"]
    assert [node.kinds for node in shape.nodes] == [("start",), (), (), ("hitl",), ("output",)]


def test_edges_have_kinds_and_labels():
    shape = read_shape(graphs.research())
    assert kinds(shape) == {
        "plan->search": "direct",
        "search->draft": "direct",
        "draft->review": "conditional",
        "review->publish": "direct",
        "review->draft": "loop",
    }
    assert [edge.label for edge in shape.edges if edge.label] == ["if needs_review", "if score_low"]


def test_switches_selections_and_joins_are_told_apart():
    shape = read_shape(graphs.desk())
    assert kinds(shape) == {
        "intake->spam_bin": "switch",
        "intake->triage": "switch",
        "triage->billing": "fan_out",
        "triage->sales": "fan_out",
        "billing->merge": "fan_in",
        "sales->merge": "fan_in",
    }
    assert [edge.label for edge in shape.edges] == ["if is_spam", "default", "by pick", "by pick", "", ""]


def test_nameless_conditions_are_called_by_what_they_compute():
    first, second, third = graphs.Step("a"), graphs.Step("b"), graphs.Step("c")
    workflow = (
        WorkflowBuilder(start_executor=first)
        .add_edge(first, second, condition=lambda draft: draft.score < 0.5)
        .add_switch_case_edge_group(second, [Case(lambda draft: draft.is_spam, first), Default(third)])
        .add_edge(first, third, condition=functools.partial(graphs.needs_review, "x"))
        .build()
    )
    labels = {f"{edge.source}->{edge.target}": edge.label for edge in read_shape(workflow).edges}
    assert labels == {"a->b": "if score < 0.5", "b->a": "if is_spam", "b->c": "default", "a->c": "if λ"}


def test_sub_workflows_are_closed_unless_they_are_asked_for():
    closed = read_shape(graphs.nested())
    assert [node.id for node in closed.nodes] == ["before", "middle", "after"]
    assert closed.nodes[1].kinds == ("subworkflow",)
    opened = read_shape(graphs.nested(), expand=["middle"])
    assert [node.id for node in opened.nodes] == ["before", "middle/in", "middle/deep", "middle/out", "after"]
    assert [frame.id for frame in opened.frames] == ["middle"]
    everything = read_shape(graphs.nested(), expand=True)
    assert [frame.id for frame in everything.frames] == ["middle", "middle/deep"]
    assert [node.frame for node in everything.nodes if node.name == "x"] == ["middle/deep"]


def test_every_element_has_one_id_by_position():
    shape = read_shape(graphs.nested(), expand=["middle"])
    assert shape.element_of["before"] == "n0"
    assert shape.element_of["middle"] == "c0"
    assert shape.element_of["before", "middle"] == "e0"
    assert shape.node_of["c0"].id == "middle"
    assert len(set(shape.element_of.values())) == len(shape.element_of)


def test_generated_names_do_not_show():
    assert read_shape(graphs.chain(["a", "b"], name="mine")).name == "mine"
    nameless = WorkflowBuilder(start_executor=graphs.Step("a")).build()
    assert read_shape(nameless).name == "workflow"


def test_a_run_and_a_shape_are_sources_too():
    workflow = graphs.research()
    shape = read_shape(workflow)
    assert read_shape(SimpleNamespace(workflow=workflow)).nodes == shape.nodes
    assert read_shape(shape) is shape


def test_the_shape_of_a_workflow_is_read_once():
    workflow = graphs.research()
    shape = read_shape(workflow)
    assert read_shape(workflow) is shape


def test_a_workflow_that_nobody_holds_any_more_is_forgotten():
    workflow = graphs.research()
    read_shape(workflow)
    gone = weakref.ref(workflow)
    del workflow
    gc.collect()
    assert gone() is None


def test_what_only_looks_like_a_workflow_can_be_drawn_too():
    facts = {name: getattr(graphs.research(), name) for name in ("executors", "edge_groups", "get_output_executors")}
    assert len(read_shape(SimpleNamespace(**facts, __hash__=None)).nodes) == 5


def test_what_holds_no_graph_is_refused_with_advice():
    with pytest.raises(TypeError, match="Cannot draw int: expected a workflow"):
        read_shape(3)
    with pytest.raises(TypeError, match=r"Call \.build\(\) first"):
        read_shape(WorkflowBuilder(start_executor=graphs.Step("a")))


@given(EDGES)
def test_without_its_back_edges_a_graph_has_no_loop(edges):
    back = back_edges(NODES, edges)
    forward = [edge for edge in edges if edge not in back]
    place = {node: index for index, node in enumerate(running_order(NODES, forward))}
    assert sorted(place) == NODES
    assert all(place[source] < place[target] for source, target in forward)


@given(EDGES)
def test_a_path_is_longer_at_each_edge(edges):
    back = back_edges(NODES, edges)
    forward = [edge for edge in edges if edge not in back]
    lengths = path_lengths(NODES, forward)
    assert all(lengths[source] < lengths[target] for source, target in forward)
    assert min(lengths.values()) == 0


def test_long_chains_need_no_deep_stack():
    nodes = [str(index) for index in range(5000)]
    edges = list(itertools.pairwise(nodes))
    assert back_edges(nodes, [*edges, (nodes[-1], nodes[0])]) == {(nodes[-1], nodes[0])}
