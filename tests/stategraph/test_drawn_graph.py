"""The nodes and edges of a graph, and drawings of them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from agentbench.stategraph import END, START, CompiledGraph, StateGraph


class Count(TypedDict):
    n: int


def choose(state: Count) -> Literal["again", "__end__"]:
    return "again"


def compiled(inner: Any = lambda state: None) -> CompiledGraph[Any]:
    graph = StateGraph(Count).add_node("count", lambda state: None).add_node("again", inner)
    return graph.add_edge(START, "count").add_conditional_edges("count", choose).add_edge("again", END).compile()


def test_the_nodes_and_edges_of_a_graph():
    drawn = compiled().get_graph()
    assert {*drawn.nodes} == {START, "count", "again", END}
    assert {*drawn.edges} == {
        (START, "count", False), ("again", END, False), ("count", "again", True), ("count", END, True),
    }  # fmt: skip


def test_a_graph_is_drawn_as_mermaid_text_and_picture():
    drawn = compiled().get_graph()
    assert drawn.draw_mermaid().splitlines()[0].startswith("flowchart")
    assert "count -. conditional .-> again;" in drawn.draw_mermaid()
    assert "count -> again [if again]" in drawn.draw_ascii()
    assert drawn.draw_mermaid_png().startswith(b"\x89PNG")


def test_graphs_in_nodes_are_drawn_on_request():
    app = compiled(compiled())
    assert len(app.get_graph(xray=True).nodes) > len(app.get_graph().nodes) == 4
