# ruff: noqa: UP006, UP007, UP045  the older spellings of types are tested, too
from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable
from typing import Annotated, Any, ForwardRef, Literal, NewType, NoReturn, Optional, TypeVar, Union

import typing_extensions

from agentbench._signatures.forms import (
    flatten_union,
    type_name,
)

T = TypeVar("T")
UserId = NewType("UserId", int)
NamesOrBytes = typing_extensions.TypeAliasType("NamesOrBytes", Annotated[list[str], "names"] | bytes)


def test_a_union_falls_apart_into_its_members_in_the_order_written():
    for type_, members in [
        (int, (int,)),
        (int | str, (int, str)),
        (Union[str, int], (str, int)),
        (Optional[int], (int, type(None))),
        (None, (type(None),)),
        (Any, (Any,)),
        (list[int], (list[int],)),
        (Annotated[int, "unit"], (int,)),
        (Annotated[int | str, "either"], (int, str)),
        (Union[int, Annotated[Optional[str], "x"]], (int, str, type(None))),
        (Literal["a", "b"] | None, (Literal["a", "b"], type(None))),
        (UserId, (UserId,)),
        (NoReturn, ()),
        (typing_extensions.Never, ()),
        (Union[int, NoReturn], (int,)),  # noqa: RUF020
        (NamesOrBytes, (list[str], bytes)),
    ]:
        assert flatten_union(type_) == members


# ---- names


class Outer:
    class Inner:
        pass


def test_types_are_named_as_people_write_them():
    for type_, name in [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (Any, "Any"),
        (NoReturn, "NoReturn"),
        (int | str, "int | str"),
        (Optional[int], "int | None"),
        (Union[int, list[str]], "int | list[str]"),
        (list[str], "list[str]"),
        (typing.List[str], "list[str]"),
        (typing.List, "list"),
        (dict[str, list[int]], "dict[str, list[int]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (tuple[()], "tuple[()]"),
        (Callable[[int], str], "Callable[[int], str]"),
        (collections.abc.Sequence[str], "Sequence[str]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (Annotated[int, "unit"], "int"),
        (Outer.Inner, "Outer.Inner"),
        (UserId, "UserId"),
        (T, "T"),
        ("Later", "Later"),
        (ForwardRef("Later"), "Later"),
        (5, "5"),
    ]:
        assert type_name(type_) == name


def test_a_class_inside_a_function_is_named_without_the_function():
    class Local:
        pass

    assert type_name(Local) == "Local"
