"""Values as text that a person may change, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.forms.text_values import LONGEST, text_of, value_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclass
class Draft:
    title: str
    on: date


@given(JSON)
def test_an_unedited_text_comes_back_as_the_same_value(value: Any) -> None:
    try:
        text = text_of(value).text
    except ValueError:
        return  # a secret's name among the keys
    again = value_of(text, value)
    assert again == value
    assert type(again) is type(value)


def test_texts_are_not_quoted_and_stay_texts() -> None:
    assert text_of('say "hi"\n').text == 'say "hi"\n'
    assert value_of("12", "11") == "12"


@pytest.mark.parametrize(
    ("value", "text", "told"),
    [
        (3, "3", "a whole number"),
        (0.5, "0.5", "a number"),
        (True, "true", "true or false"),
        (None, "null", "JSON; null for None"),
        ({"a": [1, "ä"]}, '{"a": [1, "ä"]}', "JSON"),
        ((1, 2), "[1, 2]", "JSON"),
        (Draft("T", date(2024, 1, 2)), '{"title":"T","on":"2024-01-02"}', "JSON of a Draft"),
    ],
)
def test_other_values_are_json(value: object, text: str, told: str) -> None:
    shown = text_of(value)
    assert (shown.text, shown.help) == (text, told)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([Draft("T", date(2024, 1, 2))], "list"),
        ([(1, 2)], "list"),
        ({1: "a"}, "dict"),
        (float("nan"), "float"),
        (object(), "object"),
        ({"password": "x"}, "secret"),
        ("x" * (LONGEST + 1), "100,001"),
    ],
)
def test_what_would_lose_something_as_text_is_refused(value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        text_of(value)


@pytest.mark.parametrize(
    ("text", "before", "told"),
    [
        ("", 1, "Expected a whole number, such as 3"),
        ("1,5", 0.5, "Expected a number, such as 0.5"),
        ("True", False, "Expected true or false"),
        ("[1, 2", [], "Not valid JSON: .*column 6"),
        ('{\n"a": }', {}, "line 2, column 6"),
        ("NaN", 0.5, "NaN is not a JSON number"),
        ("Infinity", None, "Infinity is not a JSON number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_expected(text: str, before: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        value_of(text, before)


def test_json_of_a_number_beyond_the_floats_of_a_page_keeps_all_digits() -> None:
    assert value_of(json.dumps(2**60 + 1), 1) == 2**60 + 1
