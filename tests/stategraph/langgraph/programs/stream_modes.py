import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    topic: str
    notes: Annotated[list[str], operator.add]


def search(state: State):
    writer = get_stream_writer()
    writer({"progress": f"searching {state['topic']}"})
    return {"notes": ["found"]}


def skip(state: State):
    return None


def write(state: State):
    get_stream_writer()("writing")
    return {"topic": state["topic"].upper(), "notes": ["written"]}


graph = StateGraph(State)
graph.add_node("search", search)
graph.add_node("skip", skip)
graph.add_node("write", write)
graph.add_edge(START, "search")
graph.add_edge("search", "skip")
graph.add_edge("skip", "write")
graph.add_edge("write", END)
app = graph.compile()

for item in app.stream({"topic": "owls"}):
    print(item)
for mode in ("updates", "values", "custom"):
    for item in app.stream({"topic": "owls"}, stream_mode=mode):
        print(mode, item)
for mode, item in app.stream({"topic": "owls"}, stream_mode=["custom", "updates", "values"]):
    print(mode, item)
for item in app.stream({"topic": "owls"}, stream_mode=["updates"]):
    print(item)
for item in app.stream({"topic": "owls"}, stream_mode="tasks"):
    started = "input" in item
    print(item["name"], item["input"] if started else item["result"], started or (item["error"], item["interrupts"]))

app = graph.compile(checkpointer=InMemorySaver())
for n in ("1", "1", "2"):
    thread = {"configurable": {"thread_id": n}}
    for item in app.stream({"topic": "owls"}, thread, stream_mode="checkpoints"):
        print(item["metadata"]["step"], item["values"], list(item["next"]))
for item in app.stream({"topic": "owls"}, {"configurable": {"thread_id": "3"}}, stream_mode="debug"):
    print(item["step"], item["type"])
