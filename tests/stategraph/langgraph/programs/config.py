from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph


class State(TypedDict):
    seen: list


def read(state: State, config: RunnableConfig):
    values = config["configurable"]
    return {"seen": [values["user"], values["thread_id"], config["metadata"].get("ticket"), config["tags"]]}


graph = StateGraph(State)
graph.add_node("read", read)
graph.add_edge(START, "read")
app = graph.compile()
config = {"configurable": {"user": "ann", "thread_id": "7"}, "metadata": {"ticket": 5}, "tags": ["x"]}
print(app.invoke({}, config))


def choose(state: State, config: RunnableConfig):
    return config["configurable"]["to"]


def node(name):
    return lambda state: {"seen": [name]}


graph = StateGraph(State)
graph.add_node("left", node("left"))
graph.add_node("right", node("right"))
graph.add_conditional_edges(START, choose, ["left", "right"])
print(graph.compile().invoke({}, {"configurable": {"to": "right"}}))
