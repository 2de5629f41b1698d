"""Streams of graphs whose state is not an AgentState."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict, cast

import pytest

from agentbench import Agent, EchoChatClient
from agentbench.stategraph import (
    START,
    CompiledGraph,
    InMemorySaver,
    Message,
    Runtime,
    StateGraph,
    add_messages,
    interrupt,
)

THREAD = {"configurable": {"thread_id": "1"}, "metadata": {"team": "owls"}}


class Chat(TypedDict):
    topic: str
    talk: Annotated[list[Message], add_messages]


@dataclass
class Counted:
    n: int
    unit: str = "kg"
    log: list[str] = field(default_factory=list)


def chain(state: Any, **nodes: Any) -> CompiledGraph[Any]:
    """Return a graph that runs nodes in a row."""
    graph, before = StateGraph(state), START
    for name, function in nodes.items():
        graph.add_node(name, function).add_edge(before, name)
        before = name
    return graph.compile()


def test_messages_come_with_the_node_that_wrote_them() -> None:
    def greet(state: Chat) -> dict[str, Any]:
        return {"talk": [Message("assistant", ["Hello."]), Message("assistant", ["What is new?"])]}

    app = chain(Chat, greet=greet, close=lambda state: {"talk": Message("assistant", ["Bye."])})
    items = [*app.stream({"talk": "Hi", "topic": "owls"}, THREAD, stream_mode="messages")]

    assert [(message.text, facts["langgraph_node"], facts["langgraph_step"]) for message, facts in items] == [
        ("Hello.", "greet", 1), ("What is new?", "greet", 1), ("Bye.", "close", 2),
    ]  # fmt: skip
    assert [items[0][1][name] for name in ("thread_id", "team")] == ["1", "owls"]


async def test_pieces_of_a_message_are_not_followed_by_the_whole() -> None:
    app = chain(Chat, echo=Agent(EchoChatClient(), name="echo"))
    items = [item async for item in app.astream({"talk": "one two three"}, THREAD, stream_mode="messages")]

    assert len(items) > 1
    assert "".join(message.text for message, _ in items) == (await app.aget_state(THREAD)).values["talk"][-1].text
    assert {facts["langgraph_node"] for _, facts in items} == {"echo"}


def test_fields_without_a_value_are_not_in_the_values() -> None:
    def up(state: Counted, runtime: Runtime) -> dict[str, Any]:
        runtime.emit(state.unit)
        return {"n": state.n + 1}

    items = [*chain(Counted, up=up).stream(Counted(1), THREAD, stream_mode=["values", "custom"])]

    assert [item for mode, item in items if mode == "custom"] == ["kg"]
    assert [item["n"] for mode, item in items if mode == "values"] == [1, 2]
    assert [*chain(Counted, up=up).stream({"n": 1}, THREAD, stream_mode="values")] == [{"n": 1}, {"n": 2}]


def test_tasks_and_checkpoints_are_the_items_of_debug() -> None:
    app = chain(Chat, note=lambda state: {"topic": "notes"})
    items = [*app.stream({"topic": "owls"}, THREAD, stream_mode=["tasks", "checkpoints", "debug"])]

    debug = [item for mode, item in items if mode == "debug"]
    assert [item["payload"] for item in debug] == [item for mode, item in items if mode != "debug"]
    assert [item["type"] for item in debug] == ["checkpoint", "checkpoint", "task", "task_result", "checkpoint"]
    before, begin, started, ended, end = [item["payload"] for item in debug]
    assert (before["next"], before["values"]) == (["__start__"], {"talk": []})
    assert (begin["next"], begin["values"], end["next"]) == (["note"], {"topic": "owls", "talk": []}, [])
    assert (started["name"], started["input"]) == ("note", {"topic": "owls", "talk": []})
    assert (ended["result"], ended["error"], ended["interrupts"]) == ({"topic": "notes"}, None, [])
    assert app.get_state(end["config"]).values == end["values"]
    assert end["parent_config"] == begin["config"]


def test_an_item_is_a_copy() -> None:
    app = chain(Chat, note=lambda state: {"topic": "notes"}, more=lambda state: {"topic": state["topic"] + "!"})
    for item in app.stream({"topic": "owls"}, THREAD, stream_mode="values"):
        item["topic"] = "changed"

    assert app.get_state(THREAD).values["topic"] == "notes!"


def test_a_failed_run_yields_what_came_before_the_error() -> None:
    def fail(state: Chat) -> None:
        raise LookupError("nothing")

    stream = chain(Chat, note=lambda state: {"topic": "notes"}, fail=fail).stream({"topic": "owls"}, THREAD)

    assert next(stream) == {"note": {"topic": "notes"}}
    with pytest.raises(LookupError):
        next(stream)


def test_a_stream_that_is_closed_early_pauses_the_thread() -> None:
    app = chain(Chat, one=lambda state: {"topic": "1"}, two=lambda state: {"topic": "2"}, three=lambda state: None)
    with closing(cast("Generator[Any]", app.stream({"topic": "0"}, THREAD))) as stream:
        next(stream)

    assert app.get_state(THREAD).next
    assert app.invoke(None, THREAD)["topic"] == "2"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="'updates', 'values'"):
        next(iter(chain(Chat, note=lambda state: None).stream({"topic": "x"}, THREAD, stream_mode="news")))


class Numbers(list[int]):
    """Numbers that cannot be compared as a whole, like an array."""

    def __eq__(self, other: object) -> bool:
        message = "ambiguous"
        raise ValueError(message)

    __ne__ = __eq__
    __hash__ = None


def test_a_pause_beside_a_node_that_returned_an_array_is_streamed() -> None:
    class State(TypedDict):
        numbers: Any
        answer: str

    graph = StateGraph(State).add_node("count", lambda state: {"numbers": Numbers([1, 2])}).add_edge(START, "count")
    graph.add_node("ask", lambda state: {"answer": interrupt("?")}).add_edge(START, "ask")
    app = graph.compile(checkpointer=InMemorySaver())
    *_, last = app.stream({"numbers": Numbers([0])}, THREAD, stream_mode="values")
    assert [*last["numbers"]] == [1, 2]
