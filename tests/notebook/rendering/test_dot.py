import re

from agentbench.notebook.rendering.dot import to_dot
from agentbench.notebook.rendering.dot_reader import read_dot
from agentbench.notebook.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
from tests.notebook import graphs
from tests.notebook.attacks import ATTACKS


def test_names_are_positions_and_text_is_in_labels_only():
    graph = read_dot(to_dot(read_shape(graphs.research())))
    assert list(graph.nodes) == ["n0", "n1", "n2", "n3", "n4"]
    assert [node["label"] for node in graph.nodes.values()] == ["▷ plan", "search", "draft", "⏸ review", "publish"]
    assert [edge.attributes["id"] for edge in graph.edges] == ["e0", "e1", "e2", "e3", "e4"]
    assert graph.edges[2].attributes["label"].strip() == "if needs_review"


def test_kinds_are_shapes_and_classes():
    nodes = read_dot(to_dot(read_shape(graphs.research()))).nodes
    assert nodes["n0"]["shape"] == "ellipse"
    assert nodes["n1"]["shape"] == "box"
    assert nodes["n3"]["shape"] == "hexagon"
    assert nodes["n4"]["peripheries"] == "2"
    assert nodes["n3"]["class"] == "ab_node ab_k_hitl"
    assert read_dot(to_dot(read_shape(graphs.nested()))).nodes["n1"]["shape"] == "cylinder"


def test_colours_are_six_digit_hex_and_the_ground_is_transparent():
    dot = to_dot(read_shape(graphs.research()))
    assert "bgcolor=transparent" in dot
    assert all(re.fullmatch(r'"#[0-9A-F]{6}"', colour) for colour in re.findall(r'"#[^"]*"', dot))


def test_states_are_only_in_pictures_without_a_style_sheet():
    shape = read_shape(graphs.research())
    plain = to_dot(shape)
    painted = to_dot(shape, states={"plan": "done"}, scheme="dark")
    assert "done" not in plain
    assert r'label="plan\ndone"' in painted
    assert r'label="review\nasks a person"' in painted
    assert not set("▷⏸✓") & set(painted)
    assert "#00785A" in painted
    assert "bgcolor=transparent" not in painted


def test_short_detail_cuts_names_and_leaves_out_edge_labels():
    shape = read_shape(graphs.chain(["b", "a" * 60]))
    assert f'label="{"a" * 31}…"' in to_dot(shape)
    assert f'label="{"a" * 17}…"' in to_dot(shape, detail="short")
    assert "needs_review" in to_dot(read_shape(graphs.research()))
    assert "needs_review" not in to_dot(read_shape(graphs.research()), detail="short")


def test_the_full_name_is_in_the_tooltip():
    graph = read_dot(to_dot(read_shape(graphs.chain(["a" * 60, "b"]))))
    assert graph.nodes["n0"]["tooltip"] == f"{'a' * 60} (start, Step)"


def test_frames_are_clusters_and_edges_end_at_them():
    graph = read_dot(to_dot(read_shape(graphs.nested(), expand=True)))
    assert [(cluster.name, cluster.parent) for cluster in graph.clusters] == [("cluster_c0", None), ("cluster_c1", 0)]
    heads = [edge.attributes.get("lhead") for edge in graph.edges]
    assert heads.count("cluster_c0") == 1
    assert heads.count("cluster_c1") == 1
    assert graph.attributes["compound"] == "true"


def test_loops_are_written_backwards_so_that_ranks_follow_the_way_forward():
    dot = to_dot(read_shape(graphs.research()))
    assert re.search(r"n2 -> n3 \[.*dir=back", dot)
    assert [(edge.source, edge.target) for edge in read_dot(dot).edges][-1] == ("n3", "n2")


def test_a_loop_from_frame_to_frame_keeps_its_ends():
    inner = tuple(ShapeNode(id=f"{frame}/x", name="x", frame=frame) for frame in "ab")
    frames = tuple(ShapeNode(id=each, name=each, kinds=("subworkflow",)) for each in "ab")
    edges = (ShapeEdge(source="a", target="b"), ShapeEdge(source="b", target="a", kind="loop"))
    loop = read_dot(to_dot(GraphShape(nodes=inner, frames=frames, edges=edges))).edges[1]
    assert (loop.source, loop.target, loop.tail, loop.head) == ("n1", "n0", "cluster_c1", "cluster_c0")


def test_no_name_breaks_out_of_its_label():
    for attack in ATTACKS:
        nodes = (ShapeNode(id=attack, name=attack, type_name=attack), ShapeNode(id="other", name="other"))
        edges = (ShapeEdge(source=attack, target="other", kind="conditional", label=attack),)
        dot = to_dot(GraphShape(name=attack, nodes=nodes, edges=edges))
        graph = read_dot(dot)
        assert list(graph.nodes) == ["n0", "n1"]
        assert len(graph.edges) == 1
        assert set(graph.nodes["n0"]) <= {
            *("id", "class", "label", "tooltip", "shape", "style", "fillcolor", "color", "fontname", "fontsize"),
            *("fontcolor", "margin", "height", "penwidth"),
        }
        for forbidden in ("URL", "href", "image", "shapefile"):
            assert forbidden not in graph.nodes["n0"]
            assert forbidden not in graph.edges[0].attributes
