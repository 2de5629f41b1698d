"""Numbers of numpy as numbers of Python, and classes of a notebook that were defined again."""

import enum
import sys
from dataclasses import make_dataclass
from types import GenericAlias
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import create_model

from agentbench._signatures import coerce_answer, describe_redefinition, is_instance_of, is_type_compatible, type_of
from agentbench._signatures.equivalence import warn_of_redefinition
from agentbench.exceptions import WorkflowWarning
from tests.parts.errors import warns

numpy = pytest.importorskip("numpy")

SCALARS = [
    (numpy.bool_(1), bool),
    (numpy.bool_(1), int),
    (numpy.int64(1), int),
    (numpy.uint8(1), int | None),
    (numpy.int64(1), float),
    (numpy.float32(1.5), float),
    (numpy.float64(1.5), complex),
    (numpy.complex64(1j), complex),
    (numpy.str_("a"), str),
    ([numpy.int64(1), 2], list[int]),
    ({"a": numpy.float32(1)}, dict[str, float]),
]


@pytest.mark.parametrize(("value", "type_"), SCALARS)
def test_a_scalar_of_numpy_is_the_number_that_it_stands_for(value, type_):
    assert is_instance_of(value, type_)


@pytest.mark.parametrize("type_", [numpy.int64, numpy.bool_, numpy.float32])
def test_scalars_of_numpy_may_go_where_their_numbers_may(type_):
    number = type(type_(1).item())
    assert is_type_compatible(type_, number)
    assert not is_type_compatible(number, type_)
    assert is_type_compatible(type_, str) is False


@pytest.mark.parametrize(
    ("value", "type_"),
    [(numpy.int64(1), bool), (numpy.float64(1), int), (numpy.bool_(1), float), (numpy.datetime64("2026-01-01"), int)],
)
def test_a_scalar_of_numpy_is_no_other_number(value, type_):
    assert not is_instance_of(value, type_)


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_whole_number_is_a_float_of_any_kind(number):
    for value in (number, numpy.int64(number)):
        assert is_instance_of(value, float)
        answer = coerce_answer(value, float)
        assert type(answer) is float
        assert answer == number


def test_an_answer_of_numpy_becomes_a_number_of_python():
    for value, type_ in ((numpy.int64(3), int), (numpy.bool_(1), bool), (numpy.float32(1.5), float)):
        answer = coerce_answer(value, type_)
        assert type(answer) is type_
        assert answer == value


def test_the_name_of_a_type_of_numpy_has_its_package():
    assert type_of(numpy.bool_(1)).startswith("numpy.bool")
    assert type_of([numpy.int64(1)]) == "list[numpy.int64]"
    assert type_of(True) == "bool"


# ---- classes that were defined again -------------------------------------------------------------


def as_in_a_cell(cls: Any) -> Any:
    """Let a class be one of `__main__`, as the classes of a notebook are."""
    cls.__module__, cls.__qualname__ = "__main__", cls.__name__
    return cls


def kinds_of_class(name):
    yield as_in_a_cell(make_dataclass(name, [("n", int)]))
    yield as_in_a_cell(create_model(name, n=(int, 1)))
    yield as_in_a_cell(enum.Enum(name, {"A": 1}))


@pytest.mark.parametrize("kind", range(3), ids=["dataclass", "model", "enum"])
def test_a_class_that_was_defined_again_with_the_same_fields_is_the_same(kind):
    old: Any = list(kinds_of_class("Row"))[kind]
    new: Any = list(kinds_of_class("Row"))[kind]
    value = new.A if kind == 2 else new(n=1)
    assert is_instance_of(value, old)
    assert is_instance_of([value], GenericAlias(list, old))
    assert is_type_compatible(new, old)
    assert is_type_compatible(GenericAlias(list, new), GenericAlias(list, old))


def test_other_fields_another_name_or_a_module_make_it_another_class():
    old = as_in_a_cell(make_dataclass("Row", [("n", int)]))
    more = as_in_a_cell(make_dataclass("Row", [("n", int), ("m", int)]))
    typed = as_in_a_cell(make_dataclass("Row", [("n", str)]))
    named = as_in_a_cell(make_dataclass("Line", [("n", int)]))
    imported = make_dataclass("Row", [("n", int)])
    without = as_in_a_cell(type("Row", (), {}))
    for new in (more, typed, named, imported, without):
        assert not is_type_compatible(new, old)


def test_the_executor_of_the_older_class_is_the_one_to_run_again(monkeypatch):
    old, new = (as_in_a_cell(make_dataclass("Row", [("n", int)])) for _ in range(2))
    monkeypatch.setattr(sys.modules["__main__"], "Row", new, raising=False)
    for given_type, taken_type, late in ((new, old, "'use'"), (old, new, "'make'")):
        text = f"Row was defined again after {late} was created; run the cell of {late} again."
        assert describe_redefinition([int, given_type], [GenericAlias(list, taken_type)], "'make'", "'use'") == text
    assert describe_redefinition([new], [new, int], "'make'", "'use'") is None


def test_a_redefinition_is_warned_of_once():
    old, new = (as_in_a_cell(make_dataclass("Row", [("n", int)])) for _ in range(2))
    with warns(WorkflowWarning, "defined"):
        warn_of_redefinition([new], [old], "'make'", "'use'")
    warn_of_redefinition([new], [old], "'make'", "'use'")  # warnings are errors here
    warn_of_redefinition([new], [new], "'make'", "'use'")
