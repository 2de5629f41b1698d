"""What the painter draws, with positions by Graphviz and by the built-in layout."""

import math
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from agentbench.notebook import draw
from agentbench.notebook.graph import renderers
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode
from tests.notebook import graphs

SVG = "{http://www.w3.org/2000/svg}"
RENDERERS = [name for name in ("pure", "dot", "builtin") if renderers._look_for(name) is not None]

SHAPE = GraphShape(
    name="two",
    nodes=(ShapeNode(id="a", name="a", kinds=("start",), type_name="Step"), ShapeNode(id="b", name="b")),
    edges=(ShapeEdge(source="a", target="b", label="if x"),),
)


def group(svg: str, element: str) -> Element:
    return next(each for each in ElementTree.fromstring(svg).iter(f"{SVG}g") if each.get("id") == element)


def test_a_picture_on_its_own_has_a_name_a_text_a_style_and_a_ground():
    view = draw(SHAPE, renderer="builtin")
    root = ElementTree.fromstring(view.svg)
    assert root.get("role") == "img"
    title, description, style, ground = root[:4]
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert (title.text, description.text) == ("Graph of two", view.text)
    assert style.text is not None
    assert "prefers-color-scheme:dark" in style.text
    assert ground.get("class") == "ab_ground"


def test_a_picture_for_a_panel_has_names_and_connections_and_no_style():
    svg = draw(SHAPE, renderer="builtin").live_svg
    node, edge = group(svg, "n0"), group(svg, "e0")
    assert "<style" not in svg
    assert (node.get("data-name"), node.get("data-what")) == ("a", "start")
    assert len(node.get("data-box", "").split()) == 4
    assert (edge.get("data-from"), edge.get("data-to")) == ("n0", "n1")
    assert [each.text for each in (node[0], edge[0])] == ["a (start, Step)", "a -> b [if x]"]


@pytest.mark.parametrize(
    ("kind", "classes"),
    [("output", ["ab_shape", "ab_line ab_outer"]), ("subworkflow", ["ab_shape ab_outer", "ab_line"])],
)
def test_rings_go_around_the_outermost_outline(kind, classes):
    shape = GraphShape(nodes=(ShapeNode(id="a", name="a", kinds=(kind,)),))
    outlines = [each for each in group(draw(shape).live_svg, "n0") if each.get("class") in classes]
    assert [each.get("class") for each in outlines] == classes
    outer = next(each for each in outlines if "outer" in each.get("class", ""))
    halo = next(each for each in group(draw(shape, run={"a": "waiting"}).svg, "n0") if each.get("class") == "ab_halo")
    assert [halo.get(name) for name in ("d", "x", "width")] == [outer.get(name) for name in ("d", "x", "width")]


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("direction", ["LR", "RL", "TB", "BT"])
def test_every_arrow_touches_the_outline_of_its_target(renderer: str, direction: str):
    for workflow in (graphs.research(), graphs.desk(), graphs.loops(), graphs.nested(), graphs.layers(30)):
        view = draw(workflow, direction=direction, expand=True, renderer=renderer)
        svg = view.live_svg
        groups = {each.get("id", ""): each for each in ElementTree.fromstring(svg).iter(f"{SVG}g")}
        for element in (each for each in groups if each.startswith("e")):
            tip = groups[element].find(f"{SVG}polygon")
            assert tip is not None
            x, y = map(float, tip.get("points", "").split()[0].split(","))
            left, top, right, bottom = map(
                float, groups[groups[element].get("data-to", "")].get("data-box", "").split()
            )
            inside = min(x - left, right - x), min(y - top, bottom - y)
            assert min(inside) > -1.1
            outline = next(
                each for each in groups[groups[element].get("data-to", "")] if "outer" in each.get("class", "")
            )
            if outline.tag == f"{SVG}ellipse":
                radii = [float(outline.get(name, "0")) for name in ("cx", "cy", "rx", "ry")]
                assert math.hypot((x - radii[0]) / radii[2], (y - radii[1]) / radii[3]) == pytest.approx(1, abs=0.12)
            else:
                assert min(inside) < 11


def test_text_of_people_is_escaped_everywhere():
    attack = '</text><script>alert(1)</script>" onload="x'
    nodes = (ShapeNode(id=attack, name=attack, type_name=attack), ShapeNode(id="other", name="other"))
    edges = (ShapeEdge(source=attack, target="other", kind="conditional", label=attack),)
    view = draw(GraphShape(name=attack, nodes=nodes, edges=edges, note=attack), run={attack: "failed"})
    for svg in (view.svg, view.live_svg):
        names = {each.tag.removeprefix(SVG) for each in ElementTree.fromstring(svg).iter()}
        assert "script" not in names
        assert not any("onload" in each.attrib for each in ElementTree.fromstring(svg).iter())
