"""Classes that users register."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from agentbench import register_state_type
from agentbench._copying import isolate
from agentbench.exceptions import UnknownStoredTypeError
from agentbench.serialization import class_names, registry, state_types
from agentbench.serialization.json_text import from_json, to_json
from agentbench.serialization.state_types import type_of_identifier
from tests.parts.errors import raises


@pytest.fixture(autouse=True)
def _own_register() -> Iterator[None]:
    """Each test registers for itself."""
    tables: list[dict[Any, Any]] = [
        class_names._REGISTERED,
        class_names._NAMES,
        state_types._BY_NAME,
        state_types._BY_IDENTIFIER,
        state_types._BY_STORED_NAME,
        state_types._OTHER_NAMES,
        state_types._WITH_FORM,
        registry._BY_CLASS,
    ]
    before = [table.copy() for table in tables]
    yield
    for table, held in zip(tables, before, strict=True):
        table.clear()
        table.update(held)


class SearchHistory:
    def __init__(self, queries: list[str]) -> None:
        self.queries = queries

    def to_dict(self) -> dict[str, Any]:
        return {"type": "search_history", "queries": self.queries}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SearchHistory:
        return cls(queries=data["queries"])


class UserPreferences(BaseModel):
    language: str = "en"

    @classmethod
    def _get_type_identifier(cls) -> str:
        return "prefs"


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_a_class_with_to_dict_and_from_dict_comes_back() -> None:
    assert register_state_type(SearchHistory) is SearchHistory
    again = from_json(to_json({"h": SearchHistory(["a"])}))["h"]
    assert type(again) is SearchHistory
    assert again.queries == ["a"]


def test_encode_and_decode_make_any_class_storable() -> None:
    register_state_type(Plain, encode=lambda plain: (plain.value,), decode=lambda found: Plain(*found))
    again = from_json(to_json([Plain({1, 2})]))[0]
    assert type(again) is Plain
    assert again.value == {1, 2}


def test_it_is_a_decorator_with_and_without_arguments() -> None:
    @register_state_type
    @dataclass
    class Local:
        a: int = 1

    @register_state_type(identifier="tests.other")
    @dataclass
    class Other:
        a: int = 1

    assert from_json(to_json([Local(2), Other(3)])) == [Local(2), Other(3)]
    assert '"tests.other"' in to_json(Other())


def test_local_classes_of_all_kinds_can_be_read_once_they_are_registered() -> None:
    class Model(BaseModel):
        a: int = 1

    class Kind(Enum):
        A = 1

    class Two(NamedTuple):
        a: int

    for cls in (Model, Kind, Two):
        register_state_type(cls)
    values = [Model(a=2), Kind.A, Two(3), Model, list[Kind]]
    assert from_json(to_json(values)) == values
    assert list(map(type, from_json(to_json(values)))) == list(map(type, values))


def test_a_cell_that_is_run_again_replaces_its_class() -> None:
    def cell() -> Any:
        @register_state_type
        class Cell(SearchHistory):
            pass

        return Cell

    old, new = cell(), cell()
    again = from_json(to_json(old(["a"])))
    assert type(again) is new


def test_reading_a_class_that_is_not_registered_says_so() -> None:
    register_state_type(Plain, encode=vars, decode=lambda found: Plain(**found))
    text = to_json(Plain(1))
    state_types._BY_NAME.clear()
    with raises(UnknownStoredTypeError, "register_state_type") as caught:
        from_json(text)
    assert caught.value.type_name.endswith("test_state_types.Plain")


# ---- what a program or notebook defined --------------------------------------------------------------


def defined_in(module: str, *, record: bool) -> Any:
    """A class `Car` as if that module had defined it: a dataclass, or one with a form of its own."""

    class Car:
        def __init__(self, doors: int) -> None:
            self.doors = doors

        def to_dict(self) -> dict[str, Any]:
            return {"doors": self.doors}

        @classmethod
        def from_dict(cls, data: dict[str, Any]) -> Any:
            return cls(**data)

    @dataclass
    class Record:
        doors: int

    made: Any = Record if record else Car
    made.__module__, made.__qualname__, made.__name__ = module, "Car", "Car"
    return made


def stored_by_a_program(*, record: bool) -> str:
    car = register_state_type(defined_in("__main__", record=record))
    text = to_json(car(4))
    for table in (class_names._REGISTERED, state_types._BY_NAME):
        table.clear()
    return text


@pytest.mark.parametrize("record", [True, False])
def test_what_a_program_saved_is_read_once_its_class_of_now_is_registered(record: bool) -> None:
    text = stored_by_a_program(record=record)
    with raises(UnknownStoredTypeError, "'__main__.Car',", "register_state_type"):
        from_json(text)
    car = register_state_type(defined_in("shop", record=record))
    found = from_json(text)
    assert type(found) is car
    assert found.doors == 4


@pytest.mark.parametrize("record", [True, False])
def test_of_several_classes_of_one_name_the_identifier_tells_which_a_program_meant(record: bool) -> None:
    text = stored_by_a_program(record=record)
    register_state_type(defined_in("shop", record=record))
    other = defined_in("garage", record=record)
    register_state_type(other)
    with raises(UnknownStoredTypeError, "'__main__.Car'", "identifier="):
        from_json(text)
    register_state_type(other, identifier="__main__.Car")
    assert type(from_json(text)) is other


# ---- what cannot be registered -------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [str, int, float, bool, type(None), list, dict, set, frozenset])
def test_what_is_written_as_it_is_cannot_get_another_form(cls: type) -> None:
    with raises(TypeError, cls.__name__):
        register_state_type(cls, encode=str, decode=cls)


def test_an_identifier_belongs_to_one_class() -> None:
    register_state_type(Plain, identifier="mine", encode=vars, decode=Plain)
    with raises(ValueError, "'mine'"):
        register_state_type(SearchHistory, identifier="mine")
    register_state_type(UserPreferences, identifier="theirs")
    with raises(ValueError, "'theirs'", "UserPreferences"):
        register_state_type(dataclass(type("Fresh", (), {})), identifier="theirs")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cls": 5}, "Expected a class"),
        ({"cls": Plain}, "encode and decode"),
        ({"cls": Plain, "encode": vars}, "Pass two functions, or neither"),
    ],
    ids=str,
)
def test_what_cannot_be_registered_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        register_state_type(**arguments)


def test_a_class_is_found_by_every_identifier_that_it_may_write() -> None:
    register_state_type(SearchHistory)
    register_state_type(UserPreferences)
    for identifier, cls in {
        "searchhistory": SearchHistory,
        "search_history": SearchHistory,
        "prefs": UserPreferences,
        "userpreferences": UserPreferences,
        "user_preferences": UserPreferences,
    }.items():
        found = type_of_identifier(identifier)
        assert found is cls
    assert type_of_identifier("unknown") is None


def test_two_classes_of_one_identifier_are_distinguished_by_their_names(caplog: pytest.LogCaptureFixture) -> None:
    first = SearchHistory
    second = type("SearchHistory", (SearchHistory,), {"__module__": "elsewhere"})
    register_state_type(first)
    with caplog.at_level(logging.WARNING, "agentbench"):
        register_state_type(second)
    assert "'searchhistory' now means elsewhere.SearchHistory" in caplog.text
    assert type_of_identifier("searchhistory") is second
    assert type_of_identifier("searchhistory", f"{__name__}.SearchHistory") is first
    assert [type(each) for each in from_json(to_json([first(["a"]), second(["b"])]))] == [first, second]


def test_frozen_instances_are_shared_instead_of_copied() -> None:
    register_state_type(Plain, encode=vars, decode=lambda found: Plain(**found), frozen=True)
    plain = Plain([])
    assert isolate([plain])[0] is plain


def test_an_encoder_that_fails_is_named() -> None:
    register_state_type(Plain, encode=lambda plain: 1 / 0, decode=Plain)
    with raises(TypeError, "['p']", "Plain", "ZeroDivisionError"):
        to_json({"p": Plain(1)})
