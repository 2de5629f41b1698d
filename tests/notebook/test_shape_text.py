import re

from agentbench.notebook.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
from agentbench.notebook.shape_text import MAX_LINES, shape_mermaid, shape_text
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


def test_what_lies_in_a_frame_is_indented():
    assert shape_text(read_shape(graphs.nested(), expand=True)).splitlines()[1:] == [
        "before (start) -> middle",
        "middle (sub-workflow) -> after",
        "  in (start) -> deep",
        "  deep (sub-workflow) -> out",
        "    x (start) -> y",
        "    y",
        "  out",
        "after",
    ]


def test_a_long_list_is_cut_and_says_so():
    lines = shape_text(read_shape(graphs.layers(100))).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[-1] == "… 42 more nodes, not listed here"


def test_a_node_with_many_targets_stays_one_line():
    text = shape_text(read_shape(graphs.farm(40)))
    assert "worker_11, … 28 more" in text
    assert max(map(len, text.splitlines())) < 300


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


def test_mermaid_has_a_subgraph_for_each_frame():
    text = shape_mermaid(read_shape(graphs.nested(), expand=True))
    assert '  subgraph c0["middle"]\n    n1(["in"])' in text
    assert '    subgraph c1["deep"]' in text
    assert text.count("end") == 2


def test_hostile_names_stay_inside_their_line_and_their_quotes():
    nodes = tuple(ShapeNode(id=attack, name=attack) for attack in ATTACKS)
    edges = tuple(ShapeEdge(source=attack, target=ATTACKS[0], label=attack) for attack in ATTACKS[1:])
    shape = GraphShape(name=ATTACKS[0], nodes=nodes, edges=edges)
    assert len(shape_text(shape).splitlines()) == len(ATTACKS) + 1
    for line in shape_mermaid(shape).splitlines()[1:]:
        assert re.fullmatch(r'  n\d+\["[\w .,:()/+\-#;]*"\]|  n\d+ -->(\|"[\w .,:()/+\-#;]*"\|)? n\d+', line), line
