from typing import TypedDict

from langgraph.graph import START, StateGraph


class Inner(TypedDict):
    text: str
    length: int


class Outer(TypedDict):
    words: list
    lengths: list


inner = StateGraph(Inner)
inner.add_node("measure", lambda state: {"length": len(state["text"])})
inner.add_edge(START, "measure")
measure = inner.compile()


def each(state: Outer):
    return {"lengths": [measure.invoke({"text": word})["length"] for word in state["words"]]}


outer = StateGraph(Outer)
outer.add_node("each", each)
outer.add_edge(START, "each")
print(outer.compile().invoke({"words": ["a", "bcd", "ef"]}))


async def each_async(state: Outer):
    return {"lengths": [(await measure.ainvoke({"text": word}))["length"] for word in state["words"]]}


import asyncio  # noqa: E402

outer = StateGraph(Outer)
outer.add_node("each", each_async)
outer.add_edge(START, "each")
print(asyncio.run(outer.compile().ainvoke({"words": ["a", "bcd"]})))
