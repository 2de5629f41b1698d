# ruff: noqa: UP045  the older spellings of types are tested, too
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, Optional, TypeVar

import pydantic
import pytest

from agentbench._signatures import coerce_answer, is_instance_of

T = TypeVar("T")


@dataclass
class Answer:
    ok: bool


@dataclass
class Decision:
    answer: Answer
    weight: float = 1.0
    notes: list[str] = field(default_factory=list)


@dataclass
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError(self.number)


@dataclass
class Wrapped(Generic[T]):
    content: T


@dataclass
class Unresolvable:
    part: Missing  # type: ignore[name-defined]  # noqa: F821


class Model(pydantic.BaseModel):
    size: int


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("a", str, "a"),
        (1, float, 1.0),
        (1, float | str, 1.0),
        (1, Optional[float], 1.0),
        (1, Annotated[float, "metres"], 1.0),
        ({"ok": True}, Answer, Answer(True)),
        ({"ok": True}, str | Answer, Answer(True)),
        ({"answer": {"ok": True}, "weight": 2}, Decision, Decision(Answer(True), 2.0)),
        ({"number": 3}, Answer | Positive, Positive(3)),
        ({"content": 3}, Wrapped[int], Wrapped(3)),
        ({"part": 3}, Unresolvable, Unresolvable(3)),
        ({"size": "3"}, Model, Model(size=3)),
        ({"size": 3}, Answer | Model, Model(size=3)),
    ],
)
def test_an_answer_becomes_the_requested_type(value, type_, expected):
    coerced = coerce_answer(value, type_)
    assert coerced == expected
    assert type(coerced) is type(expected)
    assert is_instance_of(coerced, type_)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (5, str),
        (True, float),
        ("1", float),
        ({"bad": 1}, Answer),
        ({"number": -1}, Positive),
        ({"size": "large"}, Model),
        ({"ok": True}, int),
        ({"ok": True}, Literal["a"]),
        ([1], Answer),
        (None, Answer),
    ],
)
def test_an_answer_that_cannot_become_it_comes_back_unchanged(value, type_):
    assert coerce_answer(value, type_) is value


def test_the_first_member_of_a_union_that_fits_wins():
    @dataclass
    class Other:
        ok: bool

    assert type(coerce_answer({"ok": True}, Other | Answer)) is Other
    assert type(coerce_answer({"ok": True}, Answer | Other)) is Answer
