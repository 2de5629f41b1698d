import warnings
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command

warnings.simplefilter("ignore")


class State(TypedDict):
    x: int
    y: int


# Keys that are not fields; nodes without edges; targets that do not exist.
graph = StateGraph(State)
graph.add_node("a", lambda state: {"x": state["x"] + 1, "unknown": 5})
graph.add_node("lone", lambda state: {"y": 1})
graph.add_edge(START, "a")
app = graph.compile()
print(app.invoke({"x": 1, "more": 2}))

graph = StateGraph(State)
graph.add_node("a", lambda state: None)
graph.add_edge(START, "a")
print(graph.compile().invoke({"x": 1}))
print(graph.compile().invoke({"more": 1}) or {})

graph = StateGraph(State)
graph.add_node("a", lambda state: Command(update={"y": 3, "z": 4}))
graph.add_edge(START, "a")
graph.add_edge(START, "a")
print(graph.compile().invoke({"x": 1}))
