"""Answers of models in which each call has an id of its own, and nothing approves a call."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from itertools import count
from operator import is_
from typing import Any, Final

from agentbench.messages.answers import ANSWER, without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.fold import TOOL_CALL_INDEX
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

_TOUCHED: Final = frozenset({"function_call", "function_result", ANSWER})


def with_unique_calls(response: ChatResponse[Any]) -> ChatResponse[Any]:
    """Return a response in which no two open calls have one id, without approvals: itself, or a copy.

    Some services give one id to several calls of an answer. The first call keeps it, the others get `id_2`, `id_3` ...
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
    """The same for the updates of one stream, in which the index of a call says which pieces belong together."""

    def __init__(self) -> None:
        self._ids = _CallIds()

    def rename(self, update: ChatResponseUpdate) -> ChatResponseUpdate:
        """Return an update in which calls have ids of their own, without approvals: itself, or a copy."""
        for one in update.contents:
            if one.type in _TOUCHED:
                break
        else:
            return update
        contents = [self._ids.rename(one, _index_of(one)) for one in update.contents if one.type != ANSWER]
        renamed: ChatResponseUpdate = _with(update, contents)
        return renamed


class _CallIds:
    """The ids of the calls of one answer that have no result there."""

    def __init__(self) -> None:
        self._open: dict[str, dict[Any, str]] = {}  # by the id that the service gave and by index, the unique id

    def rename(self, content: Content, index: Any) -> Content:
        """Return a call or a result with the unique id of its call, and any other content as it is."""
        given = content.call_id
        if content.type not in ("function_call", "function_result") or not given:
            return content
        calls = self._open.setdefault(given, {})
        if content.type == "function_result":
            unique = calls.pop(next(iter(calls)), given) if calls else given
        elif index is None:
            unique = next(iter(calls.values()), None) or calls.setdefault(None, self._unique(given))
        else:
            if None in calls:
                calls[index] = calls.pop(None)
            unique = calls.get(index) or calls.setdefault(index, self._unique(given))
        if unique == given:
            return content
        renamed = copy.copy(content)
        renamed.call_id = unique
        return renamed

    def _unique(self, given: str) -> str:
        taken = {unique for calls in self._open.values() for unique in calls.values()}
        names: Iterable[str] = (f"{given}_{number}" for number in count(2))
        return given if given not in taken else next(name for name in names if name not in taken)


def _index_of(content: Content) -> Any:
    return content.additional_properties.get(TOOL_CALL_INDEX)


def _with(owner: Any, contents: list[Content]) -> Any:
    """Return a message or an update with other contents: itself if they are the same."""
    if len(contents) == len(owner.contents) and all(map(is_, contents, owner.contents)):
        return owner
    changed = copy.copy(owner)
    changed.contents = contents
    return changed
