import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def ask(state: State):
    return {"log": [interrupt("name?"), interrupt("age?")]}


fails = True


def check(state: State):
    if fails:
        raise ValueError("not yet")
    return {"log": ["checked"]}


graph = StateGraph(State)
graph.add_sequence([ask, check])
graph.add_edge(START, "ask")
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}


def show():
    for snapshot in app.get_state_history(config):
        questions = [question.value for question in snapshot.interrupts]
        print(snapshot.metadata["step"], snapshot.values, snapshot.next, questions)


app.invoke({"log": ["begin"]}, config)
show()
app.invoke(Command(resume="Ann"), config)
show()
for _ in range(2):
    try:
        app.invoke(Command(resume="7") if app.get_state(config).next == ("ask",) else None, config)
    except ValueError as error:
        print("failed:", error)
print(app.get_state(config).next, bool(app.get_state(config).tasks[0].error))
print([(snapshot.metadata["step"], snapshot.next) for snapshot in app.get_state_history(config)])
fails = False
print(app.invoke(None, config))
asked = next(snapshot for snapshot in app.get_state_history(config) if snapshot.next == ("ask",))
result = app.invoke(None, asked.config)
print([question.value for question in result["__interrupt__"]])
app.invoke(Command(resume="Bob"), config)
print(app.invoke(Command(resume="9"), config))
