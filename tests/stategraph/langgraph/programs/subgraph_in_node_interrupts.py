import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

calls = []


class Inner(TypedDict):
    topic: str
    draft: str
    approved: str
    log: Annotated[list[str], operator.add]


class Outer(TypedDict):
    topic: str
    text: str


def write(state: Inner):
    calls.append("write")
    return {"draft": f"about {state['topic']}", "log": ["write"]}


def approve(state: Inner):
    calls.append("approve")
    return {"approved": interrupt({"question": "approve?", "draft": state["draft"]}), "log": ["approve"]}


def publish(state: Inner):
    calls.append("publish")
    return {"log": [interrupt(f"publish {state['approved']}?")]}


def inner_graph(checkpointer=None):
    graph = StateGraph(Inner)
    graph.add_node("write", write)
    graph.add_node("approve", approve)
    graph.add_node("publish", publish)
    graph.add_edge(START, "write")
    graph.add_edge("write", "approve")
    graph.add_edge("approve", "publish")
    return graph.compile(checkpointer=checkpointer)


def outer_graph(node):
    graph = StateGraph(Outer)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile(checkpointer=InMemorySaver())


config = {"configurable": {"thread_id": "1"}}


def show(app, *inputs):
    for data in inputs:
        result = app.invoke(data, config)
        snapshot = app.get_state(config)
        print(calls, result.get("text"), [each.value for each in result.get("__interrupt__", [])])
        print("   ", snapshot.next, [(task.name, len(task.interrupts)) for task in snapshot.tasks])
        calls.clear()


answers = Command(resume="yes"), Command(resume="now")
for title, inner in ("shared", inner_graph()), ("with a saver", inner_graph(InMemorySaver())):
    print(title)

    def plain(state: Outer):
        calls.append("node")
        result = inner.invoke({"topic": state["topic"], "log": []})
        return {"text": f"{result['draft']}, {result['log']}"}

    show(outer_graph(plain), {"topic": "owls"}, *answers, {"topic": "bees"}, *answers)

print("the node passes its config on")


def passes_config(state: Outer, config):
    return {"text": str(inner.invoke({"topic": state["topic"], "log": []}, config)["log"])}


show(outer_graph(passes_config), {"topic": "owls"}, *answers, {"topic": "bees"}, *answers)

print("two calls, and questions of the node itself")


def several(state: Outer):
    first = interrupt("how?")
    texts = [inner.invoke({"topic": topic, "log": [first]})["log"] for topic in ("owls", "bees")]
    return {"text": f"{texts} {interrupt('sure?')}"}


show(outer_graph(several), {"topic": ""}, *[Command(resume=str(number)) for number in range(6)])

print("a thread of its own")
own = inner_graph(InMemorySaver())


def own_thread(state: Outer):
    thread = {"configurable": {"thread_id": "own"}}
    result = own.invoke({"topic": state["topic"], "log": []}, thread)
    while "__interrupt__" in result:
        result = own.invoke(Command(resume="automatic"), thread)
    return {"text": str(result["log"])}


show(outer_graph(own_thread), {"topic": "owls"})

print("streams")
app = outer_graph(plain)
for data in ({"topic": "owls"}, *answers):
    for mode, item in app.stream(data, config, stream_mode=["updates", "values"]):
        asked = [each.value for each in item.pop("__interrupt__", ())]
        print(mode, item, asked)
calls.clear()


def streams(state: Outer):
    items = [item for item in inner.stream({"topic": state["topic"], "log": []}, stream_mode="values")]
    return {"text": str(items[-1]["log"])}


show(outer_graph(streams), {"topic": "owls"}, *answers)

print("async")


async def async_node(state: Outer):
    result = await inner.ainvoke({"topic": state["topic"], "log": []})
    return {"text": str(result["log"])}


async def main():
    app = outer_graph(async_node)
    for data in ({"topic": "owls"}, *answers):
        result = await app.ainvoke(data, config)
        print(result.get("text"), [each.value for each in result.get("__interrupt__", [])])


asyncio.run(main())

print("an error inside")
fails = [True]


def fail_once(state: Inner):
    calls.append("fail_once")
    if fails:
        fails.clear()
        raise ValueError("once")
    return {"log": ["done"]}


graph = StateGraph(Inner)
graph.add_node("write", write)
graph.add_node("fail_once", fail_once)
graph.add_edge(START, "write")
graph.add_edge("write", "fail_once")
inner = graph.compile()
calls.clear()
app = outer_graph(lambda state: {"text": str(inner.invoke({"topic": state["topic"], "log": []})["log"])})
try:
    app.invoke({"topic": "owls"}, config)
except ValueError as error:
    print(error, calls)
print(app.invoke(None, config)["text"], calls)

print("settings of the outer call")


def settings(state: Inner, config):
    return {"log": [config["configurable"]["user"], config["configurable"]["thread_id"]]}


graph = StateGraph(Inner)
graph.add_node("settings", settings)
graph.add_edge(START, "settings")
inner = graph.compile()
app = outer_graph(lambda state: {"text": str(inner.invoke({"topic": "", "log": []})["log"])})
print(app.invoke({"topic": ""}, {"configurable": {"thread_id": "1", "user": "Ann"}})["text"])
