from dataclasses import dataclass
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime


@dataclass
class Context:
    user: str
    language: str = "en"


class State(TypedDict):
    greeting: str
    again: str


def greet(state: State, runtime: Runtime[Context]):
    word = {"en": "Hello", "de": "Hallo"}[runtime.context.language]
    return {"greeting": f"{word}, {runtime.context.user}"}


def again(state: State):
    return {"again": get_runtime(Context).context.user}


def choose(state: State, runtime: Runtime[Context]):
    return "again" if runtime.context.language == "de" else END


graph = StateGraph(State, context_schema=Context)
graph.add_node("greet", greet)
graph.add_node("again", again)
graph.add_edge(START, "greet")
graph.add_conditional_edges("greet", choose, ["again", END])
app = graph.compile()
print(app.invoke({}, context=Context("Ann")))
print(app.invoke({}, context=Context("Bob", "de")))
print(app.invoke({}, context={"user": "Cid", "language": "de"}))


class Settings(TypedDict):
    model: str


def which(state: State, runtime: Runtime[Settings]):
    return {"greeting": runtime.context["model"]}


graph = StateGraph(State, context_schema=Settings)
graph.add_node("which", which)
graph.add_edge(START, "which")
print(graph.compile().invoke({}, context={"model": "small"}))


def none(state: State, runtime: Runtime):
    return {"greeting": repr(runtime.context)}


graph = StateGraph(State)
graph.add_node("none", none)
graph.add_edge(START, "none")
print(graph.compile().invoke({}))
