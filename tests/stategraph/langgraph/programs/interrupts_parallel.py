import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def asks(*questions):
    return lambda state: {"log": [" ".join(interrupt(question) for question in questions)]}


graph = StateGraph(State)
graph.add_node("name", asks("name?"))
graph.add_node("place", asks("place?", "country?"))
graph.add_node("plain", lambda state: {"log": ["plain"]})
graph.add_node("end", lambda state: {"log": ["end"]})
for node in ("name", "place", "plain"):
    graph.add_edge(START, node)
graph.add_edge(["name", "place", "plain"], "end")
app = graph.compile(checkpointer=InMemorySaver())


def show(app, config):
    snapshot = app.get_state(config)
    print(sorted(snapshot.next), sorted(each.value for each in snapshot.interrupts), snapshot.metadata["step"])
    print("   ", sorted(snapshot.values["log"]), app.get_state(snapshot.config).values["log"])
    for task in sorted(snapshot.tasks, key=lambda task: task.name):
        print("   ", task.name, [each.value for each in task.interrupts], task.result)


def ids(result):
    return {each.value: each.id for each in result["__interrupt__"]}


for order in (("name?", "place?", "country?"), ("place?", "name?", "country?"), ("place?", "country?", "name?")):
    config = {"configurable": {"thread_id": str(order)}}
    result = app.invoke({"log": []}, config)
    show(app, config)
    for question in order:
        result = app.invoke(Command(resume={ids(result)[question]: question.upper()}), config)
        print(question, sorted(each.value for each in result.get("__interrupt__", [])), sorted(result["log"]))
        show(app, config)
    print(result["log"], len(list(app.get_state_history(config))))

print("with Send")


def ask(state):
    return {"log": [f"{state['topic']} {interrupt(state['topic'])}"]}


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_conditional_edges(START, lambda state: [Send("ask", {"topic": topic}) for topic in ("owls", "bees")], ["ask"])
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
result = app.invoke({"log": []}, config)
result = app.invoke(Command(resume={ids(result)["bees"]: "yes"}), config)
show(app, config)
print(app.invoke(Command(resume="no"), config)["log"])

print("an error after one answer")
fails = [True]


def fail_once(state):
    answer = interrupt("fail?")
    if fails:
        fails.clear()
        raise ValueError(answer)
    return {"log": [answer]}


graph = StateGraph(State)
graph.add_node("name", asks("name?"))
graph.add_node("fail", fail_once)
graph.add_edge(START, "name")
graph.add_edge(START, "fail")
app = graph.compile(checkpointer=InMemorySaver())
result = app.invoke({"log": []}, config)
try:
    app.invoke(Command(resume={ids(result)["fail?"]: "yes"}), config)
except ValueError as error:
    print("error", error)
result = app.invoke(None, config)
print([each.value for each in result["__interrupt__"]])
show(app, config)
print(sorted(app.invoke(Command(resume="Ann"), config)["log"]))
show(app, config)

print("one node has finished when the stream ends")
graph = StateGraph(State)
graph.add_node("name", asks("name?"))
graph.add_node("plain", lambda state: {"log": ["plain"]})
graph.add_edge(START, "name")
graph.add_edge(START, "plain")
app = graph.compile(checkpointer=InMemorySaver())
for given in ({"log": ["in"]}, Command(resume="Ann")):
    for item in app.stream(given, config, stream_mode="values"):
        print({key: value for key, value in item.items() if key != "__interrupt__"}, len(item))
