"""New messages made to follow a history: no call is told twice, and none stays without a result."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from agentbench.messages.content import Content
from agentbench.messages.message import Message

UNANSWERED = "Error: Tool call was not answered."


def following(history: Sequence[Message], new: Sequence[Message]) -> list[Message]:
    """Return new messages as they have to follow a history.

    A run that was broken off, or that asked a person, leaves calls behind without a result; services refuse those. And
    who answers an approval without having seen the history tells the call once more.

    Args:
        history: What was said before.
        new: What follows. Messages are not changed: those that have to be are copied.
    """
    told = {content.call_id for message in history for content in message.contents if content.type == "function_call"}
    if not told:
        return list(new)
    following = [one for message in new if (one := _without_calls(message, told)) is not None]
    answered = {
        content.call_id
        for message in (*history, *following)
        for content in message.contents
        if content.type == "function_result"
    }
    results = [
        Content.from_function_result(content.call_id or "", result=UNANSWERED)
        for message in history
        for content in message.contents
        if content.type == "function_call" and content.call_id not in answered and not _is_made_by_service(content)
    ]
    return [Message("tool", results), *following] if results else following


def without_questions(messages: Sequence[Message]) -> list[Message]:
    """Leave out questions to a person and their answers: a model knows neither. Changed messages are copied."""
    kept = []
    for message in messages:
        contents = [content for content in message.contents if not _is_question(content)]
        if len(contents) == len(message.contents):
            kept.append(message)
        elif contents:
            kept.append(_with(message, contents))
    return kept


def results_besides(messages: Sequence[Message], saved: Sequence[Message]) -> list[Content]:
    """Return the results in messages that are not among saved ones."""
    known = {content.call_id for message in saved for content in message.contents if content.type == "function_result"}
    return [
        content
        for message in messages
        for content in message.contents
        if content.type == "function_result" and content.call_id not in known
    ]


def last_said(messages: Sequence[Message]) -> list[Message]:
    """Return what was said after the last results."""
    said: list[Message] = []
    for message in messages:
        said = [] if message.role == "tool" else [*said, message]
    return said


def _without_calls(message: Message, told: set[str | None]) -> Message | None:
    contents = [
        content for content in message.contents if content.type != "function_call" or content.call_id not in told
    ]
    if len(contents) == len(message.contents):
        return message
    return _with(message, contents) if contents else None


def _with(message: Message, contents: list[Content]) -> Message:
    duplicate = copy(message)
    duplicate.contents = contents
    return duplicate


def _is_question(content: Content) -> bool:
    if content.type not in ("function_approval_request", "function_approval_response"):
        return False
    return content.function_call is None or not _is_made_by_service(content.function_call)


def _is_made_by_service(call: Content) -> bool:
    return bool(call.additional_properties.get("server_label"))
