from typing_extensions import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    number: int
    seen: list[int]


def half(state: State):
    return {"number": state["number"] // 2, "seen": [*state.get("seen", []), state["number"]]}


def triple(state: State):
    return {"number": 3 * state["number"] + 1, "seen": [*state.get("seen", []), state["number"]]}


def next_step(state: State) -> str:
    if state["number"] == 1:
        return END
    return "triple" if state["number"] % 2 else "half"


graph = StateGraph(State)
graph.add_node("half", half)
graph.add_node("triple", triple)
graph.add_conditional_edges(START, next_step)
graph.add_conditional_edges("half", next_step)
graph.add_conditional_edges("triple", next_step)
app = graph.compile()
print(app.invoke({"number": 6}))
print(app.invoke({"number": 27})["seen"][-3:])
print(app.invoke({"number": 1}))
