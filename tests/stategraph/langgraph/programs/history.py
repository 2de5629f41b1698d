import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


graph = StateGraph(State)
graph.add_node("up", lambda state: {"n": state["n"] + 1, "log": ["up"]})
graph.add_node("times", lambda state: {"n": state["n"] * 10, "log": ["times"]})
graph.add_edge(START, "up")
graph.add_edge("up", "times")
graph.add_edge("times", END)
app = graph.compile(checkpointer=InMemorySaver())


def show(config):
    for snapshot in app.get_state_history(config):
        print(snapshot.metadata["step"], snapshot.values, snapshot.next, [task.name for task in snapshot.tasks])


config = {"configurable": {"thread_id": "1"}}
app.invoke({"n": 1}, config)
show(config)
app.invoke({"n": 5}, config)
show(config)
state = app.get_state(config)
print(state.values, state.next, state.config["configurable"]["thread_id"], sorted(state.config))
history = list(app.get_state_history(config))
print(state.config["configurable"]["checkpoint_id"] == history[0].config["configurable"]["checkpoint_id"])
for snapshot in history:
    same = app.get_state(snapshot.config)
    print(same.values == snapshot.values, same.next == snapshot.next, same.metadata["step"] == snapshot.metadata["step"])
print([snapshot.metadata["step"] for snapshot in app.get_state_history(config, limit=3)])
print([snapshot.metadata["step"] for snapshot in app.get_state_history(config, before=history[5].config)])
print(list(app.get_state_history({"configurable": {"thread_id": "none"}})))
while state.parent_config:
    state = app.get_state(state.parent_config)
    print("before it", state.metadata["step"], state.next)
for item in app.stream({"n": 2}, config, stream_mode="checkpoints"):
    parent = app.get_state(item["parent_config"])
    print(item["metadata"]["source"], item["metadata"]["step"], "after", parent.metadata["step"], parent.next)
