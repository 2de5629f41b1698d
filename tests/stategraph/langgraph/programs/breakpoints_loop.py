import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    drafts: Annotated[list, operator.add]
    approved: bool


def write(state: State):
    return {"drafts": [f"draft {len(state['drafts']) + 1}"]}


def review(state: State):
    return {"approved": len(state["drafts"]) == 2}


graph = StateGraph(State)
graph.add_node("write", write)
graph.add_node("review", review)
graph.add_edge(START, "write")
graph.add_edge("write", "review")
graph.add_conditional_edges("review", lambda state: END if state["approved"] else "write", ["write", END])
for place in ({"interrupt_before": ["review"]}, {"interrupt_after": ["write"]}, {"interrupt_before": "*"}):
    app = graph.compile(checkpointer=InMemorySaver(), **place)
    config = {"configurable": {"thread_id": "1"}}
    result = app.invoke({"approved": False}, config)
    print(result, app.get_state(config).next)
    while app.get_state(config).next:
        result = app.invoke(None, config)
        print(result, app.get_state(config).next)
