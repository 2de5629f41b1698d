"""Answers of a person to calls that wait for one: what they allow, and the conversation as the model sees it then.

Pure: nothing is awaited, and no message that was given is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from agentbench.agents.tool_loop.call import UNANSWERED, ToolCall, rejection
from agentbench.messages.content import Content
from agentbench.messages.message import Message

REQUEST: Final = "function_approval_request"
RESPONSE: Final = "function_approval_response"
_KINDS: Final = frozenset((REQUEST, RESPONSE))


class Approvals:
    """The requests and answers in a conversation.

    Attributes:
        allowed: The calls to be made now, in order.
        results: Results by the id of the call, of those that were not allowed; those of the calls that were made
            are added by whoever makes them.
    """

    __slots__ = ("_answered", "_asked", "_called", "_known", "allowed", "results")

    def __init__(self, messages: Sequence[Message]) -> None:
        contents = [content for message in messages for content in message.contents]
        self._called = {content.call_id for content in contents if content.type == "function_call"}
        self._known = {content.call_id for content in contents if content.type == "function_result"}
        self._asked = {_call_id(content) for content in contents if content.type == REQUEST and _is_ours(content)}
        self._answered: set[str] = set()
        self.allowed: list[ToolCall] = []
        self.results: dict[str, Content] = {}
        for content in contents:
            if content.type == RESPONSE and _is_ours(content):
                self._take(content)

    def _take(self, answer: Content) -> None:
        call_id = _call_id(answer)
        if call_id in self._known or call_id in self._answered:
            return
        self._answered.add(call_id)
        call = _call_of(answer)
        if answer.approved:
            self.allowed.append(ToolCall(call, answer))
        else:
            self.results[call_id] = rejection(call)

    def resolve(self, messages: Sequence[Message], *, has_service: bool) -> Resolved:
        """Put results in the place of answers, take requests out, and answer what was never answered.

        Args:
            messages: The conversation that this was made of.
            has_service: Whether a service keeps the conversation, and with it the calls that are not in the list.
        """
        seen: list[Message] = []
        pairs: list[tuple[Message, Message]] = []
        for message in messages:
            if not any(content.type in _KINDS and _is_ours(content) for content in message.contents):
                seen.append(message)
                continue
            changed = self._resolved(message, has_service=has_service)
            seen.extend(changed)
            pairs.extend((message, one) for one in changed)
        return Resolved(seen, pairs)

    def _resolved(self, message: Message, *, has_service: bool) -> list[Message]:
        """Return what stands in the place of one message that asks or answers."""
        others: list[Content] = []
        results: list[Content] = []
        unasked: list[Content] = []
        unanswered: list[Content] = []
        for content in message.contents:
            if content.type not in _KINDS or not _is_ours(content):
                others.append(content)
                continue
            call, call_id = _call_of(content), _call_id(content)
            if content.type == RESPONSE:
                if call_id not in self._called and call_id not in self._asked and not has_service:
                    unasked.append(call)
                    self._called.add(call_id)
                if (result := self.results.pop(call_id, None)) is not None:
                    results.append(result)
                continue
            if call_id not in self._called:
                others.append(call)
                self._called.add(call_id)
            if call_id not in self._known and call_id not in self._answered:
                self._known.add(call_id)
                unanswered.append(rejection(call, UNANSWERED))
        return [
            *([Message("assistant", unasked)] if unasked and results else ()),
            *([_copy(message, "tool", results)] if results else ()),
            *([_copy(message, message.role, others)] if others else ()),
            *([Message("tool", unanswered)] if unanswered else ()),
        ]


class Resolved(NamedTuple):
    """A conversation after the answers were taken in.

    Attributes:
        messages: As the model sees it; what did not change is the same object.
        replaced: Each changed message with what stands in its place: one pair for each, so several with one message
            that was split.
    """

    messages: list[Message]
    replaced: list[tuple[Message, Message]]


def find_approvals(messages: Sequence[Message]) -> Approvals | None:
    """Return the requests and answers in a conversation; `None` where there are none, which is told quickly."""
    for message in messages:
        for content in message.contents:
            if content.type in _KINDS:
                return Approvals(messages)
    return None


def _is_ours(content: Content) -> bool:
    """Whether this is about a call that is made here, rather than by the service."""
    call = content.function_call
    return call is not None and not call.additional_properties.get("server_label")


def _call_of(content: Content) -> Content:
    return cast("Content", content.function_call)  # there is one where _is_ours says so


def _call_id(content: Content) -> str:
    return _call_of(content).call_id or content.id or ""


def _copy(message: Message, role: str, contents: list[Content]) -> Message:
    copied = copy.copy(message)
    copied.role, copied.contents = role, contents
    copied.additional_properties = dict(message.additional_properties)
    return copied
