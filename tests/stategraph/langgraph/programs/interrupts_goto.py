import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


graph = StateGraph(State)
graph.add_node("ask", lambda state: {"log": [f"ask {state['n']} {interrupt('?')}"]})
graph.add_node("after", lambda state: {"log": ["after"]})
graph.add_node("x", lambda state: {"log": [f"x {state['n']}"]})
graph.add_node("y", lambda state: {"log": ["y"]})
graph.add_edge(START, "ask")
graph.add_edge("ask", "after")
graph.add_edge("x", "y")
app = graph.compile(checkpointer=InMemorySaver())
commands = [
    Command(resume="yes", goto="x"),
    Command(resume="yes", goto=["x", "y"]),
    Command(resume="yes", goto=Send("x", {"n": 77})),
    Command(resume="yes", goto="ask"),
    Command(resume="yes", update={"n": 5}),
    Command(resume="yes", update={"n": 5, "log": ["update"]}, goto="x"),
]
for number, command in enumerate(commands):
    config = {"configurable": {"thread_id": str(number)}}
    app.invoke({"n": 1, "log": []}, config)
    print(app.invoke(command, config), app.get_state(config).next)

print("without an answer: on a paused, a new and a finished thread")
commands = [Command(goto="y"), Command(update={"n": 5}), Command(goto="y", update={"n": 6}), Command(goto=Send("x", {"n": 7}))]
for number, command in enumerate(commands, 10):
    config = {"configurable": {"thread_id": str(number)}}
    app.invoke({"n": 1, "log": []}, config)
    for given in (command, Command(resume="yes")):
        result = app.invoke(given, config)
        print(sorted(result["log"]), result["n"], len(result.get("__interrupt__", ())), app.get_state(config).next)

graph = StateGraph(State)
for name in "xyz":
    graph.add_node(name, lambda state, name=name: {"log": [name]})
graph.add_edge(START, "x")
app = graph.compile(checkpointer=InMemorySaver())
for number, command in enumerate(commands, 20):
    config = {"configurable": {"thread_id": str(number)}}
    first = {"n": 1, "log": []} if command.update else command
    print(sorted(app.invoke(first, config)["log"]), app.invoke(command, config))
app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["x"])
for number, command in enumerate(commands, 30):
    config = {"configurable": {"thread_id": str(number)}}
    print(app.invoke({"n": 1, "log": []}, config), sorted(app.invoke(command, config)["log"]))
