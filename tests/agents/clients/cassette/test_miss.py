"""The first difference of two requests, and the recorded call that is nearest to one."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.clients.cassette.cassette import first_difference, nearest_call
from agentbench.agents.clients.cassette.lines import StoredCall

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_the_path_leads_to_the_difference() -> None:
    cases: list[Any] = [
        ({"a": 1}, {"a": 2}, "a"),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "a.b[1].c"),
        ({"x y": 1}, {"x y": 2}, '["x y"]'),
        ([1], [1, 2], "[1]"),
        ({"a": 1}, {}, "a"),
        ({}, {"b": None}, "b"),
        ({"a": [1]}, {"a": {"0": 1}}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        (1, 2, "the request"),
    ]
    for recorded, now, path in cases:
        difference = first_difference(recorded, now)
        assert difference is not None
        assert difference.splitlines()[0] == path
    assert first_difference({"a": 1}, {}) == "a\n  recorded: 1\n  now:      (absent)"


@given(VALUES)
def test_equal_values_do_not_differ(value: Any) -> None:
    assert first_difference(value, copy.deepcopy(value)) is None


def test_a_difference_late_in_a_long_text_is_displayed() -> None:
    start = "All work and no play. " * 50
    shown = str(first_difference({"a": start + "sunny"}, {"a": start + "rainy"}))
    assert "sunny" in shown
    assert "rainy" in shown
    assert all(len(line) <= 212 for line in shown.splitlines())


def call(number: int, *texts: str, tools: list[Any] | None = None) -> StoredCall:
    return StoredCall(number, number, request(*texts, tools=tools), response={})


def request(*texts: str, tools: list[Any] | None = None) -> dict[str, Any]:
    messages = [{"role": "user", "contents": [{"type": "text", "text": text}]} for text in texts]
    return {"messages": messages, "tools": tools or [], "options": {}}


def test_the_nearest_call_shares_the_longest_run_then_the_tools_then_the_prompt_then_is_the_newest() -> None:
    cases: list[Any] = [
        (request("a", "b", "c"), [call(1, "a"), call(2, "a", "b"), call(3, "x")], 2),
        (request("new", "b", "c"), [call(1, "b", "c"), call(2, "new", "x")], 1),
        (request("a", "b", tools=[1]), [call(1, "a", "c", tools=[1]), call(2, "a", "c")], 1),
        (request("weather in Oslo?"), [call(1, "weather in Rome?"), call(2, "hello")], 1),
        (request("a"), [call(1, "q"), call(2, "q")], 2),
    ]
    for asked, recorded, nearest in cases:
        found = nearest_call(asked, recorded, lambda request: request)
        assert found is not None
        assert found.number == nearest
