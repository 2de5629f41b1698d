"""The items that a growing list has now, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class ListView(Sequence[T]):
    """The items that a list has now; what is appended to it later is not among them."""

    __slots__ = ("_count", "_items")

    def __init__(self, items: list[T]) -> None:
        self._items = items
        self._count = len(items)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        places = range(self._count)[index]
        return self._items[places] if isinstance(places, int) else [self._items[place] for place in places]
