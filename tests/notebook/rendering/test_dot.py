"""The DOT text that Graphviz gets."""

import re

from agentbench.notebook.graph.dot import to_dot
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
from tests.notebook import graphs
from tests.notebook.attacks import ATTACKS

ATTRIBUTE = r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s"\]]+)'
STATEMENT = re.compile(rf"^\s*(n\d+(?: -> n\d+)?) \[((?:{ATTRIBUTE}\s*)*)\]$", re.MULTILINE)


def statements(dot: str) -> dict[str, dict[str, str]]:
    """Attributes of the nodes and edges of a DOT text, by their ids."""
    found: dict[str, dict[str, str]] = {}
    for match in STATEMENT.finditer(dot):
        attributes = {key: value.strip('"') for key, value, *_ in re.findall(ATTRIBUTE, match[2])}
        found[attributes.get("id") or match[1]] = attributes
    return found


def test_names_are_positions_and_text_is_in_labels_only():
    found = statements(to_dot(read_shape(graphs.research())))
    assert list(found) == ["n0", "n1", "n2", "n3", "n4", "e0", "e1", "e2", "e3", "e4"]
    assert [node["label"] for node in list(found.values())[:5]] == ["▷ plan", "search", "draft", "‖ review", "publish"]
    assert found["e2"]["label"].strip() == "if needs_review"


def test_lines_end_at_ellipses_cylinders_and_boxes():
    nodes = statements(to_dot(read_shape(graphs.research())))
    assert nodes["n0"]["shape"] == "ellipse"
    assert "shape" not in nodes["n1"]
    assert "shape" not in nodes["n3"]
    assert statements(to_dot(read_shape(graphs.nested())))["n1"]["shape"] == "cylinder"


def test_frames_are_clusters_and_edges_end_at_them():
    dot = to_dot(read_shape(graphs.nested(), expand=True))
    assert re.findall(r"subgraph (\w+)", dot) == ["cluster_c0", "cluster_c1"]
    assert sorted(re.findall(r"lhead=(\w+)", dot)) == ["cluster_c0", "cluster_c1"]
    assert "compound=true" in dot


def test_no_name_breaks_out_of_its_label():
    for attack in ATTACKS:
        nodes = (ShapeNode(id=attack, name=attack, type_name=attack), ShapeNode(id="other", name="other"))
        edges = (ShapeEdge(source=attack, target="other", kind="conditional", label=attack),)
        found = statements(to_dot(GraphShape(name=attack, nodes=nodes, edges=edges)))
        assert list(found) == ["n0", "n1", "e0"]
        assert set(found["n0"]) == {"label", "width", "height"}
        assert set(found["e0"]) <= {"id", "label", "style"}
