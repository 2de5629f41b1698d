import operator
from typing import Annotated, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite


class Shared(TypedDict):
    docs: Annotated[list[str], operator.add]
    query: str


class Private(TypedDict):
    query: str
    docs: Annotated[list[str], operator.add]
    scratch: str


def team(name):
    def search(state: Private):
        return {"scratch": f"{name}:{state['query']}", "docs": []}

    def save(state: Private):
        return {"docs": [state["scratch"]]}

    g = StateGraph(Private, output_schema=Out)
    g.add_sequence([search, save])
    g.add_edge(START, "search")
    return g.compile()


class Out(TypedDict):
    docs: Annotated[list[str], operator.add]


g = StateGraph(Shared)
g.add_node("web", team("web"))
g.add_node("db", team("db"))
g.add_node("join", lambda s: {"docs": [f"joined {len(s['docs'])}"]})
g.add_edge(START, "web")
g.add_edge(START, "db")
g.add_edge(["web", "db"], "join")
app = g.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
print(app.invoke({"query": "q1"}, config))
print(app.invoke({"query": "q2", "docs": Overwrite([])}, config))


def check(state: Shared) -> Command[Literal["__end__"]]:
    if len(state["docs"]) > 1:
        return Command(graph=Command.PARENT, goto="report", update={"docs": ["left early"]})
    return Command(goto=END)


inner = StateGraph(Shared).add_node("check", check).add_edge(START, "check").compile()
g = StateGraph(Shared)
g.add_node("inner", inner)
g.add_node("report", lambda s: {"docs": [f"report {s['query']}"]})
g.add_node("more", lambda s: {"docs": ["more"]})
g.add_edge(START, "inner")
g.add_edge("more", "inner")
g.add_conditional_edges("inner", lambda s: "more" if len(s["docs"]) < 3 else END, ["more", END])
app = g.compile()
print(app.invoke({"query": "x"}))
