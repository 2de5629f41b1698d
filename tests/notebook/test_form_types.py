"""Forms of Python types: which fields a type gets, and that values go in and come out as they are."""

from collections import abc
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NaiveDatetime,
    RootModel,
    SecretStr,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

from agentbench.exceptions import FormInvalid
from agentbench.notebook import Form, form
from agentbench.notebook.forms.from_schema import field_of_type
from tests.parts.errors import raises


class Mood(Enum):
    GOOD = 1
    BAD = 2


@dataclass
class Address:
    """Where it goes."""

    street: str
    city: str = "Paris"


class Parcel(BaseModel):
    """What is sent."""

    title: str = Field(description="What people read.", max_length=20)
    weight: Annotated[float, Field(gt=0)]
    to: Address
    tags: list[str] = []
    limits: dict[str, int] = {}

    @field_validator("title")
    @classmethod
    def no_shouting(cls, title: str) -> str:
        if title.isupper() and len(title) > 1:
            raise ValueError("Do not shout.")
        return title


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Tree(BaseModel):
    name: str
    left: Optional["Tree"] = None
    more: list["Tree"] = []


class Endless(BaseModel):
    """One that needs itself."""

    inner: Union["Endless", int]


class Options(TypedDict):
    speed: int
    note: NotRequired[str]
    retries: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: int = 0


class Unknown:
    pass


UserId = NewType("UserId", int)


def test_a_type_gets_the_shape_of_its_content():
    expected: dict[str, list[Any]] = {
        "leaf": [
            str,
            UserId,
            int | None,
            datetime,
            Path,
            Any,
            Unknown,
            dict[tuple[int, int], str],
            RootModel[list[int]],
        ],
        "group": [Address, Parcel, Parcel | None, Options, Point, tuple[int, str]],
        "rows": [
            tuple[int, ...],
            list[int],
            list,
            set[str],
            frozenset[int],
            abc.Sequence[int],
            Annotated[list[int], Field(max_length=3)],
        ],
        "pairs": [dict[str, int], dict[int, Parcel], abc.Mapping[str, int]],
        "union": [int | str, int | str | None],
    }
    for kind, annotations in expected.items():
        for annotation in annotations:
            made = field_of_type(annotation)
            assert made.is_leaf if kind == "leaf" else made.kind == kind, annotation


def fill(annotation: Any, **raw: str | None) -> Form:
    made = form(annotation)
    for path, text in raw.items():
        made.set_raw(path.replace("__", "."), text)
    return made


def test_a_model_is_filled_field_by_field():
    made = fill(Parcel, title="Books", weight="1.5", to__street="Rue 1", tags__0="a", tags__1="b")
    made.set_raw("limits[0].key", "cpu")
    made.set_raw("limits[0].value", "4")
    assert made.value == Parcel(title="Books", weight=1.5, to=Address("Rue 1"), tags=["a", "b"], limits={"cpu": 4})
    assert made.value.to.city == "Paris"
    assert "city" not in {"title", "weight", "to", "tags", "limits"} - made.value.model_fields_set


def test_defaults_of_a_type_are_displayed_and_not_set():
    made = fill(Cat)
    assert made.raw == {"lives": "9"}
    assert made.value.model_fields_set == {"kind"}


def test_errors_stand_at_their_field():
    made = fill(Parcel, title="Books", weight="-1", to__street="Rue 1", limits__0__key="a", limits__0__value="x")
    assert not made.validate()
    assert list(made.errors) == ["weight", "limits[0].value"]
    made = fill(Parcel, title="SHOUT", weight="1", to__street="Rue 1")
    assert made.errors == {}
    made.validate()
    assert made.errors == {"title": "Do not shout."}


def test_a_problem_with_a_whole_model_is_at_its_path():
    class Span(BaseModel):
        low: int
        high: int

        @model_validator(mode="after")
        def ordered(self) -> "Span":
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    class Two(BaseModel):
        value: int
        span: Span

    made = fill(Two, value="1", span__low="3", span__high="2")
    made.validate()
    assert made.errors == {"span": "low is above high"}


def test_a_bool_that_must_be_answered_is_not_preset():
    @dataclass
    class Two:
        sure: bool
        loud: bool = True

    made = form(Two)
    assert made.raw == {"loud": "Yes"}
    assert not made.validate()
    made.set_raw("sure", "No")
    assert made.value == Two(False)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (date, "2024-05-17", date(2024, 5, 17)),
        (time, "14:30", time(14, 30)),
        (datetime, "2024-05-17 14:30", datetime(2024, 5, 17, 14, 30)),
        (NaiveDatetime, "2024-05-17T14:30:01.5", datetime(2024, 5, 17, 14, 30, 1, 500_000)),
        (AwareDatetime, "2024-05-17 14:30Z", datetime(2024, 5, 17, 14, 30, tzinfo=UTC)),
        (AwareDatetime, "2024-05-17 14:30+02:00", datetime(2024, 5, 17, 12, 30, tzinfo=UTC)),
        (timedelta, "PT1H", timedelta(hours=1)),
        (UUID, "00000000-0000-0000-0000-000000000003", UUID(int=3)),
        (Path, "/tmp", Path("/tmp")),
        (bytes, "aGk=", b"hi"),
        (UserId, "7", 7),
        (Decimal, "1.50", Decimal("1.50")),
    ],
)
def test_what_is_written_as_text_is_typed_as_text(annotation: Any, text: str, value: Any):
    made = fill(annotation, value=text)
    assert made.value == value
    assert form(annotation, value=value).value == value


@pytest.mark.parametrize(
    ("annotation", "text", "said"),
    [
        (date, "17.5.2024", "Type a date such as 2024-05-17."),
        (date, "1700000000", "Type a date"),
        (datetime, "2024-05-17", "Type a date and a time"),
        (AwareDatetime, "2024-05-17 14:30", "timezone"),
        (NaiveDatetime, "2024-05-17 14:30Z", "timezone"),
        (date, "2024-02-30", "day value is outside"),
        (time, "noon", "Type a time such as 14:30."),
        (bytes, "not base64!", "base64"),
        (UUID, "3", "UUID"),
    ],
)
def test_texts_that_are_no_such_value_are_refused_with_what_is(annotation: Any, text: str, said: str):
    made = fill(annotation, value=text)
    assert not made.validate()
    assert said in made.errors["value"]
    assert made.raw == {"value": text}


def test_files_above_five_megabytes_are_refused():
    made = form(bytes, value=b"x" * (5 * 1024 * 1024))
    assert len(made.value) == 5 * 1024 * 1024
    import base64

    made.set_raw("value", base64.b64encode(b"x" * (5 * 1024 * 1024 + 1)).decode())
    assert not made.validate()
    assert "5,242,881 bytes" in made.errors["value"]


# ---- several types


def test_a_text_is_never_guessed_between_number_and_text():
    made = form(int | str)
    made.set_raw("value.str", "5")
    assert made.value == "5"
    made.set_raw("value.int", "5")
    assert made.value == 5
    made.set_raw("value", "str")
    assert made.value == "5"
    assert made.raw == {"value.str": "5", "value": "str"}


def test_what_was_typed_for_the_other_type_is_there_again():
    made = fill(Owner, pet__dog__name="Rex")
    assert made.value == Owner(pet=Dog(kind="dog", name="Rex"))
    made.set_raw("pet", "cat")
    assert made.value == Owner(pet=Cat(kind="cat"))
    made.set_raw("pet", "dog")
    assert made.value.pet.name == "Rex"


# ---- none, and left out


def test_none_and_empty_are_different_answers():
    @dataclass
    class Note:
        text: str | None

    assert fill(Note, text="").value == Note("")
    assert fill(Note, text=None).value == Note(None)
    with pytest.raises(FormInvalid):
        _ = form(Note).value


def test_a_box_can_be_none_and_keeps_what_was_typed_in_it():
    @dataclass
    class Order:
        to: Address | None

    made = fill(Order, to__street="Rue 1")
    made.set_raw("to", None)
    assert made.value == Order(None)
    made.set_raw("to", "")
    assert made.value == Order(Address("Rue 1"))


def test_what_may_be_left_out_is_left_out_until_it_is_touched():
    made = fill(Options, speed="3")
    assert made.value == {"speed": 3}
    made.set_raw("note", "")
    assert made.value == {"speed": 3, "note": ""}
    made.set_raw("note", None)
    made.set_raw("retries", " ")
    assert made.value == {"speed": 3}


# ---- rows


def test_rows_are_added_moved_and_removed_with_their_texts():
    made = form(list[str], value=["a", "b"])
    assert made.add("value") == "value[2]"
    made.set_raw("value[2]", "c")
    made.move("value", 2, 0)
    assert made.value == ["c", "a", "b"]
    made.remove("value", 1)
    assert made.value == ["c", "b"]
    with pytest.raises(IndexError):
        made.remove("value", 5)
    with raises(TypeError, "no rows"):
        form(int).add("value")


# ---- types inside themselves


def test_a_type_inside_itself_is_opened_on_demand_and_sent():
    made = form(Tree, value=Tree(name="a"))
    _ = made.widget
    made.set_raw("left", "")
    assert not made.validate()
    made.set_raw("left.name", "b")
    assert made.submit()
    assert made.value == Tree(name="a", left=Tree(name="b"))
    endless = form(Endless)
    endless.set_raw("inner.Endless", "")
    endless.set_raw("inner.Endless.inner.int", "3")
    assert endless.value == Endless(inner=Endless(inner=3))


# ---- values that stand there first


def test_an_initial_secret_stays_and_is_not_displayed():
    @dataclass
    class Login:
        name: str
        key: SecretStr

    made = form(Login, value=Login("ann", SecretStr("hush")))
    assert "hush" not in str(made.raw)
    made.set_raw("name", "bob")
    assert made.value == Login("bob", SecretStr("hush"))
    made.set_raw("key", "new")
    made.submit()
    assert made.value.key == SecretStr("new")
    made.reopen()
    assert made.raw == {"name": "bob"}
    assert not made.validate()


# ---- types as people write them


def test_aliases_are_the_names_in_the_input_of_the_type():
    class Aliased(BaseModel):
        first: int = Field(alias="firstName")
        second: int = Field(validation_alias=AliasChoices("second_name", "two"))

    made = fill(Aliased, first="1", second="x")
    assert list(made.errors or (made.validate(), made.errors)[1]) == ["second"]
    made.set_raw("second", "2")
    assert (made.value.first, made.value.second) == (1, 2)
    assert form(Aliased, value=made.value).raw == {"first": "1", "second": "2"}

    class Deep(BaseModel):
        x: int = Field(validation_alias=AliasPath("a", 0))

    assert field_of_type(Deep).kind == "json"


def test_strict_models_take_what_was_typed():
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        n: int
        at: date
        mood: Mood
        to: Address
        tags: set[str]

    made = fill(Strict, n="1", at="2024-05-17", mood="BAD", to__street="s", tags__0="a")
    assert made.value == Strict(n=1, at=date(2024, 5, 17), mood=Mood.BAD, to=Address("s"), tags={"a"})


def test_positions_in_paths_are_read_in_brackets_and_after_dots():
    made = form(dict[str, list[str]])
    for path in ("value.0.key", "value[0].value[0]", "value.0.value.1", "value[0].value[2]"):
        made.set_raw(path, path)
    assert made.raw == {
        "value[0].key": "value.0.key",
        "value[0].value[0]": "value[0].value[0]",
        "value[0].value[1]": "value.0.value.1",
        "value[0].value[2]": "value[0].value[2]",
        "value[0].value": "3",
        "value": "1",
    }
    with raises(KeyError, "tags[0]"):
        made.set_raw("value.x", "a")


def test_fields_that_a_dataclass_makes_itself_are_not_in_the_form():
    @dataclass
    class Counted:
        name: str
        size: int = field(init=False, default=3)
        made: list[int] = field(default_factory=list)
        now: float = field(default_factory=lambda: 1.0)

    made = form(Counted)
    assert {path.split("[")[0] for path in made.text.split("'")[1::2]} >= {"name", "made", "now"}
    made.set_raw("name", "a")
    assert made.value == Counted("a")
    assert "size" not in made.text


# ---- form fields


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
