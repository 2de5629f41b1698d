import operator
import os
import subprocess
import sys
import tempfile
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    notes: Annotated[list[str], operator.add]


def ask(state: State):
    return {"notes": [f"answer: {interrupt('Go on?')}"]}


def app_of(saver):
    graph = StateGraph(State)
    graph.add_node("plan", lambda state: {"notes": ["planned"]})
    graph.add_node("ask", ask)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "ask")
    return graph.compile(checkpointer=saver)


thread = {"configurable": {"thread_id": "1"}}
path = os.environ.get("SECOND_PROCESS")
if path:
    with SqliteSaver.from_conn_string(path) as saver:
        app = app_of(saver)
        print(app.get_state(thread).next, app.get_state(thread).values)
        print(app.invoke(Command(resume="yes"), thread))
        print([snapshot.next for snapshot in app.get_state_history(thread)])
else:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "threads.db")
        with SqliteSaver.from_conn_string(path) as saver:
            print(app_of(saver).invoke({"notes": ["begun"]}, thread)["notes"])
        child = [sys.executable, "-W", "ignore", __file__]
        print(subprocess.run(child, env={**os.environ, "SECOND_PROCESS": path}, capture_output=True, text=True).stdout)
        with SqliteSaver.from_conn_string(path) as saver:
            app = app_of(saver)
            print(app.get_state(thread).next, app.get_state(thread).values)
            print(app.invoke({"notes": ["again"]}, thread)["notes"])
