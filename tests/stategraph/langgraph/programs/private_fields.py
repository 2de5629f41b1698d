from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, model_validator


class InputState(TypedDict):
    user_input: str


class OutputState(TypedDict):
    graph_output: str


class OverallState(TypedDict):
    foo: str
    user_input: str
    graph_output: str


class PrivateState(TypedDict):
    bar: str


def node_1(state: InputState) -> OverallState:
    print("1", state)
    return {"foo": state["user_input"] + " name"}


def node_2(state: OverallState) -> PrivateState:
    print("2", state)
    return {"bar": state["foo"] + " is"}


def node_3(state: PrivateState) -> OutputState:
    print("3", state)
    return {"graph_output": state["bar"] + " Lance"}


builder = StateGraph(OverallState, input_schema=InputState, output_schema=OutputState)
builder.add_node("node_1", node_1)
builder.add_node("node_2", node_2)
builder.add_node("node_3", node_3)
builder.add_edge(START, "node_1")
builder.add_edge("node_1", "node_2")
builder.add_edge("node_2", "node_3")
builder.add_edge("node_3", END)
graph = builder.compile()
print(graph.invoke({"user_input": "My"}))
for mode in ("updates", "values"):
    for chunk in graph.stream({"user_input": "My"}, stream_mode=mode):
        print(mode, chunk)


class In(TypedDict):
    question: str


class Out(TypedDict):
    answer: str


class All(In, Out):
    pass


def answer_node(state: In):
    return {"answer": "bye", "question": state["question"]}


builder = StateGraph(All, input_schema=In, output_schema=Out)
builder.add_node("answer_node", answer_node)
builder.add_edge(START, "answer_node")
builder.add_edge("answer_node", END)
graph = builder.compile()
print(graph.invoke({"question": "hi"}))


class Order(BaseModel):
    item: str
    note: str = ""

    @model_validator(mode="after")
    def differ(self):
        assert self.item != self.note
        return self


class Note(BaseModel):
    note: str


builder = StateGraph(Order, output_schema=Note)
builder.add_node("write", lambda state: {"note": f"one {state.item}"})
builder.add_edge(START, "write")
print(builder.compile().invoke({"item": "tea"}))
