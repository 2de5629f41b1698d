from agentbench.notebook.graph.folding import MAX_NODES, fit, fold_siblings
from agentbench.notebook.graph.shape import GraphShape, NodeKind, ShapeEdge, ShapeNode, read_shape
from tests.notebook import graphs


def names(shape: GraphShape) -> list[str]:
    return [node.name for node in shape.nodes]


def shape_of(*pairs: tuple[str, str], **kinds: tuple[NodeKind, ...]) -> GraphShape:
    ids = dict.fromkeys(end for pair in pairs for end in pair)
    nodes = tuple(ShapeNode(id=each, name=each, kinds=kinds.get(each, ())) for each in ids)
    return GraphShape(nodes=nodes, edges=tuple(ShapeEdge(source=a, target=b) for a, b in pairs))


def test_look_alikes_become_one_node_that_knows_its_members():
    shape = fit(read_shape(graphs.farm(400)), max_nodes=300)
    assert names(shape) == ["split", "worker × 400", "join", "report"]  # noqa: RUF001
    assert len(shape.nodes[1].members) == 400
    assert [(edge.source, edge.target) for edge in shape.edges] == [
        ("split", "worker_0 × 400"),  # noqa: RUF001
        ("worker_0 × 400", "join"),  # noqa: RUF001
        ("join", "report"),
    ]
    assert shape.element_of["worker_17"] == shape.element_of[shape.nodes[1].id] == "n1"
    assert shape.element(("split", "worker_3")) == "e0"
    assert "400 similar nodes are folded into 1" in shape.note


def test_a_group_is_opened_by_its_id_or_by_a_member():
    whole = read_shape(graphs.farm(5))
    for key in ("worker_0 × 5", "worker_3"):  # noqa: RUF001
        assert len(fold_siblings(whole, expand=[key]).nodes) == len(whole.nodes)


def test_dense_graphs_are_folded_before_their_number_says_so():
    ids = [f"n{index}" for index in range(130)]
    dense = shape_of(*[("s", each) for each in ids], *[(each, f"t{k}") for each in ids for k in range(9)])
    assert len(fit(dense, max_nodes=300).nodes) < 20
    assert len(fit(dense, max_nodes=1000).nodes) == len(dense.nodes)


def test_opened_sub_workflows_are_closed_again_until_the_rest_can_be_drawn():
    whole = read_shape(graphs.nested(), expand=True)
    assert [frame.id for frame in whole.frames] == ["middle", "middle/deep"]
    shape = fit(whole, max_nodes=5)
    assert [node.id for node in shape.nodes] == ["before", "middle/in", "middle/deep", "middle/out", "after"]
    assert [frame.id for frame in shape.frames] == ["middle"]
    assert shape.note == "1 sub-workflow is closed. To open one, pass its id: expand=[...]."
    expected = read_shape(graphs.nested(), expand=["middle"])
    assert (shape.nodes, shape.edges) == (expected.nodes, expected.edges)
    least = fit(whole, max_nodes=1)
    assert least.nodes == read_shape(graphs.nested()).nodes
    assert least.edges == read_shape(graphs.nested()).edges
    assert least.note == "2 sub-workflows are closed. To open one, pass its id: expand=[...]."


def test_a_sub_workflow_in_expand_stays_open_with_all_around_it():
    shape = fit(read_shape(graphs.nested(), expand=True), max_nodes=1, expand=["middle/deep"])
    assert [frame.id for frame in shape.frames] == ["middle", "middle/deep"]
    assert shape.note == ""


def test_beyond_a_thousand_only_the_neighbourhood_is_drawn_and_the_rest_counted():
    whole = read_shape(graphs.layers(MAX_NODES + 200))
    shape = fit(whole, max_nodes=300, focus=["step_0500"])
    assert names(shape) == ["step_0480", "step_0490", "step_0500", "step_0510", "step_0520"]
    assert len(shape.hidden) == len(whole.nodes) - 5
    assert "1,195 executors are hidden" in shape.note
    assert "step_0500" in shape.note
