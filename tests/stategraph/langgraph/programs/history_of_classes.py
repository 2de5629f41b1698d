import operator
from dataclasses import dataclass, field
from typing import Annotated

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel


@dataclass
class Order:
    item: str
    n: int = 1
    notes: Annotated[list, operator.add] = field(default_factory=list)


class Trip(BaseModel):
    item: str
    n: int = 1
    notes: Annotated[list, operator.add] = []


def double(state):
    return {"n": state.n * 2, "notes": [f"n={state.n}"]}


def tell(state):
    return {"notes": [f"{type(state).__name__} {state.item} {state.n}"]}


for cls in (Order, Trip):
    graph = StateGraph(cls)
    graph.add_node("double", double)
    graph.add_node("tell", tell)
    graph.add_edge(START, "double")
    graph.add_edge("double", "tell")
    app = graph.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}

    print(app.invoke(cls(item="map", n=3), thread))
    print(app.get_state(thread).values, app.get_state(thread).next)
    for snapshot in app.get_state_history(thread):
        print(snapshot.metadata["step"], snapshot.next, snapshot.values)

    before_tell = next(snapshot for snapshot in app.get_state_history(thread) if snapshot.next == ("tell",))
    print(app.invoke(None, before_tell.config))
    print(app.invoke(None, app.update_state(before_tell.config, {"n": 50})))
    print(app.invoke({"n": 4}, thread))
    print(len(list(app.get_state_history(thread))))
