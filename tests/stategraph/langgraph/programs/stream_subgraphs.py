import asyncio
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


print("graphs that a node calls")
compiled = inner.compile()
noisy = StateGraph(State)
noisy.add_node("loud", lambda state: get_stream_writer()("inside") or {"text": state["text"] + "!"})
noisy.add_node("outer of one", lambda state: quiet.invoke(state))
noisy.add_edge(START, "loud")
noisy.add_edge("loud", "outer of one")
quiet = StateGraph(State)
quiet.add_node("quiet", lambda state: get_stream_writer()("inside") or {"text": state["text"].lower()})
quiet.add_edge(START, "quiet")
quiet = quiet.compile()
noisy = noisy.compile()


def twice(state: State):
    for _ in range(2):
        state = noisy.invoke(state)
    get_stream_writer()("inside")
    return state


async def in_async(state: State):
    return [item async for item in noisy.astream(state, stream_mode="values")][-1]


outer = StateGraph(State)
outer.add_node("twice", twice)
outer.add_node("in_async", in_async)
outer.add_node("as_node", noisy)
outer.add_node("asks", lambda state: compiled.invoke(state))
outer.add_edge(START, "twice")
outer.add_edge("twice", "in_async")
outer.add_edge("in_async", "as_node")
outer.add_edge("as_node", "asks")
app = outer.compile(checkpointer=InMemorySaver())


async def main():
    for number, mode in enumerate(("updates", "values", ["custom", "updates"], "custom")):
        print(mode)
        config = {"configurable": {"thread_id": f"called {number}"}}
        for given in ({"text": "Words"}, Command(resume="!"))[: 1 if mode == "values" else 2]:
            async for item in app.astream(given, config, stream_mode=mode, subgraphs=True):
                show(item)
    async for item in app.astream({"text": "Words"}, {"configurable": {"thread_id": "n"}}, stream_mode="custom"):
        print(item)


asyncio.run(main())
