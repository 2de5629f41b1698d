from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph


class State(TypedDict):
    path: str


def add(letter):
    return lambda state: {"path": state["path"] + letter}


inner = StateGraph(State)
inner.add_node("b", add("b"))
inner.add_node("c", add("c"))
inner.add_edge(START, "b")
inner.add_edge("b", "c")
outer = StateGraph(State)
outer.add_node("a", add("a"))
outer.add_node("inner", inner.compile(interrupt_before=["c"]))
outer.add_node("d", add("d"))
outer.add_edge(START, "a")
outer.add_edge("a", "inner")
outer.add_edge("inner", "d")
app = outer.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
print(app.invoke({"path": ""}, config)["path"], app.get_state(config).next)
print(app.invoke(None, config)["path"], app.get_state(config).next)
