import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field, ValidationError


class State(BaseModel):
    name: str
    count: int = Field(3, ge=0, description="how many")
    log: Annotated[list[str], operator.add] = []


def first(state: State):
    return {"log": [f"{type(state).__name__} {state.name} {state.count}"]}


graph = StateGraph(State)
graph.add_node("first", first)
graph.add_node("second", lambda state: {"count": state.count + 1})
graph.add_edge(START, "first")
graph.add_edge("first", "second")
graph.add_edge("second", END)
app = graph.compile()
print(app.invoke({"name": "Ann"}))
print(app.invoke({"name": "Ann", "count": "5"}))
print(app.invoke(State(name="Bob", count=8)))
try:
    app.invoke({"name": "Ann", "count": "many"})
except ValueError as error:
    print("ValueError")

graph = StateGraph(State)
graph.add_node("first", first)
graph.add_edge(START, "first")
print(graph.compile().invoke({"name": "Cid"}))
