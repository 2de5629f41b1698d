import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    n: int


graph = StateGraph(State)
graph.add_node("ask", lambda state: {"log": [f"ask {interrupt('?')} {state['n']}"]})
graph.add_node("beside", lambda state: {"log": ["beside"]})
graph.add_node("last", lambda state: {"log": ["last"]})
graph.add_node("other", lambda state: {"log": [f"other {state['n']}"]})
graph.add_edge(START, "ask")
graph.add_edge(START, "beside")
graph.add_edge("ask", "last")
commands = [
    Command(update={"n": 2}),
    Command(goto="other"),
    Command(goto=["other", "last"]),
    Command(goto=Send("other", {"n": 3})),
    Command(update={"n": 4, "log": ["update"]}, goto="other"),
]


def show(app, config, *inputs):
    for data in inputs:
        result = app.invoke(data, config)
    print("   ", result, app.get_state(config).next)


print("the thread waits for an answer")
app = graph.compile(checkpointer=InMemorySaver())
for number, command in enumerate(commands):
    print(number)
    show(app, {"configurable": {"thread_id": number}}, {"n": 1, "log": []}, command, Command(resume="yes"))

print("the thread waits at a breakpoint")
app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["last"])
for number, command in enumerate(commands[:2] + commands[3:]):
    print(number)
    show(app, {"configurable": {"thread_id": number}}, {"n": 1, "log": []}, Command(resume="yes"), command)

print("the thread has finished")
app = graph.compile(checkpointer=InMemorySaver())
for number, command in enumerate(commands[:2] + commands[3:]):
    print(number)
    show(app, {"configurable": {"thread_id": number}}, {"n": 1, "log": []}, Command(resume="yes"), command)
