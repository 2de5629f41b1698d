from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def up(state: State):
    return {"n": state["n"] + 1}


graph = StateGraph(State)
graph.add_node("a", up)
graph.add_node("b", up)
graph.add_edge(START, "a")
graph.add_conditional_edges("a", lambda state: "b", ["b", END])
graph.add_edge("b", END)
drawn = graph.compile().get_graph()

print(list(drawn.nodes))
for node in drawn.nodes.values():
    print(node.id, node.name)
for edge in sorted(drawn.edges, key=lambda edge: (edge.source, edge.target)):
    print(edge.source, edge.target, edge.conditional)
