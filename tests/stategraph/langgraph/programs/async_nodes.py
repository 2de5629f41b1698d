import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]


async def first(state: State):
    await asyncio.sleep(0)
    return {"log": ["first"]}


async def ask(state: State):
    return {"log": [interrupt("go?")]}


async def main():
    graph = StateGraph(State)
    graph.add_node(first)
    graph.add_node(ask)
    graph.add_edge(START, "first")
    graph.add_edge("first", "ask")
    graph.add_edge("ask", END)
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    result = await app.ainvoke({"log": []}, config)
    print(result["log"], [item.value for item in result["__interrupt__"]])
    print(await app.ainvoke(Command(resume="went"), config))
    print((await app.aget_state(config)).next)
    print(await asyncio.gather(*(app.ainvoke({}, {"configurable": {"thread_id": str(n)}}) for n in (2, 3))) and "both")


asyncio.run(main())
