import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class Outer(TypedDict):
    text: str
    log: Annotated[list[str], operator.add]
    hidden: str


class Inner(TypedDict):
    text: str
    count: int


def shout(state: Inner):
    return {"text": state["text"].upper(), "count": len(state["text"]) + state.get("count", 0)}


inner = StateGraph(Inner)
inner.add_node("shout", shout)
inner.add_edge(START, "shout")
inner.add_node("mark", lambda state: {"text": f"{state['text']}{state['count']}"})
inner.add_edge("shout", "mark")
inner.add_edge("mark", END)
sub = inner.compile()

# As a node, with the fields that both have.
graph = StateGraph(Outer)
graph.add_node("before", lambda state: {"log": ["before"], "hidden": "h"})
graph.add_node("sub", sub)
graph.add_node("after", lambda state: {"log": [f"after {state['text']}"]})
graph.add_edge(START, "before")
graph.add_edge("before", "sub")
graph.add_edge("sub", "after")
graph.add_edge("after", END)
print(graph.compile().invoke({"text": "hi"}))


# Called by a node, with other fields.
def call(state: Outer):
    result = sub.invoke({"text": state["text"], "count": 10})
    return {"log": [result["text"], str(sorted(result))]}


graph = StateGraph(Outer)
graph.add_node("call", call)
graph.add_edge(START, "call")
print(graph.compile().invoke({"text": "hi"}))


# A command for the graph around.
def leave(state: Outer):
    return Command(graph=Command.PARENT, update={"log": ["from inside"]}, goto="outside")


inner = StateGraph(Outer)
inner.add_node("leave", leave)
inner.add_node("never", lambda state: {"log": ["never"]})
inner.add_edge(START, "leave")
graph = StateGraph(Outer)
graph.add_node("inside", inner.compile())
graph.add_node("outside", lambda state: {"log": ["outside"]})
graph.add_edge(START, "inside")
print(graph.compile().invoke({"text": "x"}))
