"""The built-in renderer, by the pictures that it draws."""

import itertools
import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.graph.view import draw
from agentbench.notebook.look.svg import text_width
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
from tests.notebook import graphs

SVG = "{http://www.w3.org/2000/svg}"
DIRECTIONS = ["LR", "RL", "TB", "BT"]
NAMES = [f"node{'x' * 3 * index}" for index in range(9)]
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20, unique=True)

Frame = tuple[float, float, float, float]


def shape_of(pairs: list[tuple[str, str]], names: list[str] | None = None) -> GraphShape:
    names = names or list(dict.fromkeys(itertools.chain(*pairs)))
    edges = tuple(ShapeEdge(source=source, target=target) for source, target in pairs)
    return GraphShape(nodes=tuple(ShapeNode(id=name, name=name) for name in names), edges=edges)


class Picture:
    """The places in a drawn graph: boxes by element, the points of lines by element, texts."""

    def __init__(self, source: object, direction: str = "LR") -> None:
        self.view = draw(source, direction=direction, expand=True, renderer="builtin")
        self.root = ElementTree.fromstring(self.view.svg)
        self.size = tuple(float(self.root.get(side, "0")) for side in ("width", "height"))
        body = self.root.find(f"{SVG}g")
        assert body is not None
        self.shift = tuple(map(float, re.findall(r"[\d.-]+", body.get("transform", ""))))
        self.groups = {group.get("id", ""): group for group in body}

    def frame(self, name: str) -> Frame:
        """Left, top, right and bottom of a node or a frame."""
        element = self.view.shape.element_of[name]
        drawn = [each for each in self.groups[element] if each.tag != f"{SVG}text"]
        found = [frame for each in drawn if (frame := outline(each)) is not None]
        lefts, tops, rights, bottoms = zip(*found, strict=True)
        return min(lefts), min(tops), max(rights), max(bottoms)

    def line(self, source: str, target: str) -> list[tuple[float, float]]:
        """Points along an edge, its tip included."""
        group = self.groups[self.view.shape.element_of[source, target]]
        path, tip = group.find(f"{SVG}path"), group.find(f"{SVG}polygon")
        assert path is not None
        assert tip is not None
        return points(path.get("d", "")) + points(tip.get("points", ""))[:1]

    def texts(self) -> list[Frame]:
        """The places of what is written on edges."""
        found = []
        for element, group in self.groups.items():
            for text in group.iter(f"{SVG}text") if element.startswith("e") else ():
                x, y, half = float(text.get("x", "0")), float(text.get("y", "0")), text_width(str(text.text), 12) / 2
                found.append((x - half, y - 9, x + half, y))
        return found


def points(text: str) -> list[tuple[float, float]]:
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", text)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def outline(drawn: Element) -> Frame | None:
    at = {name: float(value) for name, value in drawn.attrib.items() if re.fullmatch(r"-?[\d.]+", value)}
    if drawn.tag == f"{SVG}rect":
        return at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"]
    if drawn.tag == f"{SVG}ellipse":
        return at["cx"] - at["rx"], at["cy"] - at["ry"], at["cx"] + at["rx"], at["cy"] + at["ry"]
    xs, ys = zip(*points(drawn.get("points", drawn.get("d", "")) or "0,0"), strict=True)
    return (min(xs), min(ys), max(xs), max(ys)) if drawn.tag == f"{SVG}polygon" else None


def overlap(a: Frame, b: Frame) -> bool:
    return a[0] < b[2] - 0.2 and b[0] < a[2] - 0.2 and a[1] < b[3] - 0.2 and b[1] < a[3] - 0.2


@given(PAIRS, st.sampled_from(DIRECTIONS))
def test_nodes_never_overlap_and_no_edge_runs_through_one(pairs, direction):
    picture = Picture(shape_of(pairs, NAMES), direction)
    frames = {name: picture.frame(name) for name in NAMES}
    assert not any(overlap(a, b) for a, b in itertools.combinations(frames.values(), 2))
    for pair in pairs:
        line = picture.line(*pair)
        for (x1, y1), (x2, y2) in itertools.pairwise(line):
            for share in (0.2, 0.5, 0.8):
                x, y = x1 + (x2 - x1) * share, y1 + (y2 - y1) * share
                for name in set(NAMES) - set(pair):
                    assert not overlap((x, y, x, y), frames[name])


@given(PAIRS)
def test_the_same_graph_is_drawn_in_the_same_way(pairs):
    again = draw(shape_of(pairs, NAMES), renderer="builtin", max_nodes=301).svg
    assert draw(shape_of(pairs, NAMES), renderer="builtin").svg == again


def test_edges_lead_in_the_wanted_direction():
    for direction, axis, sign in [("LR", 0, 1), ("RL", 0, -1), ("TB", 1, 1), ("BT", 1, -1)]:
        picture = Picture(shape_of([("a", "b"), ("b", "c")]), direction)
        middles = [picture.frame(name)[axis] * sign for name in "abc"]
        assert middles == sorted(middles)
        assert len({picture.frame(name)[1 - axis] for name in "abc"}) == 1


def test_loops_stay_below_what_is_between_them_and_short_ones_inside_long_ones():
    pairs = [("a", "b1"), ("a", "b2"), ("a", "b3"), ("b1", "c"), ("b2", "c"), ("b3", "c"), ("c", "d")]
    picture = Picture(shape_of([*pairs, ("d", "a"), ("d", "c")]))
    long, short = (max(y for _, y in picture.line("d", target)) for target in "ac")
    assert long > max(picture.frame(name)[3] for name in ("b1", "b2", "b3"))
    assert long > short + 10


def test_an_opened_sub_workflow_has_a_frame_at_which_its_edges_end():
    picture = Picture(graphs.nested())
    outer, inner = picture.frame("middle"), picture.frame("middle/deep")
    assert outer[0] < inner[0] < inner[2] < outer[2]
    assert picture.line("before", "middle")[-1][0] == pytest.approx(outer[0], abs=0.2)
    assert picture.line("middle", "after")[0][0] == pytest.approx(outer[2], abs=0.2)
    assert picture.frame("after")[0] > outer[2]


def test_conditional_edges_are_dashed_and_labelled():
    edge = Picture(graphs.research()).groups["e2"]
    path, label = edge.find(f"{SVG}path"), edge.find(f"{SVG}text")
    assert path is not None
    assert path.get("stroke-dasharray") == "5,2"
    assert label is not None
    assert label.text == "if needs_review"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_everything_lies_inside_the_picture_and_texts_off_the_nodes(direction):
    for workflow in (graphs.loops(), graphs.desk(), graphs.layers(40)):
        picture = Picture(workflow, direction)
        nodes = [picture.frame(node.id) for node in read_shape(workflow).nodes]
        (dx, dy), (width, height) = picture.shift, picture.size
        for left, top, right, bottom in nodes + picture.texts():
            assert 0 <= left + dx <= right + dx <= width
            assert 0 <= top + dy <= bottom + dy <= height
        assert not any(overlap(text, node) for text in picture.texts() for node in nodes)
