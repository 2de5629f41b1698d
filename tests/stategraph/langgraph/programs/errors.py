import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


works = []


def fail(state: State):
    if not works:
        raise KeyError("missing")
    return {"log": ["fail"]}


graph = StateGraph(State)
graph.add_node("first", lambda state: {"log": ["first"]})
graph.add_node("fail", fail)
graph.add_edge(START, "first")
graph.add_edge("first", "fail")
graph.add_edge("fail", END)
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
try:
    app.invoke({"log": ["in"]}, config)
except KeyError as error:
    print("KeyError", error.args)
print(app.get_state(config).values, app.get_state(config).next)
works.append(1)
print(app.invoke(None, config))

graph = StateGraph(State)
graph.add_node("again", lambda state: {"log": ["again"]})
graph.add_edge(START, "again")
graph.add_edge("again", "again")
try:
    graph.compile().invoke({}, {"recursion_limit": 4})
except RecursionError as error:
    print(isinstance(error, GraphRecursionError))

graph = StateGraph(State)
graph.add_node("wrong", lambda state: 3)
graph.add_edge(START, "wrong")
try:
    graph.compile().invoke({})
except InvalidUpdateError:
    print("InvalidUpdateError")

graph = StateGraph(State)
graph.add_node("only", lambda state: {})
try:
    graph.compile()
except ValueError:
    print("ValueError: no entry point")
try:
    graph.add_node("only", lambda state: {})
except ValueError:
    print("ValueError: the name is taken")
graph.add_edge(START, "nowhere")
try:
    graph.compile()
except ValueError:
    print("ValueError: no such node")
