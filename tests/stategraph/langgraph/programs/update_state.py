import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


graph = StateGraph(State)
graph.add_node("plan", lambda state: {"log": ["plan"]})
graph.add_node("act", lambda state: {"n": state["n"] + 1, "log": ["act"]})
graph.add_edge(START, "plan")
graph.add_edge("plan", "act")
graph.add_edge("act", END)
app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["act"])
config = {"configurable": {"thread_id": "1"}}
print(app.invoke({"n": 1}, config))
app.update_state(config, {"n": 10, "log": ["edited"]})
print(app.get_state(config).values, app.get_state(config).next, app.get_state(config).metadata["step"])
print(app.invoke(None, config))
print(app.get_state(config).next)

app.update_state(config, {"n": 100}, as_node="plan")
print(app.get_state(config).next)
print(app.invoke(None, config))
app.update_state(config, {"n": 7}, as_node="act")
print(app.get_state(config).values, app.get_state(config).next)

new = {"configurable": {"thread_id": "2"}}
app.update_state(new, {"n": 3})
print(app.get_state(new).values, app.get_state(new).next)
print(app.invoke(None, new))
print(app.invoke(None, new))
third = {"configurable": {"thread_id": "3"}}
app.update_state(third, {"n": 5}, as_node="plan")
print(app.get_state(third).values, app.get_state(third).next)
print(app.invoke(None, third))
