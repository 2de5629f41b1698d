"""What is made of messages is made once, and anew of those that have changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agentbench.agents.clients.scripted.script import PerMessage
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from tests.ids import steady


class Made:
    """Copies messages, and keeps which."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __call__(self, message: Message) -> Message:
        self.messages.append(message)
        return copy.deepcopy(message)


class Quoted(Message):
    __slots__ = ()


def result(**more: Any) -> Message:
    items = [Content.from_text("sunny"), Content.from_data(b"\x89PNG", "image/png")]
    return Message("tool", [Content.from_function_result("c-1", result=items)], **more)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        (Message("user", "hello"), lambda message: setattr(message.contents[0], "text", "bye")),
        (Message("user", "hello"), lambda message: setattr(message, "role", "system")),
        (Message("user", "hello"), lambda message: setattr(message, "timestamp", 2.0)),
        (Message("user", "hello"), lambda message: message.contents.append(Content.from_text("!"))),
        (Message("user", "hello"), lambda message: message.additional_properties.update(seen=[])),
        (Message("user", "hello"), lambda message: setattr(message, "raw_representation", object())),
        (
            Message("assistant", [Content.from_function_call("c", "add", arguments={"a": {"b": 1}})]),
            lambda message: message.contents[0].arguments["a"].update(b=True),
        ),
        (result(), lambda message: setattr(message.contents[0].items[0], "text", "rainy")),
    ],
    ids=steady,
)
def test_of_a_message_that_was_changed_in_place_it_is_made_anew(message: Message, change: Any) -> None:
    made = Made()
    function = PerMessage(made)
    (before,) = function([message])
    earlier = before.to_dict()
    change(message)
    (after,) = function([message])
    assert len(made.messages) == 2
    assert after.to_dict() == message.to_dict()
    assert before.to_dict() == earlier


@pytest.mark.parametrize(
    "message",
    [
        Quoted("user", "hello"),
        Message("user", "hello", raw_representation=object()),
        Message("user", "hello", additional_properties={"found": {1, 2}}),
        Message("assistant", [Content.from_function_call("c", "add", arguments={"a": object()})]),
    ],
    ids=steady,
)
def test_where_changes_go_unnoticed_it_is_made_each_time(message: Message) -> None:
    made = Made()
    function = PerMessage(made)
    assert function([message])[0] is not function([message])[0]
    assert len(made.messages) == 2
