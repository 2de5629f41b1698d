# ruff: noqa: UP006, UP007, UP045  the older spellings of types are tested, too
from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable
from typing import Annotated, Any, ForwardRef, Literal, NewType, NoReturn, Optional, TypeVar, Union

import pytest
import typing_extensions

from agentbench._signatures.forms import (
    flatten_union,
    is_any,
    is_never,
    is_type_form,
    qualified_name,
    type_name,
    union_of,
    unwrap,
)

T = TypeVar("T")
UserId = NewType("UserId", int)
Names = typing_extensions.TypeAliasType("Names", "list[str] | None")
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


def test_a_member_that_comes_twice_is_listed_once():
    assert flatten_union(Union[int, Annotated[int, "again"], str]) == (int, str)


@pytest.mark.parametrize(
    ("type_", "bare"),
    [
        (int, int),
        (None, type(None)),
        (UserId, int),
        (Annotated[UserId, "id"], int),
        (typing.ClassVar[int], int),
        (typing_extensions.Required[Annotated[str, "name"]], str),
        (NamesOrBytes, Union[Annotated[list[str], "names"], bytes]),
    ],
)
def test_layers_that_say_nothing_about_values_come_off(type_, bare):
    assert unwrap(type_) == bare


def test_an_alias_whose_value_is_only_text_keeps_it():
    assert unwrap(Names) == "list[str] | None"


def test_a_generic_alias_is_filled_with_its_arguments():
    pair = typing_extensions.TypeAliasType("pair", tuple[T, T], type_params=(T,))
    assert unwrap(pair[int]) == tuple[int, int]


def test_every_spelling_of_never_is_known():
    for type_ in [NoReturn, typing_extensions.Never, typing_extensions.NoReturn]:
        assert is_never(type_)


def test_nothing_else_is_taken_for_never():
    for type_ in [None, int, Any, list[NoReturn], Optional[int], "Never"]:
        assert not is_never(type_)


def test_any_is_known_in_both_spellings_and_a_class_of_that_name_is_not():
    class Instance:
        __name__ = "Any"

    mine = type("Any", (), {})
    assert is_any(typing.Any)
    assert is_any(typing_extensions.Any)
    assert not is_any(mine)
    assert not is_any(Instance())


def test_types_may_stand_where_a_type_is_expected():
    for type_ in [
        int,
        None,
        Any,
        NoReturn,
        int | str,
        Optional[int],
        list[int],
        typing.List,
        T,
        UserId,
        Names,
        Literal[1],
    ]:
        assert is_type_form(type_)


def test_other_objects_may_not():
    for value in [5, "int", [int], ..., Union, Optional, Literal, print, 1.5, ()]:
        assert not is_type_form(value)


def test_a_union_is_built_even_where_a_member_knows_no_or_operator():
    assert union_of((int, str)) == int | str
    assert union_of((typing.ForwardRef("Later"), int)) == Union["Later", int]  # noqa: F821


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


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (int, "builtins.int"),
        (None, "builtins.NoneType"),
        (Outer.Inner, f"{__name__}.Outer.Inner"),
        (list[str], "builtins.list[builtins.str]"),
        (int | None, "builtins.int | builtins.NoneType"),
        (Any, "typing.Any"),
    ],
)
def test_qualified_names_say_where_a_type_is(type_, name):
    assert qualified_name(type_) == name


def test_what_is_no_type_has_no_qualified_name():
    with pytest.raises(TypeError, match="5 has no name"):
        qualified_name(5)
