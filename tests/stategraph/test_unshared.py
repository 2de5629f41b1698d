"""Whoever changes an object that they got from a graph or passed to it changes nothing in it, messages included."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from agentbench import Content, FileCheckpointStorage, Message
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.stategraph import END, AgentState, Overwrite, StateGraph, add_messages

CONFIG = {"thread_id": "t"}
KEPT: list[Any] = []
"""What the node returned, as a node of a careless user may keep it."""

STORAGES: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: None,
    "files": lambda folder: FileCheckpointStorage(folder / "files"),
    "sqlite": lambda folder: SQLCheckpointStorage(folder / "checkpoints.db"),
}


class Talk(AgentState):
    items: Annotated[list[Any], operator.add] = []
    box: dict[str, Any] = {}


class Typed(TypedDict):
    messages: Annotated[list[Any], add_messages]
    items: Annotated[list[Any], operator.add]
    box: dict[str, Any]


async def answer(state: Any) -> dict[str, Any]:
    call = Content.from_function_call("c1", "look", arguments={"at": ["a"]})
    asked = Content.from_function_approval_request("r1", call)
    said = Message("assistant", ["well", call, asked], additional_properties={"k": ["v"]})
    given: dict[str, Any] = {"messages": [said], "box": {"content": Content.from_text("well")}}
    given |= {"items": [{"n": [1]}]}
    KEPT.append(given)
    return given


def spoil(value: Any) -> None:
    """Change everything in a value that can be changed."""
    if isinstance(value, Content):
        value.text = "spoilt"
        for part in (value.arguments, value.function_call):
            spoil(part)
    elif isinstance(value, Message):
        for content in value.contents:
            spoil(content)
        value.contents.append(Content.from_text("spoilt"))
        spoil(value.additional_properties)
    elif isinstance(value, AgentState):
        spoil({name: getattr(value, name) for name in ("context", "items", "box")})
    elif isinstance(value, dict):
        for item in [*value.values()]:
            spoil(item)
        value["spoilt"] = True
    elif isinstance(value, list):
        for item in [*value]:
            spoil(item)
        value.append("spoilt")


def written(value: Any) -> str:
    """Return all of a value as text."""
    if isinstance(value, AgentState):
        value = {name: getattr(value, name) for name in ("context", "items", "box")}
    if isinstance(value, Message):
        return str([value.role, [content.to_dict() for content in value.contents], value.additional_properties])
    if isinstance(value, Content):
        return str(value.to_dict())
    if isinstance(value, dict):
        return str({key: written(item) for key, item in value.items()})
    return str([written(item) for item in value]) if isinstance(value, list) else repr(value)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("cls", [Talk, Typed])
async def test_nothing_outside_a_graph_changes_it(cls: Any, storage: str, tmp_path: Path) -> None:
    graph = StateGraph(Talk() if cls is Talk else Typed).add_node("answer", answer).add_edge("answer", END)
    app: Any = graph.set_entry_point("answer").compile(STORAGES[storage](tmp_path))
    for turn in range(12):  # long enough for a list to be stored in parts
        given = {
            "messages": [Message("user", [f"turn {turn}"], additional_properties={"p": [1]})],
            "items": [{"i": [1]}],
        }
        result = await app.ainvoke(given, CONFIG)
        for each in (given, result.messages, result.state, dict(result), *KEPT):
            spoil(each)
        KEPT.clear()
        spoil((await app.aget_state(CONFIG)).values)
        async for mode, chunk in app.astream({"items": []}, CONFIG, stream_mode=["values", "updates", "messages"]):
            assert "spoilt" not in written(chunk), mode
            spoil(chunk)
        KEPT.clear()
    values = (await app.aget_state(CONFIG)).values

    assert "spoilt" not in written(values)
    assert len(values.context if cls is Talk else values["messages"]) == 3 * 12


async def test_an_answer_in_the_conversation_stays_when_a_node_writes_the_conversation_anew() -> None:
    call = Content.from_function_call("c1", "refund", arguments="{}")
    answer = Content.from_function_approval_response(approved=True, id="r1", function_call=call)

    async def trim(state: Talk) -> dict[str, Any]:
        return {"context": Overwrite([*state.context])}

    app = StateGraph(Talk()).add_node("trim", trim).set_entry_point("trim").add_edge("trim", END).compile()
    result = await app.ainvoke({"messages": [Message("user", [answer])]}, CONFIG)

    assert result.state.context[0].contents[0].approved is True
    assert result.warnings == []


async def test_a_result_is_copied_and_pickled_with_its_state_and_events() -> None:
    app = StateGraph(Talk()).add_node("answer", answer).set_entry_point("answer").add_edge("answer", END).compile()
    result = await app.ainvoke({"messages": ["Hello"]}, CONFIG)

    for copied in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert dict(copied) == dict(result)
        assert copied.state == result.state
        assert [event.type for event in copied.events] == [event.type for event in result.events]
        assert copied.tasks == result.tasks
