# ruff: noqa: UP006, UP007, UP045  the older spellings of types are tested, too
from __future__ import annotations

import collections
import enum
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NewType, NoReturn, Optional, TypeVar, Union

import pydantic
import pytest

from agentbench._signatures import type_from_dict, type_to_dict
from tests.parts.errors import raises

T = TypeVar("T")
UserId = NewType("UserId", int)


class Outer:
    class Inner:
        pass


class Color(enum.Enum):
    RED = 1


@dataclass
class Box(Generic[T]):
    content: T


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


class Movie(typing.TypedDict):
    title: str


ROUND_TRIPS = [
    int,
    type(None),
    types.FunctionType,
    Any,
    NoReturn,
    Outer.Inner,
    Movie,
    UserId,
    T,
    collections.OrderedDict,
    Sequence,
    list[str],
    list[Outer.Inner],
    dict[str, list[int]],
    tuple[int, ...],
    tuple[int, str],
    tuple[()],
    Mapping[str, Any],
    Callable[[int], str],
    Callable[..., str],
    type[int],
    Box[int],
    Box[Box[int]],
    Page[int],
    int | str,
    Optional[int],
    Union[int, list[str]],
    list[int | None],
    Literal["a", 1, True, None, b"\x00"],
    Literal[Color.RED] | int,
]


def test_a_type_survives_json():
    assert [type_from_dict(json.loads(json.dumps(type_to_dict(type_)))) for type_ in ROUND_TRIPS] == ROUND_TRIPS


@pytest.mark.parametrize(
    ("type_", "plain"),
    [
        (None, type(None)),
        (typing.List[int], list[int]),
        (typing.List, list),
        (Annotated[int, "unit"], int),
        (list[Annotated[int, "unit"]], list[int]),
    ],
)
def test_other_spellings_come_back_in_the_plain_one(type_, plain):
    assert type_from_dict(type_to_dict(type_)) == plain


def test_a_class_is_written_as_its_qualified_name():
    assert type_to_dict(Outer.Inner) == f"{__name__}.Outer.Inner"


def test_a_generic_is_written_by_its_parts():
    assert type_to_dict(list[int | str]) == {
        "origin": "builtins.list",
        "args": [{"union": ["builtins.int", "builtins.str"]}],
    }


@pytest.mark.parametrize(
    "name", ["nowhere.Thing", "builtins.thing", "builtins:thing", "int", "", ":", "os.system", "os.path"]
)
def test_a_name_of_no_known_type_is_an_error_that_says_so(name):
    with raises(TypeError, f"'{name}'"):
        type_from_dict(name)


def test_a_class_inside_a_function_can_be_written_but_not_found_again():
    class Local:
        pass

    with raises(TypeError, "Local'"):
        type_from_dict(type_to_dict(Local))


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        {},
        {"origin": 5},
        {"union": "builtins.int"},
        {"union": []},
        {"literal": "a"},
        {"literal": [{"enum": f"{__name__}.Color", "name": "BLUE"}]},
        {"literal": [{"enum": f"{__name__}.Outer", "name": "Inner"}]},
        {"literal": [{}]},
        {"literal": [{"hex": "no"}]},
        {"origin": "builtins.int", "args": ["builtins.int"]},
        {"origin": "builtins.list", "args": 5},
    ],
)
def test_a_malformed_description_is_an_error(data):
    with pytest.raises(TypeError):
        type_from_dict(data)
