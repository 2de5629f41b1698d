"""Messages in checkpoints: read where nothing of them was imported, and shared instead of copied."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentbench._copying import is_atomic, isolate
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from agentbench.serialization import registry
from agentbench.serialization.json_text import from_json, to_json
from agentbench.serialization.reader import JsonReader
from agentbench.serialization.writer import JsonWriter
from tests.messages.samples import contents, json_values, messages, records


class City(BaseModel):
    name: str


CONTENTS = [
    Content.from_text("a", annotations=[{"title": "t", "raw_representation": object()}], raw_representation=object()),
    Content.from_function_call("c", "f", arguments={"a": (1, 2), "when": {3}}),
    Content.from_function_result("c", result=[Content.from_text("r"), Content.from_data(b"x", "image/png")]),
    Content.from_function_approval_request("i", Content.from_function_call("c", "f")),
    Content.from_dict({"type": "hologram", "depth": 3}),
]
VALUES: list[Any] = [
    *CONTENTS,
    Message("user", CONTENTS, message_id=0, delta=True, timestamp=1.5, usages={"total_tokens": 1}, raw=object()),
    Message("user", additional_properties={"nested": Message("user", "b")}),
    ChatResponse(text="a", usage_details={"input_token_count": 1}, additional_properties={"x": 1}),
    AgentResponse(text="a", response_format={"type": "object"}, agent_id="x", value=[1]),
    AgentResponse(text='{"name": "Oslo"}', response_format=City, value=City(name="Rome")),
    ChatResponseUpdate(text="a", role="assistant", additional_properties={}),
    AgentResponseUpdate(contents=CONTENTS),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_come_back_with_everything_but_what_services_sent(value: Any) -> None:
    again = from_json(to_json(value))
    assert type(again) is type(value)
    assert again == value
    assert again.raw_representation is None
    assert getattr(again, "response_format", None) == getattr(value, "response_format", None)
    assert getattr(again, "value", None) == getattr(value, "value", None)
    assert getattr(again, "timestamp", None) == getattr(value, "timestamp", None)
    assert getattr(again, "usages", None) == getattr(value, "usages", None)


def test_arguments_that_json_does_not_have_come_back_as_they_were() -> None:
    assert from_json(to_json(CONTENTS[1])).arguments == {"a": (1, 2), "when": {3}}


def test_values_are_frozen_once_saved_and_so_they_are_shared() -> None:
    for value in VALUES:
        assert is_atomic(value)
        assert isolate({"messages": [value]})["messages"][0] is value


def test_a_subclass_may_hold_more_and_is_copied() -> None:
    class Note(Message):
        pass

    note = Note("user", "a")
    assert isolate([note])[0] is not note


READER = """
import asyncio, sys
from agentbench.checkpoints.file import FileCheckpointStorage

async def main():
    storage = FileCheckpointStorage(sys.argv[1])
    assert not any(name.startswith("agentbench.messages") for name in sys.modules)
    checkpoint = await storage.get_latest(workflow_name="chat")
    conversation, response = checkpoint.state["conversation"], checkpoint.state["response"]
    assert "agentbench.messages.message" in sys.modules
    assert "agentbench.workflows" not in sys.modules
    print(repr(conversation))
    print(repr(response))

asyncio.run(main())
"""


def test_a_checkpoint_is_read_in_a_process_that_has_not_imported_messages(tmp_path: Path) -> None:
    conversation = [Message("user", "hi", message_id=1), Message("assistant", CONTENTS)]
    state = {"conversation": conversation, "response": AgentResponse(text="bye", agent_id="x")}
    storage = FileCheckpointStorage(tmp_path)
    asyncio.run(storage.save(WorkflowCheckpoint(workflow_name="chat", graph_signature_hash="g", state=state)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", READER, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == f"{conversation!r}\n{state['response']!r}\n"


# --------------------------------------------------------------------------------------- the direct and the general way


def in_general(call: Callable[[], Any]) -> Any:
    """Return what a call does if contents and messages are stored in the way of every other class."""
    types = [
        registry._BY_CLASS[Content]._replace(decode=content_by_constructor, write=None),
        registry._BY_CLASS[Message]._replace(decode=lambda found: Message(**found), write=None),
    ]
    by_class, by_tag = {each.cls: each for each in types}, {each.tag: each for each in types}
    with mock.patch.dict(registry._BY_CLASS, by_class), mock.patch.dict(registry._BY_TAG, by_tag):
        return outcome(call)


def content_by_constructor(found: Any) -> Content:
    registry.of_kind(list, found.get("annotations", []))
    return Content(**found)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whichever it is
        return type(error)


def stored(value: Any) -> Any:
    """Return every attribute of a value with its class, so that what is not compared is compared too."""
    if isinstance(value, Message):
        return [Message, *[stored(getattr(value, name)) for name in Message.__slots__]]
    if isinstance(value, Content):
        return [Content, *[stored(part) for part in value.__getstate__()[1].values()]]
    if isinstance(value, dict):
        return [dict, *[(key, stored(item)) for key, item in value.items()]]
    return [type(value), *map(stored, value)] if isinstance(value, (list, tuple)) else (type(value), value)


RARE = sorted(
    Content("x").to_dict(exclude_none=False).keys() - {"type", "text", "annotations", "additional_properties"}
)
FIELDS = ["type", "text", "call_id", "arguments", "items", "result", "approved", "annotations", "additional_properties"]
FIELDS += [
    "role",
    "contents",
    "message_id",
    "delta",
    "timestamp",
    "usages",
    "raw_representation",
    "metadata",
    "unknown",
]
long_texts = st.text("ab\u00e9\ud800", min_size=1000, max_size=1100)
odd_values = st.one_of(
    st.sampled_from(
        [None, 0, "", 1.5, float("nan"), (1, "a"), {2}, {1: "a"}, {"__t__": 1}, 10**5000, object(), "a" * 2000]
    ),
    json_values,
    long_texts,
    contents,
    st.lists(contents | st.integers(), max_size=5),
)


@st.composite
def edited(draw: st.DrawFn) -> Any:
    """Return a content or a message, in which some attributes have values that no constructor checks, or none."""
    value: Any = draw(contents | messages)
    names = Message.__slots__ if isinstance(value, Message) else [*RARE, "type", "text", "additional_properties"]
    for name in draw(st.sets(st.sampled_from(names), max_size=3)):
        setattr(value, name, draw(odd_values))
    return value


def with_all_fields() -> Content:
    content = Content("x", text="y")
    for name in RARE:
        setattr(content, name, "z")
    return content


def incomplete(cls: type[Any], name: str) -> Any:
    value = cls("x")
    delattr(value, name)
    return value


def without_delta() -> Message:
    message = Message("user")
    message.delta = None  # type: ignore[assignment]
    return message


def check_text(value: Any) -> None:
    assert outcome(lambda: JsonWriter().write(value)) == in_general(lambda: JsonWriter().write(value))
    assert outcome(lambda: ChainMemory(0).cut(value)) == in_general(lambda: ChainMemory(0).cut(value))


@given(records | edited() | st.lists(edited(), max_size=20))
def test_the_text_is_that_of_the_general_way_whole_and_in_parts(value: Any) -> None:
    check_text(value)


def test_the_text_or_the_error_of_a_rare_value_is_that_of_the_general_way() -> None:
    check_text([Message("user", [Content.from_text("a" * 2000)] * 5)] * 40)
    check_text(with_all_fields())
    check_text(without_delta())
    check_text(incomplete(Content, "text"))
    check_text(incomplete(Message, "usages"))
    check_text([Message("user", [incomplete(Content, "additional_properties")])])


storable = odd_values.map(lambda value: value if type(value) is not object else None)


@example("content", {"type": "text", "call_id": None, "text": None})
@example("content", {"type": "text", "approved": "no"})
@example("content", {"type": "text", "annotations": range(3)})
@example("message", {"role": "user", "contents": "text", "additional_properties": [["a", 1]]})
@example("message", {"role": "user", "metadata": {"a": 1}})
@given(
    st.sampled_from(["content", "message"]),
    st.tuples(
        st.sampled_from([{}, {"type": "text"}, {"role": "user"}]),
        st.dictionaries(st.sampled_from(FIELDS), storable, max_size=5),
    ).map(lambda both: both[0] | both[1])
    | storable,
)
def test_reading_gives_the_value_or_the_error_of_the_general_way(tag: str, found: Any) -> None:
    text = f'{{"__t__":"{tag}","v":{JsonWriter().write(found)}}}'
    general = in_general(lambda: stored(JsonReader().read(text)))
    assert repr(outcome(lambda: stored(JsonReader().read(text)))) == repr(general)


@given(messages, st.integers(0, 999), st.sampled_from(["", "x", '"', "{", "]", "0", "null"]))
def test_a_damaged_text_gives_the_error_of_the_general_way(message: Message, at: int, damage: str) -> None:
    text = JsonWriter().write([message])
    text = text[: at % len(text)] + damage + text[at % len(text) + 1 :]
    general = in_general(lambda: stored(JsonReader().read(text)))
    assert repr(outcome(lambda: stored(JsonReader().read(text)))) == repr(general)
