from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime


class Notes(dict):
    """Any object may be the store of a graph here."""


class State(TypedDict):
    found: str


def look(state: State, runtime: Runtime):
    return {"found": runtime.store["key"]}


graph = StateGraph(State)
graph.add_node("look", look)
graph.add_edge(START, "look")
print(graph.compile(store=Notes(key="value")).invoke({}))
