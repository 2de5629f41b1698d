"""Single values: what may be typed, and what is refused with which words."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, SecretStr

from agentbench.notebook import form


class Mood(Enum):
    GOOD = 1
    BAD = 2


class OwnSecret(str):
    def get_secret_value(self) -> str:
        return str(self)


def typed(annotation: Any, text: str | None) -> Any:
    made = form(annotation)
    made.set_raw("value", text)
    return made.value if made.validate() else made.errors["value"]


@given(st.integers())
def test_every_whole_number_survives_its_text_however_large(number: int):
    assert typed(int, f" {number} ") == number


@pytest.mark.parametrize(
    ("annotation", "text", "words"),
    [
        (float, "1,5", "point"),
        (int, "1,000", "thousands"),
        (Annotated[int, Field(ge=1, le=5)], "9", "less than or equal to 5"),
        (Literal["a", "b"], "c", "options: a, b."),
        (Literal["a", "b"], "", "Choose one."),
    ],
)
def test_what_is_refused_says_why_and_is_never_changed(annotation: Any, text: str, words: str):
    assert words in typed(annotation, text)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Mood, "BAD", Mood.BAD),
        (Literal[1, "1"], "'1'", "1"),
        (bool, "No", False),
        (list[dict[tuple[int, int], str]], "[]", []),
        (SecretStr, "hush", SecretStr("hush")),
        (OwnSecret, "hush", OwnSecret("hush")),
    ],
)
def test_options_are_named_by_label_and_values_have_the_exact_type(annotation: Any, text: str, value: Any):
    assert (typed(annotation, text), type(typed(annotation, text))) == (value, type(value))


def test_limits_are_in_the_help():
    assert "# At least 1, at most 5" in form(Annotated[int, Field(ge=1, le=5)] | None).text
