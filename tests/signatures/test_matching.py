# ruff: noqa: UP006, UP007, UP045  the older spellings of types are tested, too
from __future__ import annotations

import abc
import collections
import enum
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ForwardRef, Generic, Literal, NewType, NoReturn, Optional, Protocol, TypeVar, Union

import pydantic
import typing_extensions

from agentbench._signatures import is_instance_of


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
Tree: Any = TypeAliasType(lambda itself: Union[int, list.__class_getitem__(itself)])
Lost: Any = TypeAliasType(lambda _: Nowhere)  # type: ignore[name-defined]  # noqa: F821


class Color(enum.Enum):
    RED = "red"


class Shade(enum.StrEnum):
    RED = "red"


@dataclass
class Box(Generic[T]):
    content: T


class Model(pydantic.BaseModel):
    size: int


class Movie(typing.TypedDict):
    title: str
    year: typing_extensions.NotRequired[int]


class Folder(typing.TypedDict):
    name: str
    folders: list[Folder]


class LostMovie(typing.TypedDict):
    title: Nowhere  # type: ignore[name-defined]  # noqa: F821


class NewerMovie(typing_extensions.TypedDict):
    title: typing_extensions.Required[Annotated[str, "name"]]


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


class Odd(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return instance == 7


class Seven(metaclass=Odd):
    pass


MATCHES = [
    (1, int),
    (True, int),
    (None, None),
    (None, type(None)),
    (object(), Any),
    (3, typing_extensions.Any),
    (1, object),
    ("a", int | str),
    (3, Union[int, str]),
    (None, Optional[int]),
    (3, int | Any),
    ([], list[int]),
    ([1, 2], list[int]),
    ([1, "a", None], list[int | str | None]),
    ([[1], []], list[list[int]]),
    ([1, "a"], list),
    ([1, "a"], typing.List),
    ([object()], list[Any]),
    (set(), set[int]),
    ({1}, set[int]),
    ((1, "a"), tuple[int, str]),
    ((), tuple[int, ...]),
    ((1, 2, 3), tuple[int, ...]),
    ((), tuple[()]),
    ((), typing.Tuple[()]),
    ((1, "x"), typing.Tuple),
    ((1, "x"), tuple[int, typing_extensions.Unpack[tuple[str, ...]]]),  # noqa: UP044 - this spelling is tested
    ({}, dict[str, int]),
    ({"a": 1}, dict[str, int]),
    ({"a": [1]}, dict[str, list[int]]),
    ({"a": object()}, dict[str, Any]),
    (frozenset({"a"}), frozenset[int]),
    ([1], Sequence[str]),
    ({}, Mapping[str, int]),
    (collections.deque(["a"]), collections.deque[int]),
    (print, Callable[[int], str]),
    (int, type[str]),
    (Box("a"), Box[int]),
    (Box("a"), Box),
    (Model(size=1), Model),
    ("a", Literal["a", "b"]),
    (None, Literal["a", None]),
    (Color.RED, Literal[Color.RED]),
    (Shade.RED, Literal["red"]),
    ([1], Literal[[1]]),
    (3, Annotated[int, "unit"]),
    (3, Annotated[int, ["unhashable"]]),
    (3, UserId),
    ({"title": "Up"}, Movie),
    ({"title": "Up", "year": 2009, "rating": 5}, Movie),
    (collections.OrderedDict(title="Up"), Movie),
    ({"title": "Up"}, NewerMovie),
    ({"title": 3}, LostMovie),
    ([1], list[Annotated[int, ["unhashable"]]]),
    ({1: 2}, dict[str]),  # type: ignore[misc]
    ({"name": "a", "folders": [{"name": "b", "folders": []}]}, Folder),
    (Door(), Closeable),
    (Door(), Unchecked),
    (object(), Unchecked),
    (object(), T),
    (1, Bounded),
    (b"", Constrained),
    ([1, [2, [3]]], Tree),
    (object(), "Later"),
    ([1], list["Later"]),  # type: ignore[name-defined]  # noqa: F821
    (object(), ForwardRef("Later")),
    (object(), 5),
    ("a", typing_extensions.LiteralString),
    (7, Seven),
    (object(), Lost),
]

MISMATCHES = [
    (1.0, int),
    (True, float),
    ("1", int),
    (0, None),
    (1, NoReturn),
    (1, typing_extensions.Never),
    (3.0, int | str),
    (b"", Optional[str]),
    ([1], list[str]),
    ([1, 2, "a"], list[int]),
    ((1,), list[int]),
    ([[1], ["a"]], list[list[int]]),
    ([1], set[int]),
    ({"a"}, set[int]),
    ((1,), tuple[int, str]),
    (("a", 1), tuple[int, str]),
    ((1, "a"), tuple[int, ...]),
    ((1,), tuple[()]),
    ((1,), typing.Tuple[()]),
    ([1], tuple[int, ...]),
    ({1: 1}, dict[str, int]),
    ({"a": "b"}, dict[str, int]),
    ([], dict[str, int]),
    ([1], frozenset[int]),
    ({}, Sequence[str]),
    (3, Callable[[int], str]),
    (1, Box[int]),
    ({"size": 1}, Model),
    ("c", Literal["a", "b"]),
    (True, Literal[1]),
    (1, Literal[True]),
    (1.0, Literal[1]),
    ("red", Literal[Color.RED]),
    ([2], Literal[[1]]),
    ("3", Annotated[int, "unit"]),
    ("3", UserId),
    ({}, Movie),
    ({}, LostMovie),
    ({"title": 3}, Movie),
    ({"title": "Up", "year": "2009"}, Movie),
    ([("title", "Up")], Movie),
    ({"name": "a", "folders": [{"name": "b"}]}, Folder),
    (3, Closeable),
    (Door(), Named),
    ("a", Bounded),
    (1, Constrained),
    ([1, ["a"]], Tree),
    (1, typing_extensions.LiteralString),
    (8, Seven),
]


def test_a_fitting_value_matches():
    assert [pair for pair in MATCHES if not is_instance_of(*pair)] == []


def test_another_value_does_not_match():
    assert [pair for pair in MISMATCHES if is_instance_of(*pair)] == []


def test_a_literal_does_not_ask_strangers_whether_they_are_equal():
    class Grumpy:
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]

    assert not is_instance_of(Grumpy(), Literal["a"])


def test_a_proxy_in_a_list_counts_as_the_class_it_names():
    class Proxy:
        __class__ = int  # type: ignore[assignment]

    assert is_instance_of([Proxy(), 1], list[int])


def test_a_class_registered_with_an_abstract_one_matches_it():
    class Shape(abc.ABC):  # noqa: B024  only a place to register
        pass

    @Shape.register
    class Circle:
        pass

    assert is_instance_of(Circle(), Shape)
    assert is_instance_of([Circle()], list[Shape])
