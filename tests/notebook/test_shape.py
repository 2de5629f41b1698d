import gc
import itertools
import weakref

from hypothesis import strategies as st

from agentbench import WorkflowBuilder
from agentbench.notebook.graph.shape import GraphShape, back_edges, read_shape
from tests.notebook import graphs
from tests.parts.errors import raises

NODES = [str(index) for index in range(7)]
EDGES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), max_size=25)


def kinds(shape: GraphShape) -> dict[str, str]:
    return {f"{edge.source}->{edge.target}": edge.kind for edge in shape.edges}


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


def test_switches_selections_and_joins_are_distinguished():
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


def test_sub_workflows_are_closed_unless_they_are_to_be_opened():
    closed = read_shape(graphs.nested())
    assert [node.id for node in closed.nodes] == ["before", "middle", "after"]
    assert closed.nodes[1].kinds == ("subworkflow",)
    opened = read_shape(graphs.nested(), expand=["middle"])
    assert [node.id for node in opened.nodes] == ["before", "middle/in", "middle/deep", "middle/out", "after"]
    assert [frame.id for frame in opened.frames] == ["middle"]
    everything = read_shape(graphs.nested(), expand=True)
    assert [frame.id for frame in everything.frames] == ["middle", "middle/deep"]
    assert [node.frame for node in everything.nodes if node.name == "x"] == ["middle/deep"]


def test_a_workflow_without_a_reference_is_forgotten():
    workflow = graphs.research()
    read_shape(workflow)
    gone = weakref.ref(workflow)
    del workflow
    gc.collect()
    assert gone() is None


def test_what_holds_no_graph_is_refused_with_advice():
    with raises(TypeError, "int", "workflow"):
        read_shape(3)
    with raises(TypeError, ".build()"):
        read_shape(WorkflowBuilder(start_executor=graphs.Step("a")))


def test_long_chains_need_no_deep_stack():
    nodes = [str(index) for index in range(5000)]
    edges = list(itertools.pairwise(nodes))
    assert back_edges(nodes, [*edges, (nodes[-1], nodes[0])]) == {(nodes[-1], nodes[0])}
