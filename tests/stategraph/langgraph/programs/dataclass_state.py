import operator
from dataclasses import dataclass, field
from typing import Annotated

from langgraph.graph import END, START, StateGraph


@dataclass
class State:
    name: str
    count: int = 3
    log: Annotated[list[str], operator.add] = field(default_factory=list)


def first(state: State):
    return {"log": [f"{type(state).__name__} {state.name} {state.count}"]}


def second(state: State):
    return {"count": state.count + 1, "log": [str(len(state.log))]}


def done(state: State):
    return END if state.count > 4 else "second"


graph = StateGraph(State)
graph.add_node("first", first)
graph.add_node("second", second)
graph.add_edge(START, "first")
graph.add_edge("first", "second")
graph.add_conditional_edges("second", done)
app = graph.compile()
print(app.invoke({"name": "Ann"}))
print(app.invoke(State("Bob", 8)))

graph = StateGraph(State)
graph.add_node("first", first)
graph.add_edge(START, "first")
print(graph.compile().invoke({"name": "Cid"}))

graph = StateGraph(State)
graph.add_node("whole", lambda state: State(state.name * 2, log=["whole"]))
graph.add_edge(START, "whole")
print(graph.compile().invoke({"name": "D"}))
