"""A cache of what is made of messages, which holds for as long as a message is as it was."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import STORED
from agentbench.messages.message import Message

T = TypeVar("T")

_fields = operator.attrgetter(*Message.__slots__)
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
            value = _frozen(message)
        except TypeError:
            return self._make(message)
        if value not in self._made:
            self._made[value] = self._make(message)
        return self._made[value]


def _frozen(value: Any) -> Hashable:
    """Return a value that is equal for equal ones and does not change; a `TypeError` where that cannot be had."""
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is Content:
        fields, *others = _stored(value)
        return (_frozen(vars(fields)), *map(_frozen, others))
    if kind is dict:
        return (dict, *map(_frozen, value), *map(_frozen, value.values()))
    if kind is list or kind is tuple:
        return (kind, *map(_frozen, value))
    if kind is Message:
        return tuple(map(_frozen, _fields(value)))
    if kind in (bool, int, float, bytes):
        return kind, repr(value)  # 1, 1.0 and True are equal, and yet not the same
    raise TypeError
