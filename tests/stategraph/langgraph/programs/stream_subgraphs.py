from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    text: str


def shorten(state: State):
    get_stream_writer()("inside")
    return {"text": state["text"][:5]}


def approve(state: State):
    return {"text": state["text"] + interrupt("ending?")}


inner = StateGraph(State)
inner.add_node("shorten", shorten)
inner.add_node("approve", approve)
inner.add_edge(START, "shorten")
inner.add_edge("shorten", "approve")

outer = StateGraph(State)
outer.add_node("edit", inner.compile())
outer.add_node("shout", lambda state: {"text": state["text"].upper()})
outer.add_edge(START, "edit")
outer.add_edge("edit", "shout")
app = outer.compile(checkpointer=InMemorySaver())


def show(item):
    """Print an item with the names of the nodes in its path, and the values of interrupts."""
    parts = item if isinstance(item, tuple) else (item,)
    for part in parts:
        if isinstance(part, tuple):
            part = [name.split(":")[0] for name in part]
        elif isinstance(part, dict) and "__interrupt__" in part:
            part = {**part, "__interrupt__": [question.value for question in part["__interrupt__"]]}
        print(part, end=" ")
    print()


for number, settings in enumerate(
    (
        {},
        {"subgraphs": True},
        {"subgraphs": True, "stream_mode": ["updates", "custom"]},
        {"stream_mode": "custom"},
    )
):
    config = {"configurable": {"thread_id": str(number)}}
    print(settings)
    for item in app.stream({"text": "some words"}, config, **settings):
        show(item)
    for item in app.stream(Command(resume="!"), config, **settings):
        show(item)
for item in app.stream({"text": "more words"}, {"configurable": {"thread_id": "v"}}, stream_mode="values", subgraphs=True):
    show(item)
