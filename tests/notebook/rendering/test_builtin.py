from xml.etree import ElementTree

import pytest

from agentbench.notebook.graph.builtin import render_builtin
from agentbench.notebook.graph.dot import to_dot
from agentbench.notebook.graph.shape import read_shape
from agentbench.notebook.look.svg import text_width
from tests.notebook import graphs

SVG = "{http://www.w3.org/2000/svg}"


def groups(dot: str) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(render_builtin(dot, "svg"))
    return {group.get("id", ""): group for group in root.iter(f"{SVG}g")}


def test_every_element_has_the_id_and_the_classes_that_graphviz_gives():
    found = groups(to_dot(read_shape(graphs.nested(), expand=True)))
    assert found["n0"].get("class") == "node ab_node ab_k_start"
    assert found["c0"].get("class") == "cluster ab_frame ab_k_subworkflow"
    assert found["e0"].get("class") == "edge ab_edge ab_e_direct"


def test_conditional_edges_are_dashed_and_labelled():
    edge = groups(to_dot(read_shape(graphs.research())))["e2"]
    path, label = edge.find(f"{SVG}path"), edge.find(f"{SVG}text")
    assert path is not None
    assert path.get("stroke-dasharray") == "5,2"
    assert label is not None
    assert label.text == "if needs_review"


def test_everything_lies_inside_the_picture():
    root = ElementTree.fromstring(render_builtin(to_dot(read_shape(graphs.layers(40))), "svg"))
    width, height = (float(root.get(side, "0").removesuffix("pt")) for side in ("width", "height"))
    shift = root.find(f"{SVG}g")
    assert shift is not None
    dx, dy = map(float, shift.get("transform", "").removeprefix("translate(").removesuffix(")").split())
    for box in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(box.get(name, "0")) for name in ("x", "y", "width", "height"))
        assert 0 <= x + dx <= x + w + dx <= width
        assert 0 <= y + dy <= y + h + dy <= height


@pytest.mark.parametrize("direction", ["LR", "RL", "TB", "BT"])
def test_text_on_edges_lies_inside_the_picture_and_off_the_nodes(direction):
    shape = read_shape(graphs.loops())
    root = ElementTree.fromstring(render_builtin(to_dot(shape, direction=direction), "svg"))
    width, height = (float(root.get(side, "0").removesuffix("pt")) for side in ("width", "height"))
    body = root.find(f"{SVG}g")
    assert body is not None
    dx, dy = map(float, body.get("transform", "").removeprefix("translate(").removesuffix(")").split())
    boxes = [box for group in body if group.get("id", "")[:1] == "n" for box in group.iter(f"{SVG}rect")]
    texts = [text for group in body if group.get("id", "")[:1] == "e" for text in group.iter(f"{SVG}text")]
    assert len(texts) == 3
    for text in texts:
        x, y, half = float(text.get("x", "0")), float(text.get("y", "0")), text_width(str(text.text), 12) / 2
        assert 0 <= x - half + dx <= x + half + dx <= width
        assert 0 <= y - 10 + dy <= y + dy <= height
        for box in boxes:
            left, top, wide, high = (float(box.get(name, "0")) for name in ("x", "y", "width", "height"))
            assert x + half <= left or x - half >= left + wide or y <= top or y - 9 >= top + high
