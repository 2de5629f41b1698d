from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentbench import WorkflowEvent
from agentbench.messages.prices import cost_of, read_prices
from agentbench.notebook import Price, configure
from agentbench.notebook.history.run_history import RunHistory
from agentbench.notebook.history.usage import CallUsage
from agentbench.notebook.history.usage import calls_of as calls_of_run
from agentbench.notebook.runtime.settings import current
from agentbench.workflows.events.events import EventStamps
from tests.parts.errors import raises


def calls_of(events: list[WorkflowEvent[Any]], prices: dict[str, Price]) -> list[CallUsage]:
    return calls_of_run(RunHistory(events=events), prices)


COUNTS = {"input_token_count": 100, "output_token_count": 20}


def used(data: Any, *, executor: str | None = "a", superstep: int = 1) -> WorkflowEvent[Any]:
    event: WorkflowEvent[Any] = WorkflowEvent("model_usage", data, executor_id=executor)
    event._stamps = EventStamps(1, "run-1", superstep, 5)
    return event


def test_counts_are_read_off_every_form_that_a_client_sends():
    for data, tokens in [
        ({"usage_details": COUNTS}, (100, 20, None)),
        ({"usage": COUNTS}, (100, 20, None)),
        (COUNTS, (100, 20, None)),
        ({"usage_details": {**COUNTS, "cache_read_input_token_count": 40}}, (100, 20, 40)),
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 0, "cached_tokens": 3}}, (7, 0, 3)),
        ({"usage": SimpleNamespace(input_tokens=5, output_tokens=3)}, (5, 3, None)),
        (SimpleNamespace(model="m", usage_details=COUNTS), (100, 20, None)),
        ({"usage_details": {}, "model": "m"}, (None, None, None)),
        ({"usage_details": {"input_token_count": "many", "output_token_count": True}}, (None, None, None)),
        ({"usage_details": {"input_token_count": -1}}, (None, None, None)),
        ("something else", (None, None, None)),
        (None, (None, None, None)),
    ]:
        (call,) = calls_of([used(data)], {})
        assert (call.used.tokens_in, call.used.tokens_out, call.used.tokens_cached) == tokens


def test_calls_are_counted_within_executor_and_superstep():
    events = [
        used(COUNTS),
        used(COUNTS),
        used(COUNTS, executor="b"),
        used(COUNTS, superstep=2),
        used(COUNTS, executor=None),
    ]
    numbered = [(call.superstep, call.executor, call.call) for call in calls_of(events, {})]
    assert numbered == [(1, "a", 1), (1, "a", 2), (1, "b", 1), (1, "?", 1), (2, "a", 1)]


def test_a_cost_needs_a_price_of_that_very_model():
    prices = {"m": Price(2, 8)}
    assert calls_of([used({"model": "m", "usage": COUNTS})], prices)[0].used.cost == pytest.approx(360e-6)
    assert calls_of([used({"model": "m-2", "usage": COUNTS})], prices)[0].used.cost is None
    assert calls_of([used({"usage": COUNTS})], prices)[0].used.cost is None


def test_a_cost_that_the_event_tells_counts_more_than_a_price():
    assert calls_of([used({"model": "m", "usage": COUNTS, "cost": 0.5})], {"m": Price(2, 8)})[0].used.cost == 0.5


def test_cached_tokens_are_a_cheaper_part_of_the_input():
    for tokens, cost in [
        ((1_000_000, 0, None), 2.0),
        ((1_000_000, 1_000_000, None), 10.0),
        ((1_000_000, 0, 500_000), 1.5),
        ((1_000_000, 0, 2_000_000), 1.0),
        ((None, 5, None), None),
        ((5, None, None), None),
    ]:
        assert cost_of("m", *tokens, {"m": Price(2, 8, cached=1)}) == cost


def test_prices_are_numbers_or_price_objects():
    assert read_prices({"m": (1, 2), "n": [1, 2, 0.5], "o": Price(3, 4)}) == {
        "m": Price(1, 2),
        "n": Price(1, 2, 0.5),
        "o": Price(3, 4),
    }
    assert read_prices(None) == {}


def test_another_form_of_price_is_refused_with_the_model():
    for wrong in [{"m": 3}, {"m": (1,)}, {"m": "ab"}, {"m": (1, -2)}, {"m": (1, float("inf"))}, {"m": (1, True)}]:
        with raises(ValueError, "'m'"):
            read_prices(wrong)


def test_prices_are_a_setting_and_none_are_built_in():
    assert current().prices == {}
    assert configure(prices={"m": (1, 2)}).prices == {"m": Price(1, 2)}
    with raises(ValueError, "'m'"):
        configure(prices={"m": "much"}, static_png=False)
    assert (current().prices, current().static_png) == ({"m": Price(1, 2)}, True)
