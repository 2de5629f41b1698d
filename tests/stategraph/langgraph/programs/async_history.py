import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    answer: str


async def fetch_a(state: State):
    await asyncio.sleep(0.02)
    return {"log": ["a"]}


async def fetch_b(state: State):
    await asyncio.sleep(0.01)
    return {"log": ["b"]}


async def ask(state: State):
    return {"answer": interrupt({"log": state["log"]})}


async def route(state: State):
    await asyncio.sleep(0)
    return "ask" if state["answer"] == "again" else END


g = StateGraph(State)
g.add_node(fetch_a)
g.add_node(fetch_b)
g.add_node(ask)
g.add_edge(START, "fetch_a")
g.add_edge(START, "fetch_b")
g.add_edge(["fetch_a", "fetch_b"], "ask")
g.add_conditional_edges("ask", route, ["ask", END])
app = g.compile(checkpointer=InMemorySaver())


async def one(thread):
    config = {"configurable": {"thread_id": thread}}
    result = await app.ainvoke({"log": [thread]}, config)
    first = result["__interrupt__"][0].value
    result = await app.ainvoke(Command(resume="again"), config)
    assert "__interrupt__" in result
    result = await app.ainvoke(Command(resume=f"done {thread}"), config)
    return first, result


async def main():
    for pair in await asyncio.gather(*(one(str(n)) for n in range(3))):
        print(pair)
    config = {"configurable": {"thread_id": "1"}}
    print((await app.aget_state(config)).values)
    steps = [(s.metadata["step"], s.next) async for s in app.aget_state_history(config)]
    print(len(steps), steps[-3:])
    await app.aupdate_state(config, {"log": ["edited"]}, as_node="fetch_a")
    print((await app.aget_state(config)).values)
    async for chunk in app.astream({"log": ["new"]}, {"configurable": {"thread_id": "z"}}):
        print(
            {"fetch": 1}
            if "__interrupt__" not in chunk
            else {k: v if k != "__interrupt__" else [i.value for i in v] for k, v in chunk.items()}
        )


asyncio.run(main())
