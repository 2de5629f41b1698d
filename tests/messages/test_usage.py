"""Sums of usages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from agentbench.messages.usage import add_usage_details
from tests.messages.samples import usages


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, {}),
        ({"input_token_count": 1}, None, {"input_token_count": 1}),
        (None, {"input_token_count": 1}, {"input_token_count": 1}),
        ({"input_token_count": 1}, {"output_token_count": 2}, {"input_token_count": 1, "output_token_count": 2}),
        ({"input_token_count": 1, "x": 5}, {"input_token_count": 2}, {"input_token_count": 3, "x": 5}),
        ({"input_token_count": None}, {"input_token_count": 2}, {"input_token_count": 2}),
        ({"input_token_count": None}, {}, {"input_token_count": 0}),
    ],
)
def test_usages_are_added_key_by_key(one: Any, other: Any, both: dict[str, int]) -> None:
    assert add_usage_details(one, other) == both


def test_the_sum_is_a_dictionary_of_its_own() -> None:
    one: Any = {"input_token_count": 1}
    add_usage_details(one, None)["input_token_count"] = 5
    assert one == {"input_token_count": 1}


@pytest.mark.parametrize("strange", ["many", 1.5, [1]])
def test_what_is_no_whole_number_is_left_out_with_a_warning(strange: Any, caplog: pytest.LogCaptureFixture) -> None:
    given_usages: tuple[Any, Any] = {"a": 1, "b": strange}, {"a": 2, "b": 1}
    assert add_usage_details(*given_usages) == {"a": 3}
    assert add_usage_details(*reversed(given_usages)) == {"a": 3}
    assert "'b' is left out" in caplog.text


@given(usages, usages, usages)
def test_the_order_of_adding_does_not_matter(one: Any, two: Any, three: Any) -> None:
    assert add_usage_details(add_usage_details(one, two), three) == add_usage_details(
        three, add_usage_details(two, one)
    )
