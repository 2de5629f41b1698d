import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    topic: str
    log: Annotated[list[str], operator.add]


def node(name):
    return lambda state: {"log": [f"{name} {state['topic']}"]}


graph = StateGraph(State)
for name in ("draft", "review", "publish"):
    graph.add_node(name, node(name))
graph.add_edge(START, "draft")
graph.add_edge("draft", "review")
graph.add_edge("review", "publish")
graph.add_edge("publish", END)
app = graph.compile(checkpointer=MemorySaver(), interrupt_before=["review"], interrupt_after=["review"])
config = {"configurable": {"thread_id": "t"}}
print(app.invoke({"topic": "owls"}, config))
print(app.get_state(config).next, app.get_state(config).values)
app.update_state(config, {"topic": "cats"})
print(app.invoke(None, config))
print(app.get_state(config).next)
print(app.invoke(None, config))
print(app.get_state(config).next)

# New input on a paused thread starts again from START.
config = {"configurable": {"thread_id": "u"}}
app.invoke({"topic": "owls"}, config)
print(app.invoke({"topic": "dogs"}, config))
print(app.get_state(config).next)
