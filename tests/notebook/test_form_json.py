"""A form as one JSON text: both ways, and nothing lost."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel, SecretStr

from agentbench.exceptions import FormInvalid
from agentbench.notebook import FormState, form
from agentbench.notebook.forms.text_values import JsonError


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


@dataclass
class Order:
    title: str
    amount: int
    price: Decimal | None = None
    key: SecretStr | None = None
    tags: list[str] = field(default_factory=list)
    pet: Cat | Dog | None = None
    pick: int | str = 0


def order(**raw: str | None) -> Any:
    made = form(Order)
    for path, text in raw.items():
        made.set_raw(path.replace("__", "."), text)
    return made


def test_half_typed_numbers_are_texts_in_json_and_come_back_as_they_were():
    made = order(title="T", amount="1,5", price="0.10")
    made.edit_json()
    assert '"amount": "1,5"' in made.json
    assert '"price": "0.10"' in made.json
    before = {path: text for path, text in made.raw.items() if path != "json"}
    assert made.edit_fields()
    assert made.raw == before


def test_an_edited_text_is_written_into_the_fields():
    made = order(title="T", amount="1")
    made.edit_json(
        '{"title": "U", "amount": 2, "tags": ["a", "b"], "pet": {"kind": "dog", "name": "Rex"}, "pick": "5"}'
    )
    assert made.value == Order("U", 2, tags=["a", "b"], pet=Dog(name="Rex"), pick="5")
    assert made.edit_fields()
    assert made.raw["pet"] == "Dog"
    assert made.raw["pick"] == "str"
    assert made.raw["tags[1]"] == "b"


def test_broken_json_stays_open_and_the_fields_do_not_change():
    made = order(title="T", amount="1")
    made.edit_json('{"title": "U", ')
    assert not made.edit_fields()
    assert made.json == '{"title": "U", '
    assert made.errors["json"].startswith("Not valid JSON: ")
    assert "line 1" in made.errors["json"]
    assert not made.submit()
    assert made.state is FormState.INVALID
    assert made.raw["title"] == "T"
    assert made.raw["json"] == '{"title": "U", '
    made.edit_json('{"title": "U", "amount": 1}')
    assert made.submit()
    assert made.value == Order("U", 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"titel": "U"}', "has no field 'titel'"),
        ('{"title": "U", "title": "V"}', "'title'"),
        ("[1]", "an object, not [1]."),
        ('{"tags": "a"}', "tags"),
        ('{"title": "U", "pet": {"kind": "cat", "wings": 2}}', "pet has no field 'wings'"),
        ("[" * 100_000, "too deep"),
    ],
    ids=lambda text: text[:20],
)
def test_what_has_no_field_is_refused_by_name_and_changes_nothing(text: str, said: str):
    made = order(title="T", amount="1")
    before = made.raw
    made.edit_json(text)
    assert said in made.errors["json"]
    assert made.raw == {**before, "json": text}
    with pytest.raises(FormInvalid):
        _ = made.value
    made.edit_json('{"title": "T", "amount": 1}')
    assert made.value == Order("T", 1)


def test_secrets_are_not_in_the_json_and_stay():
    made = order(title="T", amount="1", key="hush")
    made.edit_json()
    assert "hush" not in made.json
    made.edit_json(made.json.replace('"T"', '"U"'))
    assert made.value == Order("U", 1, key=SecretStr("hush"))
    made.edit_json(made.json.replace('"title"', '"key": "new", "title"'))
    assert made.value.key == SecretStr("new")


def test_the_type_that_was_chosen_stays_where_json_does_not_tell():
    class Buy(BaseModel):
        amount: int

    class Sell(BaseModel):
        amount: int

    made = form(list[Buy | Sell], value=[Sell(amount=1), Buy(amount=2)])
    made.edit_json(made.json.replace("1", "5"))
    assert made.value == [Sell(amount=5), Buy(amount=2)]


def test_two_equal_keys_have_no_json():
    made = form(dict[str, int])
    for at in (0, 1):
        made.set_raw(f"value.{at}.key", "a")
        made.set_raw(f"value.{at}.value", "1")
    with pytest.raises(JsonError):
        made.edit_json()
    assert "json" not in made.raw
