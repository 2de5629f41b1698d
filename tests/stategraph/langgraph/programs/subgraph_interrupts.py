import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    answer: str


inner = StateGraph(State)
inner.add_node("first", lambda state: {"log": ["first"]})
inner.add_node("ask", lambda state: {"answer": interrupt("inner question")})
inner.add_edge(START, "first")
inner.add_edge("first", "ask")
inner.add_edge("ask", END)

graph = StateGraph(State)
graph.add_node("outer", lambda state: {"log": ["outer"]})
graph.add_node("inner", inner.compile())
graph.add_node("end", lambda state: {"log": [f"end {state['answer']}"]})
graph.add_edge(START, "outer")
graph.add_edge("outer", "inner")
graph.add_edge("inner", "end")
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
result = app.invoke({"log": []}, config)
print([item.value for item in result["__interrupt__"]], result["log"])
print(app.get_state(config).next)
print(app.invoke(Command(resume="yes"), config)["answer"])
print(app.get_state(config).values["log"][-1])
