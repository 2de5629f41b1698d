import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def build(kind):
    graph = StateGraph(State)
    for name in ("fast", "slow", "slower"):
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_node("join", lambda state: {"log": [f"join after {len(state['log'])}"]}, defer=kind == "defer")
    graph.add_edge(START, "fast")
    graph.add_edge(START, "slow")
    graph.add_edge("slow", "slower")
    if kind == "list":
        graph.add_edge(["fast", "slower"], "join")
    else:
        graph.add_edge("fast", "join")
        graph.add_edge("slower", "join")
    graph.add_edge("join", END)
    return graph.compile()


for kind in ("list", "edges", "defer"):
    print(kind, build(kind).invoke({"log": []}))
