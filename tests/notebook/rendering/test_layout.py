import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.rendering import layout
from agentbench.notebook.rendering.dot_reader import DotEdge, DotGraph, read_dot
from agentbench.notebook.rendering.layout import Box, place

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


@pytest.mark.parametrize(("direction", "axis", "sign"), [("LR", 0, 1), ("RL", 0, -1), ("TB", 1, 1), ("BT", 1, -1)])
def test_edges_lead_in_the_wanted_direction(direction, axis, sign):
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
    far = place(graph, sizes, "LR", {("a", "b"): 80.0}).boxes
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
