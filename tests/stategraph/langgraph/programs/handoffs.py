import operator
from typing import Annotated

from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class SwarmState(TypedDict):
    active: str
    log: Annotated[list[str], operator.add]


def make_agent(name, other):
    def think(state: SwarmState):
        if len(state["log"]) < 5 and not state["log"][-1].endswith("stay"):
            return Command(
                goto=other, graph=Command.PARENT, update={"active": other, "log": [f"{name} hands to {other}"]}
            )
        return Command(goto="answer")

    def answer(state: SwarmState):
        return {"log": [f"{name} answers"]}

    agent = StateGraph(SwarmState)
    agent.add_node("think", think, destinations=("answer",))
    agent.add_node("answer", answer)
    agent.add_edge(START, "think")
    return agent.compile(name=name)


def route(state: SwarmState):
    return state.get("active", "alice")


swarm = StateGraph(SwarmState)
swarm.add_node("alice", make_agent("alice", "bob"), destinations=("bob",))
swarm.add_node("bob", make_agent("bob", "alice"), destinations=("alice",))
swarm.add_conditional_edges(START, route, path_map=["alice", "bob"])
app = swarm.compile(checkpointer=MemorySaver())
config = {"configurable": {"thread_id": "1"}}
print(app.invoke({"log": ["hello"]}, config))
print(app.invoke({"log": ["please stay"]}, config))
for namespace, chunk in app.stream(
    {"log": ["x"]}, {"configurable": {"thread_id": "2"}}, stream_mode="updates", subgraphs=True
):
    print([n.split(":")[0] for n in namespace], chunk)
