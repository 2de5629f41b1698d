"""Small things that patterns have in common, also for patterns of your own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agentbench.messages.message import Message


def clean_conversation_for_handoff(conversation: Iterable[Message]) -> list[Message]:
    """Return the texts of a conversation: no calls of tools, which only the agent that made them can go on from.

    Args:
        conversation: Messages; one without text is left out.
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
        text: What it says; by default the reason.
        author_name: Who says it.
        reason: Why the conversation ends.
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
