import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    input: str
    user_feedback: str
    steps: Annotated[list, operator.add]


def step_1(state):
    return {"steps": ["step_1"]}


def human_feedback(state):
    pass


def step_3(state):
    return {"steps": [f"step_3 with {state.get('user_feedback')}"]}


builder = StateGraph(State)
builder.add_node("step_1", step_1)
builder.add_node("human_feedback", human_feedback)
builder.add_node("step_3", step_3)
builder.add_edge(START, "step_1")
builder.add_edge("step_1", "human_feedback")
builder.add_edge("human_feedback", "step_3")
builder.add_edge("step_3", END)
graph = builder.compile(checkpointer=MemorySaver(), interrupt_before=["human_feedback"])
thread = {"configurable": {"thread_id": "1"}}
for event in graph.stream({"input": "hello world"}, thread, stream_mode="values"):
    print(event)
print(graph.get_state(thread).next)
graph.update_state(thread, {"user_feedback": "go!"}, as_node="human_feedback")
print(graph.get_state(thread).next, graph.get_state(thread).values)
for event in graph.stream(None, thread, stream_mode="updates"):
    print(event)
print(graph.get_state(thread).next, graph.get_state(thread).tasks)
graph = builder.compile(checkpointer=MemorySaver(), interrupt_after=["step_1", "human_feedback"])
thread = {"configurable": {"thread_id": "2"}}
given = {"input": "all"}
while True:
    for event in graph.stream(given, thread):
        print(event)
    if not graph.get_state(thread).next:
        break
    given = None
graph = builder.compile(checkpointer=MemorySaver())
thread = {"configurable": {"thread_id": "3"}}
print(graph.invoke({"input": "x"}, thread, interrupt_before=["step_3"]))
graph.update_state(thread, {"steps": ["edited"]}, as_node="step_1")
print(graph.get_state(thread).next)
print(graph.invoke(None, thread))
thread = {"configurable": {"thread_id": "4"}}
for event in graph.stream(
    {"input": "y"}, thread, interrupt_after=["step_1", "human_feedback"], stream_mode=["updates", "values"]
):
    print(event)
print(graph.invoke(None, thread, interrupt_before="*"), graph.get_state(thread).next)
print(graph.invoke(None, thread))
