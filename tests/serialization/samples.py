"""Classes and values to store, and what "the same" means for them."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, PrivateAttr, RootModel

T = TypeVar("T")


@dataclass
class Note:
    text: Any
    tags: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any = 0


@dataclass
class Derived(Note):
    made: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.made = "by __post_init__"


class Pair(NamedTuple):
    left: Any
    right: Any = None


class Color(enum.Enum):
    RED = 1
    GREEN = "g"


class Word(enum.StrEnum):
    YES = "yes"


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Order(BaseModel):
    model_config = ConfigDict(extra="allow")

    item: Any
    amount: Any = 1
    _seen: Any = PrivateAttr(default=None)


class Box(BaseModel, Generic[T]):
    content: T


class Names(RootModel[list[Any]]):
    pass


def seen_order(item: Any, seen: Any, extra: dict[str, Any]) -> Order:
    order = Order(item=item, **extra)
    order._seen = seen
    return order


def same(a: Any, b: Any) -> bool:
    """Equal in value and type all the way down; nan is the same as nan, 0.0 is not the same as -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (float, Decimal)):
        return repr(a) == repr(b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, datetime):
        return (a, a.fold, repr(a.tzinfo)) == (b, b.fold, repr(b.tzinfo))
    if isinstance(a, dict):
        factories = [getattr(each, "default_factory", None) for each in (a, b)]
        return factories[0] is factories[1] and same(list(map(list, a.items())), list(map(list, b.items())))
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and all(any(same(one, other) for other in b) for one in a)
    if isinstance(a, (list, tuple, deque)):
        limits = getattr(a, "maxlen", None), getattr(b, "maxlen", None)
        return limits[0] == limits[1] and len(a) == len(b) and all(map(same, a, b))
    return same_instances(a, b)


def same_instances(a: Any, b: Any) -> bool:
    if isinstance(a, BaseModel):
        parts = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
        return all(same(getattr(a, part), getattr(b, part)) for part in parts)
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return all(same(getattr(a, each.name), getattr(b, each.name)) for each in dataclasses.fields(a))
    if isinstance(a, slice):
        return same([a.start, a.stop, a.step], [b.start, b.stop, b.step])
    return bool(a == b) and (not isinstance(a, enum.Enum) or a is b)


ZONES = [UTC, timezone(timedelta(hours=2)), timezone(timedelta(minutes=-90), "odd"), ZoneInfo("Europe/Berlin")]
TYPES = [int, Note, list[int], dict[str, Any], int | None, Any, Literal["a", 1], tuple[int, ...], type(None), Box[int]]
PATTERNS = [re.compile("a+", re.IGNORECASE), re.compile(b"b")]
TEXTS = st.text(max_size=12) | st.sampled_from(["__t__", "v", "__pickled__", "\ud800", "é", ""])


def hashables() -> st.SearchStrategy[Any]:
    """Values that can be in sets, or keys of dictionaries."""
    atoms = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        TEXTS,
        st.binary(max_size=8),
        st.complex_numbers(),
        st.sampled_from([*Color, *Word, *Level, Right.READ, Right.READ | Right.WRITE, Right(0), *TYPES, *PATTERNS]),
        st.dates(),
        st.datetimes(timezones=st.sampled_from([None, *ZONES])),
        st.times(),
        st.timedeltas(),
        st.uuids(),
        st.decimals(),
        st.fractions(),
        st.sampled_from([*ZONES, range(3), range(5, 1, -2), Path("a/b"), PurePosixPath("/x"), PureWindowsPath("c:/x")]),
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(tuple),
            st.frozensets(inner.filter(_can_be_hashed), max_size=3),
            st.builds(Point, inner, inner),
            inner.map(Pair),
        ),
        max_leaves=5,
    ).filter(_can_be_hashed)


def _can_be_hashed(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:  # a signalling nan
        return False
    return True


def values() -> st.SearchStrategy[Any]:
    """Values of every type that can be stored without numpy and pandas, nested in each other."""
    keys = hashables()
    return st.recursive(
        keys | st.builds(slice, st.integers(), st.none()) | st.binary(max_size=8).map(bytearray),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(TEXTS, inner, max_size=4),
            st.dictionaries(keys, inner, max_size=3),
            st.sets(keys, max_size=3),
            st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
            st.dictionaries(keys, inner, max_size=3).map(lambda found: defaultdict(list, found)),
            st.dictionaries(keys, st.integers(), max_size=3).map(Counter),
            st.builds(deque, st.lists(inner, max_size=3), st.sampled_from([None, 3, 9])),
            st.builds(Note, inner, st.lists(inner, max_size=2)),
            inner.map(Derived),
            st.builds(Point, inner, inner),
            st.builds(Pair, inner, inner),
            st.builds(seen_order, inner, inner, st.dictionaries(st.sampled_from(["more", "other"]), inner)),
            inner.map(lambda found: Order(item=found)),
            inner.map(lambda found: Box[Any](content=found)),
            st.lists(inner, max_size=2).map(Names),
        ),
        max_leaves=12,
    )


EXAMPLES: list[Any] = [
    None,
    10**5000,
    -(10**5000),
    2**4096,
    float("nan"),
    float("-inf"),
    -0.0,
    Decimal("sNaN"),
    Decimal("-0E-7"),
    Fraction(10**400, 3),
    UUID(int=7),
    datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    defaultdict(None, {1: 2}),
    {"__t__": "tuple", "v": [1]},
    [{"__t__": 1, "v": {"__t__": "int", "v": "ff"}}],
    {"__pickled__": "gAQu", "__type__": "builtins:int"},
    {"__t__\u0000": 1},
    Derived("text"),
    Box[int](content=3),
    {1: "a", "1": "b", (1,): "c"},
    list(range(100)),
    {str(number): number for number in range(100)},
]
