"""New messages made to follow a history: no call is told twice, and none stays without a result."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from agentbench.messages.content.content import Content
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
    waiting: dict[str | None, Content] = {}
    for content in (content for message in history for content in message.contents):
        if content.type == "function_call" and not _is_made_by_service(content):
            waiting[content.call_id] = content
        elif content.type == "function_result":
            waiting.pop(content.call_id, None)
    if not waiting:
        return list(new)
    answers: list[Message] = []
    rest: list[Message] = []
    unanswered = dict(waiting)
    told_anew: set[str | None] = set()
    for message in new:
        kept: list[Content] = []
        results: list[Content] = []
        for content in message.contents:
            call_id = content.call_id
            if content.type == "function_call" and call_id in waiting:
                if is_same_call(waiting[call_id], content):
                    continue
                told_anew.add(call_id)
            is_answer = content.type == "function_result" and call_id in unanswered and call_id not in told_anew
            (results if is_answer else kept).append(content)
            if is_answer:
                del unanswered[call_id]
        answers += _part(message, results)
        rest += _part(message, kept)
    closed = [Content.from_function_result(call_id or "", result=UNANSWERED) for call_id in unanswered]
    return [*([Message("tool", closed)] if closed else ()), *answers, *rest]


def is_same_call(one: Content, other: Content) -> bool:
    """Whether two contents are one call, told twice; arguments may be written in two ways."""
    return one is other or (
        (one.call_id or "") == (other.call_id or "")
        and one.name == other.name
        and (one.parse_arguments() or {}) == (other.parse_arguments() or {})
    )


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


def _part(message: Message, contents: list[Content]) -> list[Message]:
    if not contents:
        return []
    return [message if len(contents) == len(message.contents) else _with(message, contents)]


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
