import operator
from typing import Annotated, NotRequired

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


def merge(left: dict | None, right: dict | None) -> dict:
    return {**(left or {}), **(right or {})}


def last(n):
    def reducer(left: list, right):
        if not isinstance(right, list):
            right = [right]
        return (left + right)[-n:]

    return reducer


def reset_or_add(left: list | None, right: list | str) -> list:
    if right == "reset":
        return []
    return (left or []) + right


def unique(left: list, right: list) -> list:
    return list(dict.fromkeys(left + right))


class State(TypedDict):
    data: Annotated[dict, merge]
    recent: Annotated[list[int], last(3)]
    log: Annotated[list[str], reset_or_add]
    tags: Annotated[set, operator.or_]
    best: Annotated[float, lambda a, b: max(a, b)]
    names: Annotated[list[str], unique]
    note: NotRequired[str]
    flag: bool | None


def one(state: State):
    print(sorted(state), state.get("best"))
    return {"data": {"a": 1}, "recent": 1, "log": ["x"], "tags": {"t"}, "best": 0.5, "names": ["n", "m"]}


def two(state: State):
    return {
        "data": {"b": 2, "a": 3},
        "recent": [2, 3, 4],
        "log": "reset",
        "tags": {"u"},
        "best": 0.2,
        "names": ["m", "o"],
    }


def three(state: State):
    return {"log": ["y"], "flag": None, "data": None}


g = StateGraph(State)
g.add_sequence([one, two, three])
g.add_edge(START, "one")
app = g.compile()
result = app.invoke({"data": {"z": 0}})
print({k: sorted(v) if isinstance(v, set) else v for k, v in result.items()})
result = app.invoke({"recent": [9, 9, 9], "best": 7.0, "note": "n", "tags": {"a"}})
print({k: sorted(v) if isinstance(v, set) else v for k, v in result.items()})
for item in app.stream({"best": 1.0}, stream_mode="values"):
    print(item["recent"], item["log"], item["best"], item.get("data"))
