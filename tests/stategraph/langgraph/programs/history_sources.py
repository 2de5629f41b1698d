import asyncio
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


graph = StateGraph(State)
graph.add_node("plan", lambda state: {"log": ["plan"]})
graph.add_node("act", lambda state: {"n": state["n"] + 1, "log": ["act"]})
graph.add_edge(START, "plan")
graph.add_edge("plan", "act")
app = graph.compile(checkpointer=InMemorySaver())


def show(config, **chosen):
    for snapshot in app.get_state_history(config, **chosen):
        facts = snapshot.metadata["step"], snapshot.metadata["source"], snapshot.next, snapshot.values
        print("   ", *facts, [task.name for task in snapshot.tasks])


for as_node in (None, START, "plan", "act"):
    config = {"configurable": {"thread_id": f"begins with {as_node}"}}
    print("begins with an update as", as_node)
    app.update_state(config, {"n": 3}, as_node=as_node)
    show(config)
    print(app.invoke(None, config))
    show(config)
    print(app.invoke({"n": 50}, config))
    show(config)

print("begins with an empty update")
config = {"configurable": {"thread_id": "empty"}}
app.update_state(config, None)
show(config)

print("a finished thread")
config = {"configurable": {"thread_id": "finished"}}
app.invoke({"n": 1}, config)
print(app.invoke(None, config), asyncio.run(app.ainvoke(None, config)))
for mode in ("updates", "values", "tasks", "custom"):
    print(mode, list(app.stream(None, config, stream_mode=mode)))
show(config)
app.update_state(config, {"n": 8})
print(app.invoke(None, config))
first = list(app.get_state_history(config))[-2]
print(app.invoke(None, first.config))
edited = app.update_state(first.config, {"n": 70})
print(app.invoke(None, edited))
finished = [each for each in app.get_state_history(config) if not each.next][-1]
print(app.invoke(None, finished.config))
print(app.invoke({"n": 9}, config))
show(config)
for source in ("input", "loop", "update", "fork"):
    print(source)
    show(config, filter={"source": source})

print("pauses and errors")
graph = StateGraph(State)
graph.add_node("ask", lambda state: {"log": [interrupt("go on?")]})
graph.add_node("fail", lambda state: {"n": 1 // 0})
graph.add_edge(START, "ask")
graph.add_edge("ask", "fail")
app = graph.compile(checkpointer=InMemorySaver())
app.invoke({"n": 1}, config)
show(config)
try:
    app.invoke(Command(resume="yes"), config)
except ZeroDivisionError as error:
    print(error)
show(config)
