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

# The state of graphs in nodes, while they wait.
inner.add_node("beside", lambda state: {"log": ["beside"]})
inner.add_edge("first", "beside")
middle = StateGraph(State)
middle.add_node("inner", inner.compile())
middle.add_node("before", lambda state: {"log": ["before"]})
middle.add_edge(START, "before")
middle.add_edge("before", "inner")
graph = StateGraph(State)
graph.add_node("middle", middle.compile())
graph.add_node("other", lambda state: {"log": ["other"]})
graph.add_edge(START, "middle")
graph.add_edge(START, "other")
app = graph.compile(checkpointer=InMemorySaver())


def show(snapshot, depth=0):
    print("  " * depth, snapshot.values, snapshot.next, snapshot.metadata["step"])
    for task in snapshot.tasks:
        print("  " * depth, task.name, [question.value for question in task.interrupts], task.state is None)
        if task.state is not None:
            show(task.state, depth + 1)


app.invoke({"log": []}, config)
show(app.get_state(config, subgraphs=True))
app.invoke(Command(resume="yes"), config)
show(app.get_state(config, subgraphs=True))
