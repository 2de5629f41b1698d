"""Make call ids in a model's answer unique, remove approvals from it, and remember the calls of a conversation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from itertools import count
from operator import is_
from typing import Any, Final

from agentbench.agents.history.pending_calls import RecordedCall, is_same_call
from agentbench.messages.answers import ANSWER, without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.fold import TOOL_CALL_INDEX
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

_TOUCHED: Final = frozenset({"function_call", "function_result", ANSWER})


def with_unique_calls(response: ChatResponse[Any]) -> ChatResponse[Any]:
    """Return the response, or a copy, with unique ids of open calls and without approvals.

    Some services use one id for several calls of an answer. The first call keeps it; others get `id_2`, `id_3` ...
    """
    messages = response.messages
    if len(messages) == 1 and len(contents := messages[0].contents) == 1 and contents[0].type != ANSWER:
        return response
    kinds = [content.type for message in messages for content in message.contents]
    if ANSWER not in kinds and kinds.count("function_call") < 2:
        return response
    ids, indexes, messages = _CallIds(), count(), without_answers(messages, "the answer of a model")
    for at, message in enumerate(messages):
        messages[at] = _with(message, [ids.rename(content, next(indexes)) for content in message.contents])
    if len(messages) == len(response.messages) and all(map(is_, messages, response.messages)):
        return response
    renamed = copy.copy(response)
    renamed.messages = messages
    return renamed


class UniqueCalls:
    """Makes call ids in the updates of a stream unique; the index of a call identifies its pieces."""

    def __init__(self) -> None:
        self._ids = _CallIds()

    def rename(self, update: ChatResponseUpdate) -> ChatResponseUpdate:
        """Return the update, or a copy, with unique call ids and without approvals."""
        for one in update.contents:
            if one.type in _TOUCHED:
                break
        else:
            return update
        contents = [self._ids.rename(one, _index_of(one)) for one in update.contents if one.type != ANSWER]
        renamed: ChatResponseUpdate = _with(update, contents)
        return renamed


class _CallIds:
    """The ids of the calls of one answer that have no result in it."""

    def __init__(self) -> None:
        self._open: dict[str, dict[Any, str]] = {}  # the unique id by the service's id and the index

    def rename(self, content: Content, index: Any) -> Content:
        """Return a call or result with the unique id of its call, and other contents unchanged."""
        call_id = content.call_id
        if content.type not in ("function_call", "function_result") or not call_id:
            return content
        calls = self._open.setdefault(call_id, {})
        if content.type == "function_result":
            unique = calls.pop(next(iter(calls)), call_id) if calls else call_id
        elif index is None:
            unique = next(iter(calls.values()), None) or calls.setdefault(None, self._unique(call_id))
        else:
            if None in calls:
                calls[index] = calls.pop(None)
            unique = calls.get(index) or calls.setdefault(index, self._unique(call_id))
        if unique == call_id:
            return content
        renamed = copy.copy(content)
        renamed.call_id = unique
        return renamed

    def _unique(self, call_id: str) -> str:
        taken = {unique for calls in self._open.values() for unique in calls.values()}
        names: Iterable[str] = (f"{call_id}_{number}" for number in count(2))
        return call_id if call_id not in taken else next(name for name in names if name not in taken)


def _index_of(content: Content) -> Any:
    return content.additional_properties.get(TOOL_CALL_INDEX)


def _with(owner: Any, contents: list[Content]) -> Any:
    """Return a message or update with other contents, or itself if they are equal."""
    if len(contents) == len(owner.contents) and all(map(is_, contents, owner.contents)):
        return owner
    changed = copy.copy(owner)
    changed.contents = contents
    return changed


APPROVALS: Final = "approvals"
"""Key in the state of a session: a message for each recorded call, with its requests and its result."""

_APPROVED: Final = "approved"
"""Key in the additional properties of such a message."""


class RecordedCalls:
    """The calls that a session records, oldest first; without a session, nothing is recorded."""

    def __init__(self, session: Any) -> None:
        self._state: dict[str, Any] | None = getattr(session, "state", None)

    def read(self) -> list[RecordedCall]:
        """Return the calls with their requests and, if available, their results."""
        calls: list[RecordedCall] = []
        for message in self._messages():
            call, *rest = message.contents
            result = rest.pop() if rest and rest[-1].type == "function_result" else None
            calls.append(RecordedCall(call, tuple(rest), result, message.additional_properties.get(_APPROVED) is True))
        return calls

    def add(self, recorded: RecordedCall) -> None:
        """Record a call; it replaces an equal earlier one, because models reuse ids."""
        call, requests, result, is_approved = recorded
        message = Message("tool", [call, *requests, *([] if result is None else [result])])
        if is_approved:
            message.additional_properties[_APPROVED] = True
        self.drop(lambda earlier: is_same_call(earlier, call), [message])

    def drop(self, is_dropped: Callable[[Content], bool], added: Iterable[Message] = ()) -> None:
        """Remove calls, and add messages for others."""
        if self._state is None or (APPROVALS not in self._state and not added):
            return
        remaining = [one for one in self._messages() if not is_dropped(one.contents[0])]
        self._state[APPROVALS] = [*remaining, *added]
        if not self._state[APPROVALS]:
            del self._state[APPROVALS]

    def _messages(self) -> list[Message]:
        stored = (self._state or {}).get(APPROVALS) or ()
        return [one for one in stored if isinstance(one, Message) and one.contents]
