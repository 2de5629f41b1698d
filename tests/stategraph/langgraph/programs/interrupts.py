import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    question: str
    answers: Annotated[list[str], operator.add]


def ask(state: State):
    first = interrupt({"ask": state["question"]})
    second = interrupt(f"after {first}?")
    return {"answers": [first, second]}


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_edge(START, "ask")
graph.add_edge("ask", END)
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
result = app.invoke({"question": "name"}, config)
print([item.value for item in result["__interrupt__"]], {k: v for k, v in result.items() if k != "__interrupt__"})
print(app.get_state(config).next, [item.value for item in app.get_state(config).interrupts])
result = app.invoke(Command(resume="Ann"), config)
print([item.value for item in result["__interrupt__"]])
print(app.invoke(Command(resume="Bob"), config))
print(app.get_state(config).next)

# Two questions at once, answered by their ids.
graph = StateGraph(State)
for name in ("left", "right"):
    graph.add_node(name, lambda state, name=name: {"answers": [f"{name}: {interrupt(name)}"]})
    graph.add_edge(START, name)
app = graph.compile(checkpointer=InMemorySaver())
result = app.invoke({"question": "?"}, config)
asked = sorted(result["__interrupt__"], key=lambda item: item.value)
print([item.value for item in asked])
print(app.invoke(Command(resume={item.id: item.value.upper() for item in asked}), config))

# An answer together with an update.
graph = StateGraph(State)
graph.add_node("ask", lambda state: {"answers": [interrupt("go?"), state["question"]]})
graph.add_edge(START, "ask")
app = graph.compile(checkpointer=InMemorySaver())
app.invoke({"question": "old"}, config)
print(app.invoke(Command(resume="yes", update={"question": "new"}), config))
