import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

config = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    n: int


def graph_of(*names):
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    return graph


def show(app, *updates):
    app.invoke({"log": []}, config)
    for update in updates:
        app.update_state(config, update)
    following = []
    while app.get_state(config).next:
        following.append(app.get_state(config).next)
        app.invoke(None, config)
    print(updates, following, app.get_state(config).values, len(list(app.get_state_history(config))))


def choose(state):
    return "c" if state.get("n") else "b"


graph = graph_of("a", "b", "c")
graph.add_edge(START, "a")
graph.add_conditional_edges("a", choose)
graph.add_edge("b", "c")
for settings in (
    {"interrupt_before": ["b"]},
    {"interrupt_after": ["a"]},
    {"interrupt_before": ["b", "c"]},
    {"interrupt_after": "*"},
):
    print(settings)
    for updates in ({"log": ["x"]},), ({"n": 1},), (None,), ({"log": ["x"]}, {"n": 1}):
        show(graph.compile(checkpointer=InMemorySaver(), **settings), *updates)

print("a condition at the start")
graph = graph_of("b", "c")
graph.add_conditional_edges(START, choose)
for update in {"log": ["x"]}, {"n": 1}:
    show(graph.compile(checkpointer=InMemorySaver(), interrupt_before="*"), update)

print("a condition that sends")
graph = graph_of("a")
graph.add_node("send", lambda state: {"log": [f"send {state['n']}"]})
graph.add_edge(START, "a")
graph.add_conditional_edges("a", lambda state: [Send("send", {"n": n}) for n in range(state.get("n", 2))], ["send"])
for update in {"log": ["x"]}, {"n": 3}:
    show(graph.compile(checkpointer=InMemorySaver(), interrupt_before=["send"]), update)

print("an earlier checkpoint")
graph = graph_of("a", "b", "c")
graph.add_edge(START, "a")
graph.add_conditional_edges("a", choose)
app = graph.compile(checkpointer=InMemorySaver())
app.invoke({"log": []}, config)
earlier = next(each for each in app.get_state_history(config) if each.next == ("b",))
branch = app.update_state(earlier.config, {"n": 1})
print(app.get_state(branch).next, app.invoke(None, branch))

print("a node that failed")


def fail(state):
    raise ValueError("b")


graph = graph_of("a", "c")
graph.add_node("b", fail)
graph.add_edge(START, "a")
graph.add_conditional_edges("a", choose)
app = graph.compile(checkpointer=InMemorySaver())
try:
    app.invoke({"log": []}, config)
except ValueError as error:
    print(error)
app.update_state(config, {"n": 1})
print(app.get_state(config).next, app.invoke(None, config))
