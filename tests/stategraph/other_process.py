"""Another process at work on a thread: `python -m tests.stategraph.other_process STORAGE COMMAND`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agentbench import FileCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.stategraph import END, AgentState, StateGraph

CONFIG = {"thread_id": "t"}


def compiled(place: str, *more_nodes: str) -> Any:
    """A graph that answers with the number of messages that it found."""

    async def answer(state: AgentState) -> str:
        return f"{len(state.context)} messages"

    graph = StateGraph(AgentState(), name="chat").add_node("answer", answer).set_entry_point("answer")
    for name in more_nodes:
        graph.add_node(name, answer).add_edge("answer", name).add_edge(name, END)
    if not more_nodes:
        graph.add_edge("answer", END)
    storage = SQLCheckpointStorage(place) if place.endswith(".db") else FileCheckpointStorage(place)
    return graph.compile(storage)


async def work(place: str, command: str) -> None:
    app = compiled(place, *(["more"] if command == "another graph" else []))
    if command == "turn":
        await app.ainvoke({"messages": ["of the other process"]}, CONFIG)
    elif command == "another graph":
        await app.ainvoke({"messages": ["of the other graph"]}, {**CONFIG, "on_graph_change": "allow"})
    elif command == "edit":
        context = (await app.aget_state(CONFIG)).values.context
        await app.aupdate_state(CONFIG, {"context_summary": f"edited after {len(context)}"})
    elif command == "delete":
        await app.adelete_thread(CONFIG)
    elif command == "go back":
        history = await app.aget_state_history(CONFIG)
        await app.ainvoke({"messages": ["from the first turn"]}, {**CONFIG, **history[-2].config})


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
