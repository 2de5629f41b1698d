import operator
from typing import Annotated, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    lives: int


def route(state: State) -> Command[Literal["good", "bad"]]:
    return Command(update={"log": ["route"]}, goto="good" if state["lives"] > 1 else "bad")


def node(name):
    return lambda state: {"log": [name]}


graph = StateGraph(State)
graph.add_node("route", route)
graph.add_node("good", node("good"))
graph.add_node("bad", node("bad"))
graph.add_edge(START, "route")
app = graph.compile()
print(app.invoke({"lives": 2}))
print(app.invoke({"lives": 0}))

# A command goes on in addition to the edges of its node.
graph = StateGraph(State)
graph.add_node("first", lambda state: Command(update={"log": ["first"]}, goto="extra"))
graph.add_node("extra", node("extra"))
graph.add_node("second", node("second"))
graph.add_edge(START, "first")
graph.add_edge("first", "second")
graph.add_edge("second", END)
print(graph.compile().invoke({"lives": 0}))

# Several targets, and tasks of their own; a list of commands.
graph = StateGraph(State)
graph.add_node("start", lambda state: Command(goto=["a", "b", Send("each", {"n": 1}), Send("each", {"n": 2})]))
graph.add_node("a", node("a"))
graph.add_node("b", node("b"))
graph.add_node("each", lambda item: [Command(update={"log": [f"each {item['n']}"]}), {"lives": 5} if item["n"] == 1 else {}])
graph.add_edge(START, "start")
print(graph.compile().invoke({"lives": 0}))

# A command that ends, or goes nowhere.
graph = StateGraph(State)
graph.add_node("stop", lambda state: Command(update={"log": ["stop"]}, goto=END))
graph.add_edge(START, "stop")
print(graph.compile().invoke({"lives": 0}))
