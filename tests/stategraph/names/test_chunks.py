"""Chunks of a stream as plain values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench.stategraph.core.graph import StateGraph
from agentbench.stategraph.core.state import AgentState, Message, StreamChunk, StreamEvent
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


def test_the_fields_of_a_plain_form_are_chosen_as_with_pydantic() -> None:
    chunk = StreamChunk(StreamEvent.MESSAGE, message=Message("user", ["Hi"]), thread_id="t1")

    assert chunk.model_dump(mode="json") == chunk.model_dump(mode="python") == chunk.model_dump()
    assert chunk.model_dump(include={"event", "thread_id"}) == {"event": "message", "thread_id": "t1"}
    assert chunk.model_dump(exclude={"message", "metadata"}, exclude_none=True) == {
        "event": "message",
        "thread_id": "t1",
    }
    assert json.loads(chunk.model_dump_json(include=["event"], indent=2)) == {"event": "message"}


@pytest.mark.parametrize("choice", ["event", {"message": {"role"}}, 5])
def test_what_is_not_a_collection_of_names_of_fields_is_refused(choice: Any) -> None:
    chunk = StreamChunk(StreamEvent.MESSAGE)
    for argument in ("include", "exclude"):
        with pytest.raises(TypeError, match=argument):
            chunk.model_dump(**{argument: choice})
