import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    draft: str


config = {"configurable": {"thread_id": "1"}}


def app_of(*nodes):
    graph = StateGraph(State)
    for node in nodes:
        graph.add_node(node)
        graph.add_edge(START, node.__name__)
    return graph.compile(checkpointer=InMemorySaver())


def write(state):
    return {"log": ["write"], "draft": "owls"}


def name(state):
    return {"log": [interrupt("name?")]}


def place(state):
    return {"log": [interrupt("place?")]}


app = app_of(write, name, place)
result = app.invoke({"log": ["begin"]}, config)
ids = {each.value: each.id for each in result["__interrupt__"]}
print(result["log"], result["draft"], app.get_state(config).values, app.get_state(config).next)
print([snapshot.values for snapshot in app.get_state_history(config)])
result = app.invoke(Command(resume={ids["name?"]: "Ann"}), config)
print(result["log"], app.get_state(config).values, app.get_state(config).next)
print(app.invoke(Command(resume="Oslo"), config))

print("an error beside")
fails = [True]


def fail(state):
    if fails:
        fails.clear()
        raise ValueError("once")
    return {"log": ["fail"]}


app = app_of(write, fail)
try:
    app.invoke({"log": ["begin"]}, config)
except ValueError as error:
    print(error, app.get_state(config).values, app.get_state(config).next)
print(app.invoke(None, config))

print("several nodes of one name")
graph = StateGraph(State)
graph.add_node("ask", lambda state: {"log": [f"{state['draft']} {interrupt(state['draft'])}"]})
graph.add_conditional_edges(START, lambda state: [Send("ask", {"draft": topic}) for topic in ("owls", "bees")], ["ask"])
app = graph.compile(checkpointer=InMemorySaver())
result = app.invoke({"log": []}, config)
ids = {each.value: each.id for each in result["__interrupt__"]}
print(app.get_state(config).next)
print(app.invoke(Command(resume={ids["bees"]: "yes"}), config)["log"], app.get_state(config).next)
