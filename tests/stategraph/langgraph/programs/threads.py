import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    text: str
    log: Annotated[list[str], operator.add]


graph = StateGraph(State)
graph.add_node("note", lambda state: {"log": [state["text"]]})
graph.add_edge(START, "note")
graph.add_edge("note", END)
app = graph.compile(checkpointer=InMemorySaver())
one, two = ({"configurable": {"thread_id": name}} for name in ("one", "two"))
print(app.invoke({"text": "a"}, one))
print(app.invoke({"text": "b"}, one))
print(app.invoke({"text": "c"}, two))
print(app.invoke({"log": ["direct"]}, one))
print(app.get_state(one).values, app.get_state(one).next)
print(app.get_state({"configurable": {"thread_id": "none"}}).values)
