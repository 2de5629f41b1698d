"""Every kind of field as people use it: by mouse, by keys, in both themes, on narrow pages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.test_form_page import CONTRAST, expect

pytest.importorskip("playwright")

TYPES = """
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from pydantic import AwareDatetime, BaseModel, Field, SecretStr
from agentbench.notebook import form

class Mood(Enum):
    GOOD = 1
    BAD = 2

Level = Literal["trace", "debug", "info", "warning", "error"]

class Address(BaseModel):
    "Where the parcel goes."
    street: str
    city: str = "Paris"

class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9

class Dog(BaseModel):
    kind: Literal["dog"]
    name: str

class Node(BaseModel):
    name: str
    child: "Node | None" = None

class Plain(BaseModel):
    "Fields of one value each."
    title: str = Field(max_length=40, description="What people read first.")
    count: Annotated[int, Field(ge=1, le=5)]
    price: Decimal | None
    urgent: bool
    notify: bool = True
    mood: Mood
    level: Level = "info"
    day: date
    at: AwareDatetime
    key: SecretStr
    data: bytes = b""
    extra: Any = None

class Nested(BaseModel):
    "Fields that hold others."
    address: Address
    amount: int | str
    pet: Cat | Dog = Field(discriminator="kind")
    tags: list[str] = ["red", "green"]
    limits: dict[str, int] = {"cpu": 4}
    tree: Node
    pair: tuple[int, str]
"""


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1280), (False, 560)], ids=["light", "dark", "narrow"])
def test_fields_of_every_kind_are_readable_in_both_themes(
    lab: Any, open_notebook: Any, dark: bool, width: int
) -> None:
    name = f"kinds-{dark}-{width}"
    lab.write(name, [TYPES, "form(Plain, title='A job')", "form(Nested, title='A parcel')"])
    shown = open_notebook(name, dark=dark, width=width, height=2600, own=True)
    shown.run_all()
    for number in (0, 1):
        form = shown.panel.locator(".abf").nth(number)
        form.get_by_role("button", name="Submit").click()
        expect(form.locator(".abf-summary")).to_contain_text("problems")
        shown.shot(f"fields-{number}-{'dark' if dark else 'light'}-{width}", form)
    for element in shown.panel.locator(".abf :is(.abf-label, .abf-help, .abf-problem, .abf-button, .abf-input)").all():
        if element.is_visible():
            assert element.evaluate(CONTRAST) >= 4.5, element.evaluate("e => e.outerHTML")
            assert element.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 12
    for target in shown.panel.locator(".abf :is(button, select, .abf-option, .abf-input)").all():
        if target.is_visible():
            assert target.bounding_box()["height"] >= 24, target.evaluate("e => e.outerHTML")
