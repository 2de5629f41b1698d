from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.fields import field_for
from agentbench.notebook.forms.text_values import FieldError


class Mood(Enum):
    GOOD = 1
    BAD = 2


@dataclass
class Point:
    x: int
    y: int = 0


class Order(BaseModel):
    amount: Annotated[int, Field(ge=1)]
    at: Point


class Unknown:
    pass


class OwnSecret(str):
    def get_secret_value(self) -> str:
        return str(self)


def problem(annotation: Any, text: str | None, **settings: Any) -> str:
    with pytest.raises(FieldError) as caught:
        field_for(annotation, **settings).read(text)
    return str(caught.value)


def test_simple_types_get_a_field_of_their_own_and_all_others_are_json():
    expected: dict[str, list[Any]] = {
        "text": [str, SecretStr],
        "number": [int, float | None, Decimal],
        "choice": [bool, Literal["a"], Mood],
        "json": [Point, list[int], int | str, Any, Unknown],
    }
    for kind, types in expected.items():
        assert {field_for(annotation).kind for annotation in types} == {kind}


@given(st.integers())
def test_every_whole_number_survives_its_text_however_large(number: int):
    field = field_for(int)
    text = field.write(number)
    assert text is not None
    # Beyond some thousands of digits Python itself refuses the text.
    assert field.read(f" {text} ") == number


@given(st.floats(allow_nan=False) | st.decimals(allow_nan=False, allow_infinity=False))
def test_every_number_survives_its_text(number: float | Decimal):
    field = field_for(type(number))
    text = field.write(number)
    again = field.read(text)
    assert again == number
    assert type(again) is type(number)


def test_a_comma_is_refused_with_a_hint_and_never_read():
    assert "point" in problem(float, "1,5")
    assert "thousands" in problem(int, "1,000")


def test_limits_refuse_and_never_clamp():
    bounded = Annotated[int, Field(ge=1, le=5)]
    assert "less than or equal to 5" in problem(bounded, "9")
    assert field_for(bounded).help == "At least 1, at most 5"
    assert field_for(bounded | None).help == "At least 1, at most 5"


def test_choices_are_named_by_label_and_return_their_value():
    assert field_for(Mood).read("BAD") is Mood.BAD
    assert field_for(Mood).write(Mood.BAD) == "BAD"
    assert field_for(Literal[1, "1"]).read("'1'") == "1"
    assert field_for(bool).read("No") is False
    assert problem(Literal["a", "b"], "c") == "'c' is not among the options: a, b."
    assert problem(Literal["a", "b"], "") == "Choose one."


def test_json_values_are_never_guessed_between_members_of_a_union():
    field = field_for(int | str)
    assert field.read("5") == 5
    assert field.read('"5"') == "5"


def test_secrets_are_hidden():
    field = field_for(SecretStr)
    assert field.secret
    assert field.read("hush") == SecretStr("hush")
    own = field_for(OwnSecret).read("hush")
    assert isinstance(own, OwnSecret)


def test_a_type_that_names_an_undefined_one_is_refused_with_the_name():
    with pytest.raises(NotebookError, match="Nowhere"):
        field_for(list["Nowhere"])  # type: ignore[name-defined]  # noqa: F821
