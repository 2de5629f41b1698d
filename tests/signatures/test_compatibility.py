# ruff: noqa: UP006, UP007, UP045  the older spellings of types are tested, too
from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NewType, NoReturn, Optional, Protocol, TypeVar, Union

import pytest
import typing_extensions

from agentbench._signatures import always_fits, is_type_compatible


class TypeAliasType:
    """Stands in for a `type X = ...` statement of Python 3.12: its value is evaluated on use."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self._value = value

    @property
    def __value__(self) -> Any:
        return self._value(self)


T = TypeVar("T")
Bounded = TypeVar("Bounded", bound=int)
Constrained = TypeVar("Constrained", str, bytes)
UserId = NewType("UserId", int)
Json: Any = TypeAliasType(lambda itself: Union[str, list.__class_getitem__(itself)])
SameJson: Any = TypeAliasType(lambda itself: Union[str, list.__class_getitem__(itself)])
OtherJson: Any = TypeAliasType(lambda itself: Union[int, list.__class_getitem__(itself)])
Nested = typing_extensions.TypeAliasType("Nested", Union[str, int])


class Base: ...


class Derived(Base): ...


class Box(Generic[T]): ...


class BigBox(Box[T]): ...


class Movie(typing.TypedDict):
    title: str


class Rated(typing.TypedDict):
    title: str
    stars: int


@typing.runtime_checkable
class Closeable(Protocol):
    def close(self) -> None: ...


@typing.runtime_checkable
class Named(Protocol):
    name: str


class Unchecked(Protocol):
    def nothing_has_this(self) -> None: ...


class Door:
    def close(self) -> None: ...


COMPATIBLE = [
    (int, Any),
    (Any, str),
    (list[Any], list[str]),
    (object, object),
    (list[str], object),
    (bool, int),
    (Derived, Base),
    (None, type(None)),
    (None, Optional[int]),
    (int, int | str),
    (int | str, str | int | None),
    (Union[int, str], int | str),
    (bool | int, int),
    (list[str], list),
    (list[str], Sequence[str]),
    (list[str], Sequence),
    (list[str], Iterable[str | int]),
    (list, list[str]),
    (list[str], typing.List[str]),
    (list[str], list[str | int]),
    (list[Derived], list[Base]),
    (set[int], set[int | None]),
    (dict[str, int], dict[str, Any]),
    (dict[str, int], Mapping[str, int]),
    (dict[str, int], Iterable[str]),
    (tuple[int, int], tuple[int, ...]),
    (tuple[()], tuple[int, ...]),
    (tuple[int, ...], tuple[int | str, ...]),
    (tuple[int, str], tuple[int, str | None]),
    (tuple[int, int], Sequence[int]),
    (tuple[int, ...], Iterable[int]),
    (frozenset[int], frozenset[int]),
    (BigBox[int], Box[int]),
    (Box[bool], Box[int]),
    (Box, Box[int]),
    (str, Sequence[str]),
    (Literal["a"], str),
    (Literal["a", 1], str | int),
    (Literal["a"], Literal["a", "b"]),
    (Literal[[1]], list),
    (str, Literal["a"]),
    (list[Literal["a"]], list[str]),
    (Annotated[int, "unit"], int),
    (int, Annotated[int, ["unhashable"]]),
    (UserId, int),
    (int, UserId),
    (Movie, dict),
    (Movie, Mapping[str, str]),
    (Movie, dict[str, Any]),
    (Movie, Movie),
    (Rated, Movie),
    (dict, Movie),
    (dict[str, str], Movie),
    (Door, Closeable),
    (Door, Named),
    (Door, Unchecked),
    (int, T),
    (T, int),
    (bool, Bounded),
    (Bounded, int),
    (bytes, Constrained),
    (Constrained, str | bytes),
    (NoReturn, int),
    (Json, Json),
    (str, Nested),
    (Nested, str | int),
    (list[Json], Json),
    (Json, SameJson),
    ("Later", int),
    (int, "Later"),
    (Callable[[int], str], Callable[[int], str]),
    (Callable[[int], str], collections.abc.Callable),
]

INCOMPATIBLE = [
    (float, int),
    (bool, float),
    (int, str),
    (int, bool),
    (Base, Derived),
    (object, int),
    (int | str, int),
    (Optional[int], int),
    (int, None),
    (list[str], list[int]),
    (list[str | int], list[str]),
    (list, tuple),
    (list[str], Sequence[int]),
    (list[str], str),
    (Sequence[str], list[str]),
    (set[int], list[int]),
    (dict[str, int], dict[str, str]),
    (dict[str, int], Iterable[int]),
    (tuple[int, ...], tuple[int, int]),
    (tuple[int], tuple[int, int]),
    (tuple[int, str], tuple[int, ...]),
    (tuple[int, str], Sequence[int]),
    (frozenset[int], frozenset[str]),
    (Box[int], Box[str]),
    (Box[int], BigBox[int]),
    (Literal["a"], int),
    (Literal["a", 1], str),
    (Literal["a"], Literal["b"]),
    (int, Literal["a"]),
    (UserId, str),
    (Movie, int),
    (Movie, dict[int, str]),
    (Rated, dict[str, str]),
    (Movie, Rated),
    (int, Movie),
    (dict[int, str], Movie),
    (int, Closeable),
    (str, Bounded),
    (Bounded, str),
    (int, Constrained),
    (Constrained, str),
    (int, NoReturn),
    (Nested, str),
    (int, Json),
    (Json, OtherJson),
]


def test_values_of_the_source_may_go_to_the_target():
    assert [pair for pair in COMPATIBLE if not is_type_compatible(*pair)] == []


def test_values_of_the_source_may_not_go_to_the_target():
    assert [pair for pair in INCOMPATIBLE if is_type_compatible(*pair) or always_fits(*pair)] == []


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (Any, str),
        (list, list[int]),
        (str, Literal["a"]),
        (dict[str, str], Movie),
        (Door, Named),
        (T, int),
        (Any | int, int),
    ],
)
def test_what_says_too_little_is_compatible_but_not_certain_to_fit(source, target):
    assert is_type_compatible(source, target)
    assert not always_fits(source, target)


def test_what_is_part_of_the_target_is_certain_to_fit():
    for source, target in [
        (bool, int),
        (str, Any),
        (list[int], list),
        (Literal["a"], str),
        (Literal["a"], Literal["a", "b"]),
        (int, int | str),
        (Any, object),
        (Rated, Movie),
        (Door, Closeable),
        (Door, Unchecked),
    ]:
        assert always_fits(source, target)
