"""The breakpoints that a person may choose from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Optional

import pytest

from agentbench.notebook.break_offers import message_types, offers_of, where_of


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
    ("sort", "value", "told"),
    [("superstep", -1, "number of a superstep"), ("superstep", True, "number"), ("above", "half", "as JSON")],
)
def test_invalid_values_are_refused(sort: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        where_of(OFFERS, sort, 0, value)


def test_types_of_messages_are_found_in_unions_and_generics() -> None:
    executors = {
        "a": SimpleNamespace(input_types=[str, Optional[Draft], int | str]),  # noqa: UP045 - both spellings
        "b": SimpleNamespace(input_types=[list[Draft], object, Any]),
        "c": SimpleNamespace(),
    }
    assert message_types(executors) == [str, Draft, int, list]
