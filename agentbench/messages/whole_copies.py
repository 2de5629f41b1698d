"""Copies of messages that share nothing with the originals, for code that may change what it gets.

Elsewhere messages are shared instead of copied, because stored ones stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentbench._copying import isolate_or_same
from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import NO_FIELDS, SetFields
from agentbench.messages.message import Message


def copy_whole(value: Any) -> Any:
    """Return a deep copy of a value; messages and contents, also those in lists and dictionaries, are copied too."""
    if type(value) is list and ATOMS.issuperset(map(type, value)):
        return value.copy()
    copied = isolate_or_same(value)
    if type(copied) in _COPIERS:
        return _COPIERS[type(copied)](copied)
    if type(copied) in (list, dict):
        _copy_messages_in(copied, set())
    return copied


def copy_message(message: Message) -> Message:
    """Return a copy of a message with its own contents."""
    copied = message.__copy__()
    copied.contents = [_copy_content(content) for content in message.contents]
    copied.additional_properties = isolate_or_same(message.additional_properties)
    copied.usages = isolate_or_same(message.usages)
    return copied


def _copy_content(content: Content) -> Content:
    rare = content._rare  # noqa: SLF001 - the fields of its type
    if rare is not NO_FIELDS:
        rare = SetFields(**copy_whole(vars(rare)))
    copied = content._bare(content.type, content.text, rare)  # noqa: SLF001 - without the checks of the constructor
    copied.annotations = isolate_or_same(content.annotations)
    if content.additional_properties:
        copied.additional_properties = isolate_or_same(content.additional_properties)
    copied.raw_representation = content.raw_representation
    return copied


def _copy_messages_in(holder: Any, seen: set[int]) -> None:
    """Replace the messages and contents in a list or dictionary, and in those inside it, by copies."""
    if _TO_COPY.isdisjoint(map(type, holder.values() if type(holder) is dict else holder)):
        return
    seen.add(id(holder))
    for key, item in [*(holder.items() if type(holder) is dict else enumerate(holder))]:
        if type(item) in _COPIERS:
            holder[key] = _COPIERS[type(item)](item)
        elif type(item) in (list, dict) and id(item) not in seen:
            _copy_messages_in(item, seen)


_COPIERS: Mapping[type, Callable[[Any], Any]] = {Message: copy_message, Content: _copy_content}
_TO_COPY = frozenset({*_COPIERS, list, dict})
ATOMS = frozenset({str, int, float, bool, type(None)})
"""The types of most values; there is nothing to copy in them."""
