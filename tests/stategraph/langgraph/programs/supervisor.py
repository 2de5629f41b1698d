import operator
from typing import Annotated, Literal

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

members = ["researcher", "coder"]


class State(MessagesState):
    next: str
    done: Annotated[list[str], operator.add]


def supervisor_node(state: State) -> Command[Literal["researcher", "coder", "__end__"]]:
    left = [member for member in members if member not in state["done"]]
    goto = left[0] if left else "FINISH"
    if goto == "FINISH":
        goto = END
    return Command(goto=goto, update={"next": goto})


def research_node(state: State) -> Command[Literal["supervisor"]]:
    return Command(
        update={"messages": [{"role": "user", "content": "facts"}], "done": ["researcher"]}, goto="supervisor"
    )


def code_node(state: State) -> Command[Literal["supervisor"]]:
    return Command(update={"messages": [("user", "code")], "done": ["coder"]}, goto="supervisor")


builder = StateGraph(State)
builder.add_edge(START, "supervisor")
builder.add_node("supervisor", supervisor_node)
builder.add_node("researcher", research_node)
builder.add_node("coder", code_node)
graph = builder.compile()
for s in graph.stream({"messages": [("user", "What's the square root of 42?")]}, subgraphs=True):
    path, update = s
    for node, values in update.items():
        print(path, node, {key: value if key != "messages" else "..." for key, value in values.items()})
result = graph.invoke({"messages": [("user", "hi")]})
print(result["next"], result["done"], [m.text for m in result["messages"]])
