from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy


class State(TypedDict):
    tries: int


calls = []


def flaky(state: State):
    calls.append(1)
    if len(calls) < 3:
        raise ConnectionError("not yet")
    return {"tries": len(calls)}


graph = StateGraph(State)
graph.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False))
graph.add_edge(START, "flaky")
print(graph.compile().invoke({}))


def build(error, **policy):
    def fail(state: State):
        calls.append(1)
        raise error

    calls.clear()
    graph = StateGraph(State)
    graph.add_node("fail", fail, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, **policy))
    graph.add_edge(START, "fail")
    try:
        graph.compile().invoke({})
    except Exception as caught:
        print(type(caught).__name__, len(calls))


build(ConnectionError("x"), max_attempts=2)
build(ValueError("x"))
build(ValueError("x"), retry_on=ValueError)
build(KeyError("x"), retry_on=(ValueError, KeyError), max_attempts=4)
build(KeyError("x"), retry_on=lambda error: "y" in str(error))
build(OSError("x"), backoff_factor=1.5, max_interval=0.01)
