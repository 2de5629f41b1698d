import gc
import itertools
import re
import weakref

import pytest
from hypothesis import strategies as st

from agentbench import WorkflowBuilder, WorkflowErrorDetails, WorkflowEvent
from agentbench.notebook.graph.folding import MAX_NODES, fit, fold_siblings, neighbourhood
from agentbench.notebook.graph.text import MAX_LINES, shape_mermaid, shape_text
from agentbench.notebook.history.overlay import read_states
from agentbench.workflows.draw.shape import GraphShape, NodeKind, ShapeEdge, ShapeNode, back_edges, read_shape
from tests.notebook import graphs
from tests.notebook.attacks import ATTACKS
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


# ---- shape text


def test_a_graph_reads_as_a_list_of_neighbours():
    states = {"plan": "done", "review": "waiting", "draft": "idle"}
    assert shape_text(read_shape(graphs.research()), states).splitlines() == [
        "research-flow: 5 nodes, 5 edges",
        "plan (start) [done] -> search",
        "search -> draft",
        "draft -> review [if needs_review]",
        "review (asks a person) [waiting] -> publish, draft [loop if score_low]",
        "publish (output)",
    ]


def test_a_long_list_is_cut_and_says_so():
    lines = shape_text(read_shape(graphs.layers(100))).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[-1] == "… 42 more nodes, not listed here"


def test_a_long_list_keeps_what_wants_attention():
    states = {"step_0090": "failed", "step_0095": "running", "step_0099": "done", "step_0003": "waiting"}
    lines = shape_text(read_shape(graphs.layers(100)), states).splitlines()
    assert len(lines) == MAX_LINES
    assert [line for line in lines if "[" in line] == [
        "step_0003 [waiting] -> step_0013",
        "step_0090 [failed]",
        "step_0095 [running]",
    ]
    assert lines[1].startswith("step_0000 (start)")


def test_mermaid_names_positions_and_shows_kinds():
    assert shape_mermaid(read_shape(graphs.research())).splitlines() == [
        "flowchart LR",
        '  n0(["plan"])',
        '  n1["search"]',
        '  n2["draft"]',
        '  n3{{"review"}}',
        '  n4["publish"]',
        "  n0 --> n1",
        "  n1 --> n2",
        '  n2 -.->|"if needs_review"| n3',
        "  n3 --> n4",
        '  n3 -->|"if score_low"| n2',
    ]


def test_hostile_names_stay_inside_their_line_and_their_quotes():
    nodes = tuple(ShapeNode(id=attack, name=attack) for attack in ATTACKS)
    edges = tuple(ShapeEdge(source=attack, target=ATTACKS[0], label=attack) for attack in ATTACKS[1:])
    shape = GraphShape(name=ATTACKS[0], nodes=nodes, edges=edges)
    assert len(shape_text(shape).splitlines()) == len(ATTACKS) + 1
    for line in shape_mermaid(shape).splitlines()[1:]:
        assert re.fullmatch(r'  n\d+\["[\w .,:()/+\-#;]*"\]|  n\d+ -->(\|"[\w .,:()/+\-#;]*"\|)? n\d+', line), line


# ---- folding


def names(shape: GraphShape) -> list[str]:
    return [node.name for node in shape.nodes]


def shape_of(*pairs: tuple[str, str], **kinds: tuple[NodeKind, ...]) -> GraphShape:
    ids = dict.fromkeys(end for pair in pairs for end in pair)
    nodes = tuple(ShapeNode(id=each, name=each, kinds=kinds.get(each, ())) for each in ids)
    return GraphShape(nodes=nodes, edges=tuple(ShapeEdge(source=a, target=b) for a, b in pairs))


def test_look_alikes_become_one_node_that_knows_its_members():
    shape = fit(read_shape(graphs.farm(400)), max_nodes=300)
    assert names(shape) == ["split", "worker × 400", "join", "report"]  # noqa: RUF001
    assert len(shape.nodes[1].members) == 400
    assert [(edge.source, edge.target) for edge in shape.edges] == [
        ("split", "worker_0 × 400"),  # noqa: RUF001
        ("worker_0 × 400", "join"),  # noqa: RUF001
        ("join", "report"),
    ]
    assert shape.element_of["worker_17"] == shape.element_of[shape.nodes[1].id] == "n1"
    assert shape.element(("split", "worker_3")) == "e0"
    assert "400 similar nodes are folded into 1" in shape.note


def test_a_group_is_opened_by_its_id_or_by_a_member():
    whole = read_shape(graphs.farm(5))
    for key in ("worker_0 × 5", "worker_3"):  # noqa: RUF001
        assert len(fold_siblings(whole, expand=[key]).nodes) == len(whole.nodes)


def test_dense_graphs_are_folded_before_their_number_says_so():
    ids = [f"n{index}" for index in range(130)]
    dense = shape_of(*[("s", each) for each in ids], *[(each, f"t{k}") for each in ids for k in range(9)])
    assert len(fit(dense, max_nodes=300).nodes) < 20
    assert len(fit(dense, max_nodes=1000).nodes) == len(dense.nodes)


def test_opened_sub_workflows_are_closed_again_until_the_rest_can_be_drawn():
    whole = read_shape(graphs.nested(), expand=True)
    assert [frame.id for frame in whole.frames] == ["middle", "middle/deep"]
    shape = fit(whole, max_nodes=5)
    assert [node.id for node in shape.nodes] == ["before", "middle/in", "middle/deep", "middle/out", "after"]
    assert [frame.id for frame in shape.frames] == ["middle"]
    assert shape.note == "1 sub-workflow is closed. To open one, pass its id: expand=[...]."
    expected = read_shape(graphs.nested(), expand=["middle"])
    assert (shape.nodes, shape.edges) == (expected.nodes, expected.edges)
    least = fit(whole, max_nodes=1)
    assert least.nodes == read_shape(graphs.nested()).nodes
    assert least.edges == read_shape(graphs.nested()).edges
    assert least.note == "2 sub-workflows are closed. To open one, pass its id: expand=[...]."


def test_a_sub_workflow_in_expand_stays_open_with_all_around_it():
    shape = fit(read_shape(graphs.nested(), expand=True), max_nodes=1, expand=["middle/deep"])
    assert [frame.id for frame in shape.frames] == ["middle", "middle/deep"]
    assert shape.note == ""


def test_a_part_of_a_graph_has_all_frames_around_its_nodes():
    frames = (ShapeNode(id="outer", name="outer"), ShapeNode(id="outer/inner", name="inner", frame="outer"))
    inside = ShapeNode(id="outer/inner/x", name="x", frame="outer/inner")
    shape = GraphShape(nodes=(ShapeNode(id="far", name="far"), inside), frames=frames)
    assert neighbourhood(shape, [inside.id]).frames == frames


def test_beyond_a_thousand_only_the_neighbourhood_is_drawn_and_the_rest_counted():
    whole = read_shape(graphs.layers(MAX_NODES + 200))
    shape = fit(whole, max_nodes=300, focus=["step_0500"])
    assert names(shape) == ["step_0480", "step_0490", "step_0500", "step_0510", "step_0520"]
    assert len(shape.hidden) == len(whole.nodes) - 5
    assert "1,195 executors are hidden" in shape.note
    assert "step_0500" in shape.note


# ---- overlay


async def test_an_executor_that_asks_waits_until_it_works_again():
    workflow = graphs.research()
    run = workflow.start("x")
    await run.result()
    assert read_states(run)["review"] == "waiting"
    assert read_states(run.events)["review"] == "waiting"
    request = run.pending_requests[0]
    await run.send_response(request.request_id, True)
    await run.result()
    assert read_states(run) == dict.fromkeys(["plan", "search", "draft", "review", "publish"], "done")
    assert read_states(run.events)["review"] == "done"


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_run_that_can_go_on_marks_who_is_next_and_the_way_there():
    workflow = graphs.chain(["a", "b", "c"])
    run = workflow.start("x")
    assert read_states(run) == {"a": "queued"}
    await run.step()
    assert read_states(run) == {"a": "done", "b": "queued", ("a", "b"): "queued"}
    await run.result()
    assert read_states(run) == {"a": "done", "b": "done", "c": "done"}


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_what_waits_in_an_instance_is_no_news_of_a_run_before():
    workflow = graphs.chain(["a", "b", "c"])
    before = workflow.start("x")
    await before.result()
    after = workflow.start("y")
    await after.step()
    assert read_states(before) == {"a": "done", "b": "done", "c": "done"}
    assert read_states(before.events) == read_states(before)


async def test_no_condition_is_evaluated_for_a_picture():
    asked: list[str] = []

    def any_message(message: str) -> bool:
        asked.append(message)
        return True

    first, second = graphs.Step("a"), graphs.Yield("b")
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second, condition=any_message).build()
    run = workflow.start("x")
    await run.step()
    asked.clear()
    read_states(run)
    assert asked == []
    await run.plan()
    assert read_states(run)["b"] == "queued"


def test_what_is_at_work_runs_and_what_a_finished_run_broke_off_does_not():
    events = [WorkflowEvent.executor_invoked("a"), WorkflowEvent.executor_invoked("b")]
    events.append(WorkflowEvent.executor_failed("b", WorkflowErrorDetails("E", "m")))
    assert read_states(events) == {"a": "running", "b": "failed"}
    from agentbench.workflows.events.events import WorkflowRunState

    assert read_states([*events, WorkflowEvent.status(WorkflowRunState.FAILED)]) == {"b": "failed"}
