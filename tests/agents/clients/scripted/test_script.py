"""What an entry of a script becomes."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.clients.scripted.script import (
    Call,
    Chunk,
    Ids,
    Reply,
    read_entry,
)
from agentbench.agents.clients.scripted.scripted import split_contents
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from tests.parts.errors import raises

TEXT = Content.from_text("hi")
CHUNKS: tuple[Chunk, ...] = ("word", "char", "whole")
UPDATES = [ChatResponseUpdate(contents=["a "], role="assistant"), ChatResponseUpdate(contents=["b"])]


def read(entry: Any, **options: Any) -> Reply:
    return read_entry(entry, messages=[Message("user", ["one two"])], options=options, ids=Ids(), model="m")


def response(entry: Any, **options: Any) -> ChatResponse[Any]:
    reply = read(entry, **options)
    assert isinstance(reply, ChatResponse)
    return reply


class Answer(pydantic.BaseModel):
    city: str


def made_calls(*names: str) -> list[Content]:
    return [Content.from_function_call(f"call-{n}", name, arguments="{}") for n, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("entry", "contents"),
    [
        ("hi", [TEXT]),
        (TEXT, [TEXT]),
        (["hi", TEXT], [TEXT, TEXT]),
        ([], []),
        ({"type": "text", "text": "hi"}, [TEXT]),
        (Call("add", {"a": 1}), [Content.from_function_call("call-1", "add", arguments='{"a": 1}')]),
        (Call("add", "{not json"), [Content.from_function_call("call-1", "add", arguments="{not json")]),
        (Call("add", call_id="mine"), [Content.from_function_call("mine", "add", arguments="{}")]),
        (["hi", Call("f"), Call("g")], [TEXT, *made_calls("f", "g")]),
        ({"contents": [Call("f")], "text": "hi"}, [Content.from_function_call("call-1", "f", arguments="{}"), TEXT]),
        ({"finish_reason": "length"}, []),
    ],
)
def test_an_entry_becomes_one_message_of_the_assistant(entry: Any, contents: list[Content]) -> None:
    (message,) = response(entry).messages
    assert (message.role, message.contents) == ("assistant", contents)


def test_ids_model_and_reason_are_filled_in() -> None:
    ids = Ids()
    made = [read_entry(entry, messages=[], options={}, ids=ids, model="m") for entry in ("a", Call("f"), "b")]
    responses = [one for one in made if isinstance(one, ChatResponse)]
    assert [one.response_id for one in responses] == ["resp-1", "resp-2", "resp-3"]
    assert [one.messages[0].message_id for one in responses] == ["msg-1", "msg-2", "msg-3"]
    assert [one.finish_reason for one in responses] == ["stop", "tool_calls", "stop"]
    assert {one.model for one in responses} == {"m"}
    assert {one.created_at for one in responses} == {None}
    ids.reset()
    assert ids.new("resp") == "resp-1"


def test_messages_are_played_as_they_are_and_named() -> None:
    entry = [Message("assistant", ["a"], message_id="own"), Message("assistant", ["b"], author_name="x")]
    played = response(entry).messages
    assert [message.message_id for message in played] == ["own", "msg-1"]
    assert [message.contents for message in played] == [message.contents for message in entry]
    assert entry[1].message_id is None


def test_a_response_and_updates_are_played_as_they_are_in_copies() -> None:
    whole: ChatResponse[Any] = ChatResponse(text="a", response_id=None, created_at="2024-01-01")
    assert response(whole) == whole
    assert response(whole).messages[0] is not whole.messages[0]
    updates = read(UPDATES)
    assert updates == UPDATES
    assert isinstance(updates, list)
    assert updates[0] is not UPDATES[0]


def test_the_long_form_says_what_a_service_would() -> None:
    long = {
        "text": "hi",
        "usage": {"input_token_count": 7, "output_token_count": 1},
        "finish_reason": "length",
        "conversation_id": "conv",
        "response_id": "r",
        "model": "other",
        "created_at": "2024-01-01",
        "author_name": "ann",
        "additional_properties": {"k": 1},
    }
    before = copy.deepcopy(long)
    read_response = response(long)
    assert read_response.usage_details == {"input_token_count": 7, "output_token_count": 1}
    assert (read_response.finish_reason, read_response.conversation_id) == ("length", "conv")
    assert (read_response.response_id, read_response.model) == ("r", "other")
    assert read_response.messages[0].author_name == "ann"
    assert read_response.additional_properties == {"k": 1}
    assert long == before


def test_data_become_json_for_a_response_format() -> None:
    data: list[Any] = [{"city": "Oslo"}, Answer(city="Oslo")]
    for entry in data:
        assert response(entry, response_format=Answer).value == Answer(city="Oslo")
        assert response(entry, response_format={"type": "object"}).value == {"city": "Oslo"}
    assert response({"text": '{"city": "Oslo"}'}, response_format=Answer).value == Answer(city="Oslo")


def test_what_is_no_entry_is_refused_with_a_list_of_what_is() -> None:
    entries: list[Any] = [{"city": "Oslo"}, None, [3], [Message("user"), "a"], {}, [UPDATES[0], "a"]]
    for entry in entries:
        with raises(TypeError, "ChatResponse"):
            read(entry)


def test_usage_is_counted_in_words() -> None:
    messages = [
        Message("user", ["one two", "three"]),
        Message("assistant", [Content.from_function_call("c", "f", arguments='{"a": 1}')]),
        Message("tool", [Content.from_function_result("c", result="four five")]),
    ]
    reply = read_entry(
        ["six seven", Call("f", {"a": "b c"})],
        messages=messages,
        options={"instructions": "Be brief."},
        ids=Ids(),
        model=None,
    )
    assert isinstance(reply, ChatResponse)
    assert reply.usage_details == {"input_token_count": 9, "output_token_count": 5, "total_token_count": 14}


# ------------------------------------------------------------------------------------------------------------ streaming


def pieces_of(text: str, chunk: Chunk) -> list[str]:
    reply: ChatResponse[Any] = ChatResponse(messages=[Message("assistant", [text])])
    return [update.text for update in reply.to_updates(partial(split_contents, chunk=chunk))]


@given(st.text(), st.sampled_from(CHUNKS))
def test_the_pieces_are_the_text(text: str, chunk: Chunk) -> None:
    assert "".join(pieces_of(text, chunk)) == text


ENTRIES = [
    "hello there, all of you",
    "",
    Call("add", {"a": 1}),
    ["Let me see. ", Call("add", {"a": 1}), Call("sub", {"b": [2]})],
    [Message("assistant", ["one two"]), Message("assistant", ["three"])],
    [Message("assistant", ["one"]), Message("tool", [Content.from_function_result("c", result="2")])],
    {"text": "cut off", "finish_reason": "length", "conversation_id": "c", "usage": {"input_token_count": 1}},
    {"text": "x", "additional_properties": {"fingerprint": "fp"}, "created_at": "2024-01-01"},
    ChatResponse(text="a b", response_id="r", model="m"),
    [Content.from_text_reasoning(text="hmm, let me think"), "an answer"],
    Content.from_text("cited words", annotations=[{"type": "citation", "url": "https://example.org"}]),
    [Content.from_data(b"\x89PNG\r\n\x1a\n", "image/png"), "a picture"],
]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_streamed_updates_fold_to_the_whole_response(chunk: Chunk) -> None:
    for whole in map(response, ENTRIES):
        assert ChatResponse.from_updates(whole.to_updates(partial(split_contents, chunk=chunk))) == whole


def test_a_response_without_messages_is_streamed_as_one_empty_update() -> None:
    (update,) = ChatResponse(response_id="r", finish_reason="stop").to_updates()
    assert (update.contents, update.response_id, update.finish_reason) == ([], "r", "stop")
