"""Chunks of a stream as plain values."""

from __future__ import annotations

import json
from typing import Any

from agentbench.stategraph.core.graph import StateGraph
from agentbench.stategraph.core.state import AgentState, StreamEvent
from agentbench.stategraph.utils import END, START, ResponseGranularity, interrupt


class Order(AgentState):
    order_id: str = ""


def ask(state: Order) -> dict[str, Any]:
    interrupt({"order": state.order_id}, message="Ship it?")
    return {}


def test_every_chunk_has_a_plain_form() -> None:
    graph = StateGraph(Order).add_node("say", lambda state: "Hello.").add_node("ask", ask)
    app = graph.add_edge(START, "say").add_edge("say", "ask").add_edge("ask", END).compile()

    chunks = [*app.stream({"messages": "Hi", "order_id": "o1"}, {"thread_id": "t1"}, ResponseGranularity.FULL)]

    assert {chunk.event for chunk in chunks} == {StreamEvent.MESSAGE, StreamEvent.STATE, StreamEvent.UPDATES}
    for chunk in chunks:
        plain = chunk.model_dump()
        assert [*plain] == [*vars(chunk)]
        assert (plain["event"], plain["thread_id"]) == (chunk.event.value, "t1")
        assert json.loads(chunk.model_dump_json()) == plain == json.loads(json.dumps(plain))
        assert None not in json.loads(chunk.model_dump_json(indent=2, exclude_none=True)).values()
    said = next(chunk.model_dump() for chunk in chunks if chunk.message and chunk.message.role == "assistant")
    assert said["message"]["contents"][0]["text"] == "Hello."
    times = [chunk.timestamp for chunk in chunks]
    assert all(isinstance(each, float) for each in times)
    state = [chunk.model_dump()["state"] for chunk in chunks if chunk.event is StreamEvent.STATE][-1]
    assert (state["order_id"], state["context"][0]["role"]) == ("o1", "user")
    asked = next(chunk.model_dump() for chunk in chunks if (chunk.data or {}).get("status") == "interrupted")
    assert asked["data"]["interrupt"]["message"] == "Ship it?"
