"""Dataclasses, models, enums and named tuples whose classes have changed since they were stored."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agentbench.exceptions import UnknownStoredTypeError
from agentbench.serialization.json_text import from_json, to_json
from tests.parts.errors import raises
from tests.serialization.samples import Box, Note


class Notebook:
    """A module in which classes are defined again and again."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def run(self, code: str) -> Any:
        """Run a cell; the value of its last name `C`."""
        exec(f"{PRELUDE}\n{code}", vars(self.module))
        return self.module.C


PRELUDE = (
    "from dataclasses import dataclass, field\nfrom enum import Enum, Flag\nfrom typing import NamedTuple\n"
    "from pydantic import BaseModel, Field, PrivateAttr"
)
SHAPES = {
    "dataclass": "@dataclass\nclass C:\n    a: int = 1",
    "slots": "@dataclass(frozen=True, slots=True)\nclass C:\n    a: int = 1",
    "model": "class C(BaseModel):\n    a: int = 1",
    "named tuple": "class C(NamedTuple):\n    a: int = 1",
}


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    module = types.ModuleType("cells")
    monkeypatch.setitem(sys.modules, "cells", module)
    return Notebook(module)


@pytest.mark.parametrize("code", SHAPES.values(), ids=SHAPES)
def test_an_instance_of_a_class_that_was_defined_again_is_stored_and_becomes_one_of_the_new_class(
    notebook: Notebook, code: str
) -> None:
    old = notebook.run(code)(a=5)
    new_class = notebook.run(code)
    again = from_json(to_json(old))
    assert type(again) is new_class
    assert type(again) is not type(old)
    assert again.a == 5


def test_a_member_of_an_enum_that_was_defined_again_is_found_by_its_name(notebook: Notebook) -> None:
    text = to_json(notebook.run("class C(Enum):\n    A = 1").A)
    new_class = notebook.run("class C(str, Enum):\n    A = 'other'")
    assert from_json(text) is new_class.A


@pytest.mark.parametrize("code", SHAPES.values(), ids=SHAPES)
def test_a_new_field_takes_its_default(notebook: Notebook, code: str) -> None:
    text = to_json(notebook.run(code)(a=5))
    notebook.run(f"{code}\n    b: str = 'new'")
    assert (from_json(text).a, from_json(text).b) == (5, "new")


@pytest.mark.parametrize("shape", ["dataclass", "model"])
def test_a_new_field_takes_what_its_factory_makes_each_time_anew(notebook: Notebook, shape: str) -> None:
    text = to_json(notebook.run(SHAPES[shape])(a=5))
    factory = "field(default_factory=list)" if shape == "dataclass" else "Field(default_factory=list)"
    notebook.run(f"{SHAPES[shape]}\n    b: list = {factory}")
    one, other = from_json(text), from_json(text)
    assert one.b == other.b == []
    assert one.b is not other.b


@pytest.mark.parametrize("shape", ["dataclass", "slots", "model", "named tuple"])
def test_a_new_field_without_a_default_is_a_clear_error(notebook: Notebook, shape: str) -> None:
    text = to_json(notebook.run(SHAPES[shape])(a=5))
    notebook.run(SHAPES[shape].replace("a: int = 1", "z: int\n    a: int = 1"))
    with raises(UnknownStoredTypeError, "'z'"):
        from_json(text)


@pytest.mark.parametrize("shape", ["dataclass", "slots", "model", "named tuple"])
def test_a_field_that_is_gone_is_a_clear_error(notebook: Notebook, shape: str) -> None:
    text = to_json(notebook.run(SHAPES[shape])(a=5))
    notebook.run(SHAPES[shape].replace("a: int", "other: int"))
    with raises(UnknownStoredTypeError, "cells.C", "'a'"):
        from_json(text)


def test_a_class_that_became_something_else_is_a_clear_error(notebook: Notebook) -> None:
    text = to_json(notebook.run(SHAPES["dataclass"])())
    notebook.run(SHAPES["model"])
    with pytest.raises(UnknownStoredTypeError):
        from_json(text)


def test_nothing_but_declared_fields_is_ever_set() -> None:
    text = to_json(Note("a")).replace('"tags":[]', '"tags":[],"__class__":"x"')
    with raises(UnknownStoredTypeError, "'__class__'"):
        from_json(text)
    text = to_json(Box[int](content=1)).replace('{"fields":{', '{"private":{"__dict__":{}},"fields":{')
    with raises(UnknownStoredTypeError, "'__dict__'"):
        from_json(text)
    text = to_json(Box[int](content=1)).replace('{"fields":{', '{"extra":{"more":1},"fields":{')
    with raises(UnknownStoredTypeError, "'more'"):
        from_json(text)


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, validate_assignment=True)

    at_least_one: int = Field(ge=1)


def test_a_model_comes_back_as_it_is_valid_or_not() -> None:
    model = Strict.model_construct(at_least_one="no number")
    again = from_json(to_json(model))
    assert vars(again) == {"at_least_one": "no number"}


@dataclass
class Late:
    now: int
    later: Any = field(init=False)


def test_a_field_that_was_never_set_stays_so() -> None:
    again = from_json(to_json(Late(1)))
    assert again.now == 1
    assert not hasattr(again, "later")
