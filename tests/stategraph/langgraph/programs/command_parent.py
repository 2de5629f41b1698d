import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


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

# The inner graph ends there, also if a function of the outer graph has called it, which ends too.
inner.add_node("after", lambda state: print("after") or {"trail": ["after"]})
inner.add_edge("choose", "after")
compiled = inner.compile()


def call(state: State):
    result = compiled.invoke({"trail": []})
    print("returned", result)
    return result


async def acall(state: State):
    return [item async for item in compiled.astream({"trail": []})]


def outer_graph(node, checkpointer=None):
    graph = StateGraph(State)
    graph.add_node("inner", node, destinations=("other",))
    graph.add_node("next", lambda state: {"trail": ["next"]})
    graph.add_node("other", lambda state: {"trail": ["other"]})
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "next")
    return graph.compile(checkpointer=checkpointer)


for node in (compiled, call):
    print(outer_graph(node).invoke({"trail": ["start"]}))
    print([*outer_graph(node).stream({"trail": ["start"]})])
print(asyncio.run(outer_graph(acall).ainvoke({"trail": ["start"]})))

asking = StateGraph(State)
asking.add_node("ask", lambda state: Command(graph=Command.PARENT, goto="other", update={"trail": [interrupt("?")]}))
asking.add_edge(START, "ask")
compiled = asking.compile()
app, config = outer_graph(call, InMemorySaver()), {"configurable": {"thread_id": "1"}}
print(app.invoke({"trail": ["start"]}, config)["trail"], app.invoke(Command(resume="answer"), config))
