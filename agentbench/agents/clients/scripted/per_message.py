"""A cache of what is made of messages, which holds for as long as a message is as it was."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import STORED
from agentbench.messages.message import Message

T = TypeVar("T")

_MOST = 10_000
"""How many messages are cached; one more, and the cache starts empty."""

_PARTS = ("usages", "additional_properties", "raw_representation", "contents")
_plain_fields = operator.attrgetter(*(name for name in Message.__slots__ if name not in _PARTS))
_parts = operator.attrgetter(*_PARTS)
_stored = operator.attrgetter(*STORED)


class PerMessage(Generic[T]):
    """A function of messages with a cache: a conversation is long, and only its end is new.

    The cache's key is all that a message holds, so one that was changed in place counts as another. For a message that
    holds an object which may change unnoticed, the function is called each time.
    """

    def __init__(self, make: Callable[[Message], T]) -> None:
        self._make = make
        self._made: dict[Hashable, T] = {}

    def __call__(self, messages: Iterable[Message]) -> list[T]:
        """Return what the function returns for each message."""
        return [self._of(message) for message in messages]

    def _of(self, message: Message) -> T:
        try:
            value = _value_of(message)
            if value in self._made:
                return self._made[value]
        except (TypeError, KeyError):  # it may change unnoticed; or another thread has just emptied the cache
            return self._make(message)
        if len(self._made) >= _MOST:
            self._made.clear()
        self._made[value] = made = self._make(message)
        return made


class _Identity:
    """An object that equals only itself, also where its class has an `__eq__`."""

    __slots__ = ("_object",)

    def __init__(self, value: object) -> None:
        self._object = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)


def _value_of(message: Message) -> Hashable:
    """All that a message holds, as a value that does not change; a `TypeError` where an object may change unnoticed."""
    if type(message) is not Message:
        raise TypeError
    usages, properties, raw, contents = _parts(message)
    return (
        _plain_fields(message),
        None if usages is None else _frozen(usages),
        _frozen(properties) if properties else None,
        None if raw is None else _Identity(raw),
        *[_content(item) for item in contents],
    )


def _content(content: Content) -> Hashable:
    if type(content) is not Content:
        raise TypeError
    fields, properties, annotations, raw, text, kind = _stored(content)
    rare = vars(fields)
    if not (rare or properties or annotations or raw is not None):
        return kind, text
    return (
        kind,
        text,
        _frozen(rare),
        _frozen(properties),
        _frozen(annotations),
        None if raw is None else _Identity(raw),
    )


def _frozen(value: Any) -> Hashable:
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return (dict, *map(_frozen, value), *map(_frozen, value.values()))
    if kind is list or kind is tuple:
        return (kind, *map(_frozen, value))
    if kind is Content:
        return _content(value)
    if kind in (bool, int, float, bytes):
        return kind, repr(value)  # 1, 1.0 and True are equal, and yet not the same
    raise TypeError
