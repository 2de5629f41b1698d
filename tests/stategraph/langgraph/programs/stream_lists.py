import asyncio
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import StreamWriter


class Sub(TypedDict):
    foo: str
    bar: str


def sub_1(state: Sub, writer: StreamWriter):
    writer({"at": "sub_1"})
    return {"bar": "bar"}


async def sub_2(state: Sub):
    return {"foo": state["foo"] + state["bar"]}


sub = StateGraph(Sub).add_node(sub_1).add_node(sub_2).add_edge(START, "sub_1").add_edge("sub_1", "sub_2").compile()


class Parent(TypedDict):
    foo: str


async def node_1(state: Parent, writer: StreamWriter):
    for i in range(2):
        writer(i)
        await asyncio.sleep(0)
    return {"foo": "hi! " + state["foo"]}


g = StateGraph(Parent)
g.add_node("node_1", node_1)
g.add_node("node_2", sub)
g.add_edge(START, "node_1")
g.add_edge("node_1", "node_2")
app = g.compile()


def short(path):
    return tuple(p.split(":")[0] for p in path)


async def main():
    async for item in app.astream({"foo": "foo"}, stream_mode="updates"):
        print(item)
    async for path, item in app.astream({"foo": "foo"}, stream_mode="custom", subgraphs=True):
        print(short(path), item)
    async for path, mode, item in app.astream(
        {"foo": "foo"}, stream_mode=["values", "updates", "custom"], subgraphs=True
    ):
        print(short(path), mode, item)
    async for mode, item in app.astream({"foo": "foo"}, stream_mode=["tasks", "values"]):
        if mode == "tasks":
            print(mode, item["name"], item.get("input"), item.get("result"))
        else:
            print(mode, item)


asyncio.run(main())
