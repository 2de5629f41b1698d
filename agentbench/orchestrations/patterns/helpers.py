"""Small functions that patterns share, also for your own patterns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agentbench.messages.message import Message


def clean_conversation_for_handoff(conversation: Iterable[Message]) -> list[Message]:
    """Return the texts of a conversation, without tool calls, which only the agent that made them can continue.

    Args:
        conversation: The messages; messages without text are left out.

    Example:
        from agentbench import Message
        from agentbench.orchestrations import clean_conversation_for_handoff

        (message,) = clean_conversation_for_handoff([Message("user", ["Hello"]), Message("assistant", [])])
        assert message.text == "Hello"
    """
    return [
        Message(
            message.role,
            texts,
            author_name=message.author_name,
            message_id=message.message_id,
            additional_properties=message.additional_properties,
        )
        for message in conversation
        if (texts := [content for content in message.contents if content.type == "text" and content.text])
    ]


def create_completion_message(*, text: str | None = None, author_name: str, reason: str = "completed") -> Message:
    """Return the message with which a conversation ends.

    Args:
        text: The text of the message; by default the reason.
        author_name: The author of the message.
        reason: Why the conversation ends.

    Example:
        from agentbench.orchestrations import create_completion_message

        message = create_completion_message(text="The report is done.", author_name="moderator")
        assert message.text == "The report is done."
    """
    return Message("assistant", [text or f"The conversation has ended: {reason}."], author_name=author_name)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, also in prose or between code fences."""
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield found
        place = text.find("{", end)
