"""What holds for forms of all types, tried on types, values and typing that nobody thought of."""

from __future__ import annotations

import contextlib
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from agentbench.exceptions import FormInvalid
from agentbench.notebook import Form, form
from agentbench.notebook.forms.text_values import JsonError


class Colour(Enum):
    RED = "r"
    BLUE = "b"


class Small(BaseModel):
    name: str
    size: int = 3


Typed = tuple[Any, st.SearchStrategy[Any]]

LEAVES: list[Typed] = [
    (str, st.text()),
    (int, st.integers()),
    (float, st.floats(allow_nan=False)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (Colour, st.sampled_from(Colour)),
    (Literal["a", 1, "1"], st.sampled_from(["a", 1, "1"])),
    (date, st.dates()),
    (datetime, st.datetimes() | st.datetimes(timezones=st.just(UTC))),
    (Small, st.builds(Small, name=st.text(), size=st.integers())),
    (int | str, st.integers() | st.text()),
]


def around(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda each: (list.__class_getitem__(each[0]), st.lists(each[1], max_size=3))),
        inner.map(lambda each: (each[0] | None, st.none() | each[1])),
        inner.map(
            lambda each: (dict.__class_getitem__((str, each[0])), st.dictionaries(st.text(), each[1], max_size=3))
        ),
        st.lists(inner, min_size=1, max_size=3).map(model_of),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda each: (
                tuple.__class_getitem__(tuple(kind for kind, _ in each)),
                st.tuples(*(values for _, values in each)),
            )
        ),
    )


def model_of(parts: list[Typed]) -> Typed:
    fields: dict[str, Any] = {f"f{at}": (kind, ...) for at, (kind, _) in enumerate(parts)}
    made = create_model("Made", **fields)
    values = st.fixed_dictionaries({f"f{at}": value for at, (_, value) in enumerate(parts)})
    return made, values.map(lambda given: made(**given))


TYPES = st.recursive(st.sampled_from(LEAVES), around, max_leaves=6)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Any, Any]:
    annotation, strategy = draw(TYPES)
    return annotation, draw(strategy)


def same(one: Any, other: Any) -> bool:
    """Equal, and of one type down to the last part: 1 is not True, -0.0 is not 0.0."""
    if isinstance(one, BaseModel):
        return type(one) is type(other) and same(dict(one), dict(other))
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


def retyped(annotation: Any, raw: dict[str, str | None]) -> Form:
    made = form(annotation)
    for path, text in raw.items():
        made.set_raw(path, text)
    return made


@given(typed_values())
def test_a_form_with_a_value_submits_that_value(case: tuple[Any, Any]):
    annotation, value = case
    made = form(annotation, value=value)
    assert made.submit()
    assert same(made.value, value)


@given(typed_values())
def test_texts_give_the_value_and_the_value_gives_the_texts(case: tuple[Any, Any]):
    annotation, value = case
    raw = form(annotation, value=value).raw
    again = retyped(annotation, raw)
    assert same(again.value, value)
    assert form(annotation, value=again.value).raw == raw


@given(typed_values())
def test_going_to_json_and_back_changes_nothing(case: tuple[Any, Any]):
    annotation, value = case
    made = retyped(annotation, form(annotation, value=value).raw)
    raw = made.raw
    made.edit_json()
    made.edit_json(json.dumps(json.loads(made.json)))  # the same, written otherwise
    assert made.edit_fields()
    assert made.raw == raw
    assert same(made.value, value)


PATHS = [
    "text",
    "number",
    "maybe",
    "rows[0]",
    "rows[1]",
    "pairs[0].key",
    "pairs[0].value",
    "pick.int",
    "pick.str",
    "box.name",
]


class Everything(BaseModel):
    text: str
    number: int
    maybe: float | None
    rows: list[int]
    pairs: dict[str, int]
    pick: int | str
    box: Small


@given(st.lists(st.tuples(st.sampled_from(PATHS), st.text() | st.none(), st.booleans()), max_size=25))
def test_no_typing_and_no_check_ever_loses_a_text(steps: list[tuple[str, str | None, bool]]):
    made = form(Everything)
    typed: dict[str, str | None] = {}
    for path, text, checks in steps:
        if path == "rows[1]" and "rows[0]" not in typed:
            with pytest.raises(KeyError):
                made.set_raw(path, text)
            continue
        made.set_raw(path, text)
        typed[path] = text
        if checks:
            assert not made.submit() or made.state == "answered"
            if made.state == "answered":
                return
        for each, kept in typed.items():
            union = each.startswith("pick.")
            if union and made.raw["pick"] != each.removeprefix("pick."):
                continue  # another type is chosen; its text waits
            assert made.raw[each] == kept
    for each in ("pick.int", "pick.str"):
        if each in typed:
            made.set_raw("pick", each.removeprefix("pick."))
            assert made.raw[each] == typed[each]


OPERATIONS = st.sampled_from(["add", "remove", "move", "pick", "type", "none", "json", "fields", "check", "submit"])


@given(st.lists(st.tuples(OPERATIONS, st.integers(0, 3), st.text(max_size=5)), max_size=30))
def test_after_any_operations_the_form_has_raw_texts_errors_and_a_text(steps: list[tuple[str, int, str]]):
    made = form(Everything, value={"rows": [1, 2], "pairs": {"a": 1}})
    done: dict[str, Any] = {
        "add": lambda at, text: made.add(("rows", "pairs")[at % 2]),
        "remove": lambda at, text: made.remove(("rows", "pairs")[at % 2], at),
        "move": lambda at, text: made.move(("rows", "pairs")[at % 2], at, 0),
        "pick": lambda at, text: made.set_raw("pick", ("int", "str")[at % 2]),
        "type": lambda at, text: made.set_raw(PATHS[at], text),
        "none": lambda at, text: made.set_raw(("maybe", "box")[at % 2], None),
        "json": lambda at, text: made.edit_json(text if at else None),
        "fields": lambda at, text: made.edit_fields(),
        "check": lambda at, text: made.validate(),
        "submit": lambda at, text: made.submit(),
    }
    for name, at, text in steps:
        # No such row; two keys that are the same.
        with contextlib.suppress(IndexError, JsonError):
            done[name](at, text)
        places = {place.path for place in made._model.root.walk()}
        assert set(made.errors) <= places | {"json"}
        assert set(made.raw) <= places | {"json"}
        assert "By code:" in made.text


@given(st.text())
def test_no_text_breaks_the_json_side(text: str):
    made = form(Everything, value={"text": "a"})
    before = made.raw
    made.edit_json(text)
    if "json" in made.errors:
        assert {path: raw for path, raw in made.raw.items() if path != "json"} == before
        assert made.json == text
        with pytest.raises(FormInvalid):
            _ = made.value
