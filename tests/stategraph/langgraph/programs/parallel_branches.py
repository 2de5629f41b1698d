import operator
from typing import Annotated, TypedDict

from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    tags: Annotated[set[str], operator.or_]
    facts: Annotated[dict, operator.or_]
    last: str


def node(name):
    def run(state: State):
        return {"log": [name], "total": len(state["log"]), "facts": {name: state["total"]}}

    return run


graph = StateGraph(State)
for name in ("cherry", "apple", "banana"):
    graph.add_node(name, node(name))
    graph.add_edge(START, name)
    graph.add_edge(name, "end")
graph.add_node("end", lambda state: {"log": ["end"], "last": state["log"][0], "tags": {"done"}})
graph.add_edge("end", END)
app = graph.compile()
print(app.invoke({"log": ["start"]}))
print(app.invoke({}))


class Plain(TypedDict):
    value: int


graph = StateGraph(Plain)
for name in ("one", "two"):
    graph.add_node(name, lambda state: {"value": 1})
    graph.add_edge(START, name)
try:
    graph.compile().invoke({"value": 0})
except InvalidUpdateError as error:
    print("InvalidUpdateError", "value" in str(error))
