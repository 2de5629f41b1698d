import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


class JokeState(TypedDict):
    subject: str


def make_subjects(state: State):
    return {"subjects": ["cats", "dogs", "owls"]}


def each_subject(state: State):
    return [Send("joke", {"subject": subject}) for subject in state["subjects"]]


def joke(state: JokeState):
    return {"jokes": [f"about {state['subject']}, knowing {sorted(state)}"]}


def pick(state: State):
    return {"best": max(state["jokes"], key=len)}


graph = StateGraph(State)
graph.add_node("make_subjects", make_subjects)
graph.add_node("joke", joke)
graph.add_node("pick", pick)
graph.add_edge(START, "make_subjects")
graph.add_conditional_edges("make_subjects", each_subject, ["joke"])
graph.add_edge("joke", "pick")
graph.add_edge("pick", END)
print(graph.compile().invoke({}))


class Numbers(TypedDict):
    results: Annotated[list, operator.add]


def of_any_type(value):
    return {"results": [(type(value).__name__, value)]}


graph = StateGraph(Numbers)
graph.add_node("of_any_type", of_any_type)
graph.add_conditional_edges(START, lambda state: [Send("of_any_type", item) for item in (3, "text", [1, 2], {"a": 1})])
print(graph.compile().invoke({}))
