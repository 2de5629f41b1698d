from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


def keep_three(left: list | None, right: list) -> list:
    return [*(left or []), *right][-3:]


class State(TypedDict):
    last: Annotated[list[int], keep_three]
    best: Annotated[int, lambda left, right: max(left, right)]
    joined: Annotated[str, lambda left, right: f"{left}{right}"]
    labelled: Annotated[str, "only a label"]


def node(number):
    return lambda state: {"last": [number, number + 1], "best": 10 - number, "joined": str(number), "labelled": "x"}


graph = StateGraph(State)
graph.add_sequence([("one", node(1)), ("two", node(2))])
graph.add_edge(START, "one")
graph.add_edge("two", END)
app = graph.compile()
print(app.invoke({"last": [0]}))
print(app.invoke({"best": 100, "joined": ">"}))
