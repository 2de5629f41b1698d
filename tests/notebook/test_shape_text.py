import re

from agentbench.notebook.graph.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
from agentbench.notebook.graph.text import MAX_LINES, shape_mermaid, shape_text
from tests.notebook import graphs
from tests.notebook.attacks import ATTACKS


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
