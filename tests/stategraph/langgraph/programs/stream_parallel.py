import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict):
    items: list[int]
    done: Annotated[list, operator.add]


def work(state):
    return {"done": [state["item"] * 10]}


def check(state: State):
    return {"done": [interrupt(f"is {sum(state['done'])} right?")]}


graph = StateGraph(State)
graph.add_node("work", work)
graph.add_node("check", check)
graph.add_conditional_edges(START, lambda state: [Send("work", {"item": item}) for item in state["items"]], ["work"])
graph.add_edge("work", "check")
app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["check"])
config = {"configurable": {"thread_id": "1"}}
*updates, pause = app.stream({"items": [1, 2, 3]}, config)
print(sorted(update["work"]["done"] for update in updates), pause)
for mode in ("updates", "values"):
    config = {"configurable": {"thread_id": mode}}
    for given in ({"items": [4]}, None, Command(resume="yes")):
        for item in app.stream(given, config, stream_mode=mode):
            shown = {key: value for key, value in item.items() if key != "__interrupt__"}
            print(mode, shown, [question.value for question in item.get("__interrupt__", ())])
