"""Messages: every way of making one, what it tells, when two are equal."""

from __future__ import annotations

import copy
import enum
import json
import logging
import pickle
from typing import Any

import pytest

from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench._copying import isolate
from agentbench._text.redact import line_preview
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.serialization.json_text import to_json
from tests.parts.errors import raises

TEXT = Content.from_text("hi")
CALL = Content.from_function_call("call-1", "f", arguments={"a": 1})


@pytest.mark.parametrize(
    "message",
    [
        Message("user", ["hi"]),
        Message("user", text="hi"),
        Message("user", "hi"),
        Message("user", TEXT),
        Message("user", [TEXT]),
        Message("user", (TEXT,)),
        Message("user", {"type": "text", "text": "hi"}),
        Message("user", [{"type": "text", "text": "hi"}]),
        Message("user", content=["hi"]),
        Message(role="user", contents=["hi"]),
        Message.text_message("hi"),
        Message.from_dict({"role": "user", "contents": ["hi"]}),
        Message.from_dict({"type": "anything", "role": "user", "content": "hi"}),
    ],
    ids=range(13),
)
def test_every_spelling_makes_the_same_message(message: Message) -> None:
    assert (message.role, message.text, message.contents) == ("user", "hi", [TEXT])


def test_text_comes_after_the_contents_and_nothing_is_skipped() -> None:
    assert Message("user", ["a"], text="b").text == "a b"
    assert Message("user").contents == []
    assert Message("user", []).text == ""
    assert Message("user", [None, "a"]).contents == [Content.from_text("a")]
    assert Message("user", text="").contents == [Content.from_text("")]


def test_text_is_what_the_text_contents_say_with_a_space_between() -> None:
    thought = Content.from_text_reasoning(text="hm")
    result = Content.from_function_result("c", result="r")
    assert Message("user", ["a", "b"]).text == "a b"
    assert Message("assistant", ["a", thought, CALL, result, "b"]).text == "a b"
    assert Message("assistant", [thought, CALL]).text == ""
    assert Message("user", ["a", "b"]).as_text() == "a b" == str(Message("user", ["a", "b"]))


def test_text_may_be_called_and_is_plain_text_for_everything_else() -> None:
    text = Message("user", ["Oslo,", "please"]).text
    assert callable(text)
    assert text() == text == "Oslo, please"
    assert text().upper() == "OSLO, PLEASE"
    assert {text: 1} == {"Oslo, please": 1}
    assert repr(text) == "'Oslo, please'" == line_preview([text])[1:-1]
    assert to_json({"said": text, "list": [text]}) == to_json({"said": str(text), "list": [str(text)]})
    assert json.dumps([text]) == '["Oslo, please"]'
    copies = [copy.copy(text), copy.deepcopy(text), isolate(text), isolate([text])[0], pickle.loads(pickle.dumps(text))]
    assert [(type(copied), copied) for copied in copies] == [(str, text)] * 5


def test_messages_made_from_the_text_of_another_contain_plain_text():
    text = Message("user", ["Oslo"]).text
    result = Content.from_function_result("c", result=text)
    call = Content.from_function_call("c", "f", arguments=text)
    changed = Content.from_text("")
    changed.text = text
    properties = {"a": text, "b": [text]}
    made = [
        *(Message("user", contents) for contents in (text, [text], {"type": "text", "text": text})),
        *(Message("user", [content]) for content in (Content("text", text=text), result, call, changed)),
        Message("user", text=text, author_name=text, message_id=text, additional_properties=properties),
    ]

    yaml = pytest.importorskip("yaml")  # writes plain texts only
    for message in made:
        assert yaml.safe_load(yaml.safe_dump(message.to_dict())) == message.to_dict()
    assert result.items is not None
    stored: list[Any] = [message.contents[0].text for message in made[:4]]
    stored += [result.result, result.items[0].text, call.arguments, made[-1].author_name, made[-1].message_id]
    assert {type(one) for one in stored} == {str}


@pytest.mark.parametrize("given", [[1], [object()], 1, b"a", [b"a"], [["a"]]])
def test_what_is_no_content_is_refused(given: Any) -> None:
    with pytest.raises(TypeError):
        Message("user", given)


def test_a_dictionary_without_a_type_is_refused() -> None:
    with raises(ValueError, "no"):
        Message("user", [{"no": "type"}])


def test_a_dictionary_that_cannot_be_read_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "agentbench")
    assert Message("user", [{"type": "data", "data": b"???"}, "a"]).text == "a"
    assert "skipped" in caplog.text


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [("content", "contents", ["a"]), ("metadata", "additional_properties", {"x": 1}), ("raw", "raw_representation", 5)],
)
def test_a_field_has_one_of_its_two_names(alias: str, name: str, value: Any) -> None:
    message = Message("user", **{alias: value})
    assert getattr(message, alias) == getattr(message, name)
    assert getattr(Message("user", **{name: value}), alias) == getattr(message, name)
    with pytest.raises(TypeError):
        Message("user", **{alias: value, name: value})


def test_passed_lists_and_dictionaries_are_copied() -> None:
    contents, properties = [TEXT], {"x": 1}
    message = Message("user", contents, additional_properties=properties)
    contents.append(CALL)
    properties["y"] = 2
    assert message.contents == [TEXT]
    assert message.additional_properties == {"x": 1}


class Roles(enum.StrEnum):
    USER = "user"


class Speaker(str):
    __slots__ = ()


@pytest.mark.parametrize("role", [Roles.USER, Speaker("user"), "user"])
def test_a_role_is_plain_text(role: Any) -> None:
    message = Message(role)
    assert type(message.role) is str
    assert message.role == "user"


@pytest.mark.parametrize("role", [5, None, b"user", ["user"]], ids=["number", "none", "bytes", "list"])
def test_a_role_that_is_no_text_is_refused(role: Any) -> None:
    with raises(TypeError, type(role).__name__):
        Message(role, ["hi"])


# ---------------------------------------------------------------------------------------------------- ids and times


def test_building_one_draws_no_id_and_reads_no_clock() -> None:
    message = Message("user", ["hi"])
    assert (message.message_id, message.timestamp, message.usages, message.delta) == (None, None, None, False)


def test_stamping_takes_ids_and_times_from_the_process_and_happens_once() -> None:
    set_runtime_defaults(ids=CountingIds(), clock=TickingClock("2024-01-01T00:00:00Z", tick_s=1))
    first = Message.text_message("a")
    second = Message.tool_message([Content.from_function_result("c", result="r")], meta={"x": 1})
    assert (first.role, first.message_id, first.timestamp) == ("user", "message-1", 1704067200.0)
    assert (second.role, second.message_id, second.timestamp) == ("tool", "message-2", 1704067201.0)
    assert second.metadata == {"x": 1}
    assert first.stamp() is first
    assert (first.message_id, first.timestamp) == ("message-1", 1704067200.0)


# ---------------------------------------------------------------------------------------------------------- calls


def test_calls_are_listed_in_the_form_of_chat_services() -> None:
    message = Message(
        "assistant",
        [
            CALL,
            Content.from_function_call("call-2", "g", arguments='{"b":2}'),
            Content.from_function_call("call-3", "h"),
        ],
    )
    assert message.text == ""
    assert message.tools_calls == [
        {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "call-2", "type": "function", "function": {"name": "g", "arguments": '{"b":2}'}},
        {"id": "call-3", "type": "function", "function": {"name": "h", "arguments": "{}"}},
    ]
    assert Message("user", "hi").tools_calls is None
    assert Message.from_dict(message.to_dict()) == message


# ------------------------------------------------------------------------------------------------------- as a value


def test_its_dictionary_has_what_is_set() -> None:
    text = {"type": "text", "text": "hi", "additional_properties": {}}
    bare = {"type": "message", "role": "user", "contents": [text], "additional_properties": {}}
    assert Message("user", "hi", raw_representation=object()).to_dict() == bare
    full = Message("user", "hi", author_name="a", message_id=1, delta=True, timestamp=2.5, usages={"total_tokens": 3})
    assert full.to_dict() == bare | {
        "author_name": "a",
        "message_id": 1,
        "delta": True,
        "timestamp": 2.5,
        "usages": {"total_tokens": 3},
    }
    assert full.to_dict(exclude={"contents", "usages"}).keys() == full.to_dict().keys() - {"contents", "usages"}
    assert Message("user").to_dict(exclude_none=False)["author_name"] is None
    assert Message.from_dict(full.to_dict()).usages == {"total_tokens": 3}


def test_equal_are_messages_that_say_the_same_whenever_they_were_made() -> None:
    one = Message("user", ["a"], timestamp=1.0, usages={"total_tokens": 1}, raw_representation=1)
    other = Message("user", ["a"], timestamp=2.0, raw_representation=2, additional_properties={"_excluded": True})
    assert one == other
    one.stamp()
    assert one != other


@pytest.mark.parametrize(
    "other",
    [
        Message("assistant", "a"),
        Message("user", "b"),
        Message("user", ["a", "a"]),
        Message("user", "a", author_name="x"),
        Message("user", "a", message_id="1"),
        Message("user", "a", delta=True),
        Message("user", "a", additional_properties={"x": 1}),
        "a",
        None,
    ],
)
def test_other_messages_are_not_equal(other: Any) -> None:
    assert Message("user", "a") != other


def test_a_message_has_no_hash_and_no_other_attributes() -> None:
    message = Message("user", "a")
    with pytest.raises(TypeError):
        hash(message)
    with pytest.raises(AttributeError):
        message.colour = "red"  # type: ignore[attr-defined]


def test_a_shallow_copy_shares_the_contents_and_a_deep_one_what_the_service_sent() -> None:
    sent = object()
    message = Message("user", ["a"], additional_properties={"x": [1]}, raw_representation=sent, message_id=3)
    shallow, deep = copy.copy(message), copy.deepcopy(message)
    assert shallow == message == deep
    assert shallow.contents is message.contents
    assert shallow.additional_properties is message.additional_properties
    assert deep.contents is not message.contents
    assert deep.contents[0] is not message.contents[0]
    assert deep.additional_properties["x"] is not message.additional_properties["x"]
    assert deep.raw_representation is shallow.raw_representation is sent


def test_the_aliases_are_views_and_can_be_set() -> None:
    message = Message("user", ["a"], metadata={"x": 1}, raw=5)
    assert message.content is message.contents
    assert message.metadata is message.additional_properties
    message.content = ["b"]
    message.metadata = {"y": 2}
    message.raw = 6
    assert (message.text, message.additional_properties, message.raw_representation) == ("b", {"y": 2}, 6)
