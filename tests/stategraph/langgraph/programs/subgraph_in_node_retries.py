import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

calls = []
retry = RetryPolicy(initial_interval=0.001, jitter=False)
config = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    topic: str
    log: Annotated[list[str], operator.add]


def one_node(node, **settings):
    graph = StateGraph(State)
    graph.add_node("node", node, **settings)
    graph.add_edge(START, "node")
    return graph


def write(state):
    calls.append(f"write {state['topic']}")
    return {"log": [f"about {state['topic']}"]}


inner = one_node(write).compile()

for saver in InMemorySaver(), None:
    topics = iter(["owls", "bees", "ants"])

    def next_topic(state):
        log = inner.invoke({"topic": next(topics), "log": []})["log"]
        if log != ["about ants"]:
            raise ConnectionError(log)
        return {"log": log}

    app = one_node(next_topic, retry_policy=retry).compile(checkpointer=saver)
    print(app.invoke({"topic": "", "log": []}, config), calls)
    calls.clear()

print("an error inside, then a question")
fails = [True]


def fail_once(state):
    calls.append("fail_once")
    if fails:
        fails.clear()
        raise ConnectionError("once")
    return {"log": [interrupt("?")]}


graph = one_node(write)
graph.add_node("fail_once", fail_once)
graph.add_edge("node", "fail_once")
inner = graph.compile()
app = one_node(lambda state: {"log": inner.invoke(state)["log"]}, retry_policy=retry).compile(checkpointer=InMemorySaver())
result = app.invoke({"topic": "owls", "log": []}, config)
print(calls, [each.value for each in result["__interrupt__"]])
calls.clear()
print(app.invoke(Command(resume="yes"), config)["log"], calls)
