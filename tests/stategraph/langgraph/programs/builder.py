from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    steps: list[str]


def one(state: State):
    return {"steps": [*state["steps"], "one"]}


def two(state: State):
    return {"steps": [*state["steps"], "two"]}


class Three:
    def __call__(self, state: State):
        return {"steps": [*state["steps"], "three"]}


app = StateGraph(State).add_node(one).add_node(two).add_edge(START, "one").add_edge("one", "two").compile()
print(app.invoke({"steps": []}))

app = StateGraph(State).add_sequence([one, two, ("three", Three())]).add_edge(START, "one").compile()
print(app.invoke({"steps": []}))

graph = StateGraph(State)
graph.add_node("one", one)
graph.add_node("two", two)
graph.add_node("three", Three())
graph.set_entry_point("one")
graph.add_edge("one", "three")
graph.set_finish_point("three")
print(graph.compile().invoke({"steps": []}))


def pick(state: State) -> Literal["one", "two"]:
    return "two" if state["steps"] else "one"


graph = StateGraph(State)
graph.add_node(one)
graph.add_node(two)
graph.set_conditional_entry_point(pick)
app = graph.compile()
print(app.invoke({"steps": []}), app.invoke({"steps": ["zero"]}))

graph = StateGraph(State)
graph.add_node(one)
graph.add_node(two, metadata={"kind": "last"}, destinations=("one", END))
graph.set_conditional_entry_point(lambda state: len(state["steps"]), {0: "one", 1: "two"})
graph.add_conditional_edges("one", lambda state: len(state["steps"]) > 1, {True: END, False: "two"})
app = graph.compile(name="picker")
print(app.name, app.invoke({"steps": []}), app.invoke({"steps": ["zero"]}))
