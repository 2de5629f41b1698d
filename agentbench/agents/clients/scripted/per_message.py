"""A cache for functions of messages; an entry is valid until its message changes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import STORED
from agentbench.messages.message import Message

T = TypeVar("T")

_PARTS = ("usages", "additional_properties", "raw_representation", "contents")
_plain_fields = operator.attrgetter(*(name for name in Message.__slots__ if name not in _PARTS))
_parts = operator.attrgetter(*_PARTS)
_stored = operator.attrgetter(*STORED)


class PerMessage(Generic[T]):
    """A function with a cache by message values, because only the end of a long conversation is new."""

    def __init__(self, make: Callable[[Message], T]) -> None:
        self._make = make
        self._made: dict[Hashable, T] = {}

    def __call__(self, messages: Iterable[Message]) -> list[T]:
        """Call the function for each message, and return the results."""
        return [self._of(message) for message in messages]

    def made(self) -> list[T]:
        """Return the results for all messages so far."""
        return list(self._made.values())

    def _of(self, message: Message) -> T:
        try:
            value = _value_of(message)
        except TypeError:
            return self._make(message)
        if value not in self._made:
            self._made[value] = self._make(message)
        return self._made[value]


def _value_of(message: Message) -> Hashable:
    """Return an immutable value of all fields of a message; raise `TypeError` if that is not possible."""
    usages, properties, raw, contents = _parts(message)
    if type(message) is not Message or raw is not None:
        raise TypeError
    rare = _frozen([usages, properties]) if properties or usages is not None else None
    return (_plain_fields(message), rare, *map(_content_key, contents))


def _content_key(content: Content) -> Hashable:
    if type(content) is not Content:
        raise TypeError
    fields, properties, annotations, raw, text, kind = _stored(content)
    if raw is not None:
        raise TypeError
    rare = vars(fields)
    if not (rare or properties or annotations):
        return kind, text
    return kind, text, _frozen([rare, properties, annotations])


def _frozen(value: Any) -> Hashable:
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return (dict, *map(_frozen, value), *map(_frozen, value.values()))
    if kind is list or kind is tuple:
        return (kind, *map(_frozen, value))
    if kind is Content:
        return _content_key(value)
    if kind in (bool, int, float, bytes):
        return kind, repr(value)  # distinguishes 1, 1.0 and True, which are equal
    raise TypeError
