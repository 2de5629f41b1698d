import operator
from enum import Enum
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Route(str, Enum):
    A = "a"


def graph_with(condition, *path_map):
    graph = StateGraph(State)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_conditional_edges(START, condition, *path_map)
    return graph.compile()


async def later(state: State):
    return ["b", "c"]


print(graph_with(lambda state: "a").invoke({}))
print(graph_with(lambda state: ["c", "a"]).invoke({}))
print(graph_with(lambda state: END).invoke({"log": ["in"]}))
print(graph_with(lambda state: ["x", "y"], {"x": "b", "y": END}).invoke({}))
print(graph_with(lambda state: True, {True: "b", False: "c"}).invoke({}))
print(graph_with(lambda state: "b", ["b", "c"]).invoke({}))

import asyncio

print(asyncio.run(graph_with(later).ainvoke({})))
