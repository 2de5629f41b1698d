import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command


class State(TypedDict):
    trail: Annotated[list, operator.add]


def choose(state: State):
    return Command(graph=Command.PARENT, goto="other", update={"trail": ["choose"]})


inner = StateGraph(State)
inner.add_node("choose", choose)
inner.add_edge(START, "choose")
outer = StateGraph(State)
outer.add_node("inner", inner.compile(), destinations=("other",))
outer.add_node("other", lambda state: {"trail": ["other"]})
outer.add_edge(START, "inner")
print(outer.compile().invoke({"trail": ["start"]}))
