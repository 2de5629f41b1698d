"""What may be handed in as messages, and instructions before them."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages, prepend_instructions_to_messages
from agentbench.messages.message import Message

IMAGE = Content.from_data(b"x", "image/png")
ANSWER = Message("assistant", "yes")


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (None, []),
        ([], []),
        ("hi", [Message("user", "hi")]),
        ("", [Message("user", "")]),
        (IMAGE, [Message("user", [IMAGE])]),
        (ANSWER, [ANSWER]),
        (["hi", IMAGE, ANSWER], [Message("user", "hi"), Message("user", [IMAGE]), ANSWER]),
        (("hi", "ho"), [Message("user", "hi"), Message("user", "ho")]),
        ({"role": "system", "contents": ["be kind"]}, [Message("system", "be kind")]),
        ([{"role": "system", "content": "be kind"}, "hi"], [Message("system", "be kind"), Message("user", "hi")]),
        ({"type": "text", "text": "hi"}, [Message("user", "hi")]),
    ],
)
def test_whatever_is_handed_in_becomes_a_list_of_messages(given: Any, messages: list[Message]) -> None:
    assert normalize_messages(given) == messages


def test_messages_are_not_copied_but_their_list_is() -> None:
    given = [ANSWER]
    found = normalize_messages(given)
    assert found is not given
    assert found[0] is ANSWER
    assert normalize_messages(ANSWER)[0] is ANSWER


@pytest.mark.parametrize("given", [5, [5], [None], [["hi"]]])
def test_what_is_no_message_is_refused(given: Any) -> None:
    with pytest.raises(TypeError):
        normalize_messages(given)


def system(text: str) -> Message:
    return Message("system", text)


@pytest.mark.parametrize(
    ("messages", "instructions", "texts"),
    [
        ([system("a"), Message("user", "x")], ["a", "b"], ["b", "a", "x"]),
        ([Message("user", "x")], "a", ["a", "x"]),
        ([Message("user", "x")], ["a", "b"], ["a", "b", "x"]),
        ([system("a")], "a", ["a"]),
        ([Message("user", "a")], "a", ["a", "a"]),
        ([system("b"), system("a")], ["a", "b"], ["a", "b", "b", "a"]),
        ([], "a", ["a"]),
        ([], None, []),
        ([system("x")], [], ["x"]),
    ],
)
def test_instructions_come_first_unless_they_are_there(
    messages: list[Message], instructions: Any, texts: list[str]
) -> None:
    found = prepend_instructions_to_messages(messages, instructions)
    assert [message.text for message in found] == texts
    assert (found is messages) == (instructions is None)


def test_instructions_may_have_another_role() -> None:
    found = prepend_instructions_to_messages([system("a")], "a", role="developer")
    assert [message.role for message in found] == ["developer", "system"]
