"""Approvals are valid only in the input of a run, from a person. In all other places they are dropped here."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")

ANSWER: Final = "function_approval_response"

_contents_of, _kind_of = attrgetter("contents"), attrgetter("type")


def answers_in(messages: Sequence[Message]) -> list[Content]:
    """Return the answers to approval requests in messages, from any author."""
    if ANSWER not in map(_kind_of, chain.from_iterable(map(_contents_of, messages))):  # each run checks, few have one
        return []
    return [content for message in messages for content in message.contents if content.type == ANSWER]


def without_answers(messages: Sequence[Message], source: str, keep: Collection[int] = ()) -> list[Message]:
    """Return messages without answers to approval requests, except those whose `id()` is in `keep`.

    Changed messages are copied, or removed if they are empty; the log shows `source` as their origin.
    """
    answers = answers_in(messages)
    if not answers or all(id(content) in keep for content in answers):
        return [*messages]
    logger.warning("Dropped an approval from %s: only the input of a run can approve a tool call.", source)
    kept_messages: list[Message] = []
    for message in messages:
        contents = [content for content in message.contents if content.type != ANSWER or id(content) in keep]
        if len(contents) == len(message.contents):
            kept_messages.append(message)
        elif contents:
            kept_messages.append(with_contents(message, contents))
    return kept_messages


def without_foreign_answers(messages: list[Message], own: list[Message]) -> tuple[list[Message], list[Content]]:
    """Return a run's messages without approval answers that are not in its `own` input, and the answers in it.

    Messages before the last text of the model are skipped: an approval among them has no effect any more.
    """
    start, has_answers = len(messages), False
    while start:
        message = messages[start - 1]
        kinds = [content.type for content in message.contents]
        if message.role == "assistant" and "text" in kinds and "function_call" not in kinds:
            break  # a message with a call may repeat an open call
        start -= 1
        has_answers = has_answers or ANSWER in kinds
    if not has_answers:
        return messages, []
    answers = answers_in(own)
    found = without_answers(messages[start:], "a history or a context provider", set(map(id, answers)))
    return [*messages[:start], *found], answers


def with_contents(message: Message, contents: list[Content], **fields: Any) -> Message:
    """Return a copy of a message with other contents and other field values."""
    copied = copy.copy(message)
    copied.contents, copied.additional_properties = contents, dict(message.additional_properties)
    for name, value in fields.items():
        setattr(copied, name, value)
    return copied
