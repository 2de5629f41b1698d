import itertools

from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.graph.dot_reader import DotEdge, DotGraph, read_dot
from agentbench.notebook.graph.geometry import Box
from agentbench.notebook.graph.layout import place

NAMES = [f"v{index}" for index in range(9)]
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20)
DIRECTIONS = ["LR", "RL", "TB", "BT"]


def graph_of(pairs: list[tuple[str, str]]) -> DotGraph:
    return DotGraph(nodes={name: {} for name in NAMES}, edges=[DotEdge(a, b, {}) for a, b in pairs])


def overlap(a: Box, b: Box) -> bool:
    return abs(a.x - b.x) < (a.width + b.width) / 2 - 1e-6 and abs(a.y - b.y) < (a.height + b.height) / 2 - 1e-6


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


def test_loops_stay_below_what_is_between_them_and_short_ones_inside_long_ones():
    graph = read_dot("digraph { a -> b1; a -> b2; a -> b3; b1 -> c; b2 -> c; b3 -> c; c -> d; d -> a; d -> c }")
    placed = place(graph, dict.fromkeys(graph.nodes, (50.0, 20.0)), "LR", {})
    long, short = placed.wires[-2:]
    assert long.at(0.5)[1] > max(placed.boxes[name].y + 10 for name in ("b1", "b2", "b3"))
    assert long.at(0.5)[1] > short.at(0.5)[1] + 20
    assert long.start[0] > short.start[0]


def test_edges_of_an_opened_sub_workflow_end_at_its_frame():
    graph = read_dot(
        "digraph { a; z; subgraph cluster_m { x -> y } a -> x [lhead=cluster_m]; y -> z [ltail=cluster_m] }"
    )
    placed = place(graph, dict.fromkeys("axyz", (50.0, 20.0)), "LR", {})
    frame = placed.clusters[0]
    assert frame is not None
    assert placed.wires[1].end[0] == frame[0]
    assert placed.wires[2].start[0] == frame[2]


def test_a_cluster_is_a_box_around_its_nodes_and_inner_clusters():
    graph = read_dot("digraph { subgraph cluster_a { x; subgraph cluster_b { y } } x -> y -> z }")
    placed = place(graph, dict.fromkeys("xyz", (50.0, 20.0)), "LR", {})
    outer, inner = placed.clusters
    assert outer is not None
    assert inner is not None
    assert outer[0] < inner[0] < inner[2] < outer[2]
    assert placed.boxes["z"].x - 25 > outer[2]
