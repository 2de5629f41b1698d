from agentbench.notebook.graph.dot import to_dot
from agentbench.notebook.graph.dot_reader import read_dot
from agentbench.notebook.graph.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
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


def test_frames_are_clusters_and_edges_end_at_them():
    graph = read_dot(to_dot(read_shape(graphs.nested(), expand=True)))
    assert [(cluster.name, cluster.parent) for cluster in graph.clusters] == [("cluster_c0", None), ("cluster_c1", 0)]
    heads = [edge.attributes.get("lhead") for edge in graph.edges]
    assert heads.count("cluster_c0") == 1
    assert heads.count("cluster_c1") == 1
    assert graph.attributes["compound"] == "true"


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
