import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

calls = []


class State(TypedDict):
    topic: str
    joke: str
    log: Annotated[list[str], operator.add]


def choose(state: State):
    calls.append("choose")
    return {"topic": state.get("topic", "socks"), "log": ["choose"]}


def write(state: State):
    calls.append("write")
    return {"joke": f"a joke about {state['topic']}", "log": ["write"]}


graph = StateGraph(State)
graph.add_sequence([choose, write])
graph.add_edge(START, "choose")
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
print(app.invoke({}, config), calls)

history = list(app.get_state_history(config))
before_write = next(snapshot for snapshot in history if snapshot.next == ("write",))
print(app.invoke(None, before_write.config), calls)

fork = app.update_state(before_write.config, values={"topic": "owls"})
print(sorted(fork["configurable"].keys() & {"thread_id", "checkpoint_id"}))
print(app.get_state(fork).values, app.get_state(fork).next)
print(app.invoke(None, fork), calls)
print(app.get_state(config).values["joke"])

start = [snapshot for snapshot in app.get_state_history(config) if snapshot.next == ("__start__",)][-1]
print(start.values, start.metadata["step"])
print(app.invoke(None, start.config), calls)
print(list(app.stream(None, before_write.config)))
print(app.invoke({"topic": "cats"}, {"configurable": {"thread_id": "2"}}))
before = list(app.get_state_history({"configurable": {"thread_id": "2"}}))[-1]
print(app.invoke(None, before.config))
