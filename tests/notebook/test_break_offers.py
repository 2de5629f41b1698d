"""The breakpoints that a person may choose from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional

import pytest

from agentbench.notebook.break_offers import message_types, offers_of, where_of
from agentbench.notebook.breakpoints import breakpoint_at


class Draft:
    pass


OFFERS = offers_of(["plan", "review"], [str, Draft], ["score"])


def test_only_what_the_graph_has_is_offered() -> None:
    assert [each.sort for each in offers_of(["plan"], [], [])] == ["before", "after", "superstep", "failure", "request"]
    assert [each.sort for each in OFFERS] == [
        *("before", "after", "superstep", "message", "equals", "above", "below", "failure", "request"),
    ]
    assert OFFERS[0].options == ("plan", "review")


@pytest.mark.parametrize(
    ("sort", "choice", "value", "text"),
    [
        ("before", 1, None, "review"),
        ("after", 0, None, "after plan"),
        ("superstep", 0, 7, "superstep 7"),
        ("message", 1, None, "a message of type Draft"),
        ("equals", 0, '"good"', 'score == "good" holds'),
        ("above", 0, "0.5", "score > 0.5 holds"),
        ("failure", 0, None, "a failure"),
        ("request", 0, None, "a request"),
    ],
)
def test_a_choice_becomes_a_breakpoint(sort: str, choice: int, value: object, text: str) -> None:
    where = where_of(OFFERS, sort, choice, value)
    assert breakpoint_at("bp-1", where, executors=("plan", "review")).text == text


def test_an_executor_is_named_so_that_no_other_word_is_meant() -> None:
    offers = offers_of(["failure", "after:x"], [], [])
    assert where_of(offers, "before", 0, None) == "before:failure"
    assert where_of(offers, "before", 1, None) == "before:after:x"


@pytest.mark.parametrize(
    ("test", "state", "reached"),
    [
        ("above", {"score": 0.6}, True),
        ("above", {"score": 0.5}, False),
        ("below", {"score": 0.4}, True),
        ("equals", {"score": 0.5}, True),
        ("above", {}, False),
    ],
)
def test_a_value_of_the_state_is_compared(test: str, state: dict[str, Any], reached: bool) -> None:
    where: Any = where_of(OFFERS, test, 0, "0.5")
    assert bool(where(state)) is reached


@pytest.mark.parametrize(
    ("sort", "value", "told"),
    [("superstep", -1, "number of a superstep"), ("superstep", True, "number"), ("above", "half", "as JSON")],
)
def test_invalid_values_are_refused(sort: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        where_of(OFFERS, sort, 0, value)


@pytest.mark.parametrize(("sort", "choice"), [("nonsense", 0), ("before", 2), ("before", -1), ("failure", 1)])
def test_unknown_choices_are_refused(sort: str, choice: int) -> None:
    with pytest.raises(LookupError, match="no choice"):
        where_of(OFFERS, sort, choice, None)


def test_types_of_messages_are_found_in_unions_and_generics() -> None:
    executors = {
        "a": SimpleNamespace(input_types=[str, Optional[Draft], int | str]),  # noqa: UP045 - both spellings
        "b": SimpleNamespace(input_types=[list[Draft], object, Any]),
        "c": SimpleNamespace(),
    }
    assert message_types(executors) == [str, Draft, int, list]


def test_names_are_displayed_without_control_characters() -> None:
    assert offers_of(["a\u202eb"], [], [])[0].options == ("a\\u202eb",)
