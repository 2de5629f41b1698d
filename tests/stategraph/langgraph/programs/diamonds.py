import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    aggregate: Annotated[list, operator.add]


def node(name):
    def run(state: State):
        return {"aggregate": [f"{name}{len(state['aggregate'])}"]}

    run.__name__ = name
    return run


def build(defer, listed):
    g = StateGraph(State)
    for name in ("a", "b", "b2", "c", "d"):
        g.add_node(name, node(name), defer=defer and name == "d")
    g.add_edge(START, "a")
    g.add_edge("a", "b")
    g.add_edge("a", "c")
    g.add_edge("b", "b2")
    if listed:
        g.add_edge(["b2", "c"], "d")
    else:
        g.add_edge("b2", "d")
        g.add_edge("c", "d")
    g.add_edge("d", END)
    return g.compile()


for defer in (False, True):
    for listed in (False, True):
        print(defer, listed, build(defer, listed).invoke({"aggregate": []})["aggregate"])
for item in build(True, False).stream({"aggregate": []}):
    print(item)
# loop with parallel work inside
g = StateGraph(State)
for name in "abcd":
    g.add_node(name, node(name))
g.add_edge(START, "a")
g.add_conditional_edges("a", lambda s: "b" if len(s["aggregate"]) < 7 else END, ["b", END])
g.add_edge("b", "c")
g.add_edge("b", "d")
g.add_edge(["c", "d"], "a")
print(g.compile().invoke({"aggregate": []}))
