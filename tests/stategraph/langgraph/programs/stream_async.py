import asyncio
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import StreamWriter


class State(TypedDict):
    n: int


async def count(state: State, writer: StreamWriter):
    for i in range(state["n"]):
        writer({"i": i})
        await asyncio.sleep(0)
    return {"n": 0}


graph = StateGraph(State)
graph.add_node("count", count)
graph.add_edge(START, "count")
app = graph.compile()


async def main():
    async for item in app.astream({"n": 2}):
        print(item)
    async for mode, item in app.astream({"n": 2}, stream_mode=["custom", "values"]):
        print(mode, item)
    async for item in app.astream({"n": 5}, stream_mode="custom"):
        print(item)
        if item["i"] == 1:
            break
    print(await app.ainvoke({"n": 2}))


asyncio.run(main())
