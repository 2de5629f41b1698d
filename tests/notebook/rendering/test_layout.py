import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.rendering import layout
from agentbench.notebook.rendering.dot_reader import DotEdge, DotGraph, read_dot
from agentbench.notebook.rendering.geometry import Box
from agentbench.notebook.rendering.layout import place
from agentbench.notebook.rendering.wires import Wire

NAMES = [f"v{index}" for index in range(9)]
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20)
DIRECTIONS = ["LR", "RL", "TB", "BT"]


def graph_of(pairs: list[tuple[str, str]]) -> DotGraph:
    return DotGraph(nodes={name: {} for name in NAMES}, edges=[DotEdge(a, b, {}) for a, b in pairs])


def overlap(a: Box, b: Box) -> bool:
    return abs(a.x - b.x) < (a.width + b.width) / 2 - 1e-6 and abs(a.y - b.y) < (a.height + b.height) / 2 - 1e-6


def test_the_layout_is_as_short_as_promised():
    assert len(Path(layout.__file__).read_text(encoding="utf-8").splitlines()) <= 250


@given(PAIRS, st.sampled_from(DIRECTIONS))
def test_boxes_never_overlap_and_every_edge_has_a_wire(pairs, direction):
    sizes = {name: (40.0 + 15 * index, 20.0 + 3 * index) for index, name in enumerate(NAMES)}
    placed = place(graph_of(pairs), sizes, direction, {})
    assert set(placed.boxes) == set(NAMES)
    assert len(placed.wires) == len(pairs)
    assert not any(overlap(a, b) for a, b in itertools.combinations(placed.boxes.values(), 2))


@given(PAIRS)
def test_the_same_graph_is_placed_the_same_way(pairs):
    sizes = dict.fromkeys(NAMES, (50.0, 20.0))
    assert place(graph_of(pairs), sizes, "LR", {}) == place(graph_of(pairs), sizes, "LR", {})


def test_edges_lead_in_the_wanted_direction():
    for direction, axis, sign in [("LR", 0, 1), ("RL", 0, -1), ("TB", 1, 1), ("BT", 1, -1)]:
        graph = read_dot("digraph { a -> b -> c }")
        boxes = place(graph, dict.fromkeys("abc", (50.0, 20.0)), direction, {}).boxes
        steps = [boxes[name][axis] * sign for name in "abc"]
        assert steps == sorted(steps)
        assert len({boxes[name][1 - axis] for name in "abc"}) == 1


def test_a_loop_goes_back_below_and_the_way_forward_stays_straight():
    graph = read_dot("digraph { a -> b; b -> c; c -> a }")
    forward, _, loop = place(graph, dict.fromkeys("abc", (50.0, 20.0)), "LR", {}).wires
    assert forward.bend is None
    assert loop.bend is not None
    assert loop.bend[1] > max(loop.start[1], loop.end[1])


def test_text_of_a_fan_from_top_to_bottom_stands_side_by_side():
    graph = read_dot("digraph { a -> b; a -> c }")
    texts = {("a", "b"): (120.0, 16.0), ("a", "c"): (120.0, 16.0)}
    first, second = place(graph, dict.fromkeys("abc", (50.0, 20.0)), "TB", texts).wires
    assert abs(first.at(layout.TEXT_AT)[0] - second.at(layout.TEXT_AT)[0]) > 120


def test_a_loop_written_backwards_is_the_same_loop():
    sizes = dict.fromkeys("abc", (50.0, 20.0))
    told = read_dot("digraph { a -> b -> c; a -> c [dir=back] }")
    assert [(edge.source, edge.target) for edge in told.edges] == [("a", "b"), ("b", "c"), ("c", "a")]
    assert place(told, sizes, "LR", {}) == place(read_dot("digraph { a -> b -> c; c -> a }"), sizes, "LR", {})


def test_loops_stay_below_what_is_between_them_and_short_ones_inside_long_ones():
    graph = read_dot("digraph { a -> b1; a -> b2; a -> b3; b1 -> c; b2 -> c; b3 -> c; c -> d; d -> a; d -> c }")
    placed = place(graph, dict.fromkeys(graph.nodes, (50.0, 20.0)), "LR", {})
    long, short = placed.wires[-2:]
    assert long.at(0.5)[1] > max(placed.boxes[name].y + 10 for name in ("b1", "b2", "b3"))
    assert long.at(0.5)[1] > short.at(0.5)[1] + 20
    assert long.start[0] > short.start[0]


def test_a_loop_of_one_node_has_the_space_above_it_for_itself():
    sizes = dict.fromkeys("abc", (50.0, 20.0))
    without = place(read_dot("digraph { a -> b; a -> c }"), sizes, "LR", {}).boxes
    placed = place(read_dot("digraph { a -> b; a -> c; c -> c }"), sizes, "LR", {("c", "c"): (60.0, 16.0)})
    assert placed.boxes["c"].y - placed.boxes["b"].y > without["c"].y - without["b"].y + 30
    loop = placed.wires[-1]
    assert loop.bend is not None
    assert loop.at(0.5)[1] < loop.start[1] == placed.boxes["c"].y - 10
    assert loop.beside == -1


def test_edges_of_a_node_are_spread_over_its_side_in_the_order_of_their_other_ends():
    graph = read_dot("digraph { a -> b; a -> c; a -> d; b -> z; c -> z; d -> z }")
    placed = place(graph, dict.fromkeys(graph.nodes, (50.0, 30.0)), "LR", {})
    starts, ends = placed.wires[:3], placed.wires[3:]
    assert [wire.start[1] for wire in starts] == sorted({wire.start[1] for wire in starts})
    assert [wire.end[1] for wire in ends] == sorted({wire.end[1] for wire in ends})
    assert all(abs(wire.start[1] - placed.boxes["a"].y) < 15 for wire in starts)


def test_edges_begin_at_the_outline_of_a_node():
    graph = read_dot("digraph { a -> b; a -> c }")
    placed = place(graph, dict.fromkeys("abc", (50.0, 30.0)), "LR", {}, lambda name, offset: abs(offset))
    box = placed.boxes["a"]
    assert {wire.start[0] for wire in placed.wires} == {box.x + 25 - abs(placed.wires[0].start[1] - box.y)}


def test_edges_of_an_opened_sub_workflow_end_at_its_frame():
    graph = read_dot(
        "digraph { a; z; subgraph cluster_m { x -> y } a -> x [lhead=cluster_m]; y -> z [ltail=cluster_m] }"
    )
    placed = place(graph, dict.fromkeys("axyz", (50.0, 20.0)), "LR", {})
    frame = placed.clusters[0]
    assert frame is not None
    assert placed.wires[1].end[0] == frame[0]
    assert placed.wires[2].start[0] == frame[2]


@given(st.tuples(*[st.floats(-100, 100)] * 4))
def test_a_clipped_line_ends_at_the_border_or_was_inside(ends):
    x1, y1, x2, y2 = ends
    frame = (-10.0, -10.0, 10.0, 10.0)
    inside = (x2 / 10.1, y2 / 10.1)
    _, (x, y), _, _ = Wire((x1, y1), inside, None).clip(None, frame)
    if abs(x1) < 10 and abs(y1) < 10:
        assert (x, y) == inside
    else:
        assert max(abs(x), abs(y)) == pytest.approx(10)


def test_an_edge_over_several_ranks_bends_around_what_lies_between():
    graph = read_dot("digraph { a -> b -> c; a -> c }")
    placed = place(graph, dict.fromkeys("abc", (50.0, 20.0)), "LR", {})
    bend = placed.wires[2].bend
    assert bend is not None
    assert abs(bend[1] - placed.boxes["b"].y) > placed.boxes["b"].height / 2


def test_text_on_an_edge_pushes_its_ranks_apart():
    graph = read_dot("digraph { a -> b -> c }")
    sizes = dict.fromkeys("abc", (50.0, 20.0))
    near = place(graph, sizes, "LR", {}).boxes
    far = place(graph, sizes, "LR", {("a", "b"): (80.0, 16.0)}).boxes
    assert far["b"].x - far["a"].x == near["b"].x - near["a"].x + 80
    assert far["c"].x - far["b"].x == near["c"].x - near["b"].x


def test_a_cluster_is_a_box_around_its_nodes_and_inner_clusters():
    graph = read_dot("digraph { subgraph cluster_a { x; subgraph cluster_b { y } } x -> y -> z }")
    placed = place(graph, dict.fromkeys("xyz", (50.0, 20.0)), "LR", {})
    outer, inner = placed.clusters
    assert outer is not None
    assert inner is not None
    assert outer[0] < inner[0] < inner[2] < outer[2]
    assert placed.boxes["z"].x - 25 > outer[2]


def test_an_empty_graph_has_an_empty_layout():
    assert place(DotGraph(), {}, "LR", {}) == ({}, [], [])
