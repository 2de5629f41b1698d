"""Times and ids that can be replaced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench._clock import (
    CountingIds,
    TickingClock,
    iso_utc,
    runtime_defaults,
    set_runtime_defaults,
)

NEW_YEAR_NS = 1_704_067_200_000_000_000


def test_a_ticking_clock_starts_with_2024_and_moves_by_a_millisecond_per_reading() -> None:
    clock = TickingClock()
    assert [clock.time_ns() for _ in range(3)] == [NEW_YEAR_NS, NEW_YEAR_NS + 1_000_000, NEW_YEAR_NS + 2_000_000]
    assert [clock.perf_ns() for _ in range(3)] == [0, 1_000_000, 2_000_000]


@pytest.mark.parametrize(
    "start",
    [
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00",
        "2024-01-01T02:00:00+02:00",
        "2024-01-01",
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=str,
)
def test_a_start_may_be_in_any_zone(start: str | datetime) -> None:
    assert TickingClock(start).time_ns() == NEW_YEAR_NS


def test_one_default_is_replaced_and_the_others_stay() -> None:
    before = runtime_defaults()
    clock = TickingClock()
    assert set_runtime_defaults(clock=clock) is before
    assert runtime_defaults().clock is clock
    assert runtime_defaults().ids is before.ids
    set_runtime_defaults(observe=True)
    assert (runtime_defaults().clock, runtime_defaults().observe) == (clock, True)
    set_runtime_defaults(observe=False)
    assert runtime_defaults().observe is False


def test_something_else_than_a_clock_or_ids_is_refused_and_changes_nothing() -> None:
    before = runtime_defaults()
    with pytest.raises(TypeError, match="time_ns"):
        set_runtime_defaults(clock=12, ids=CountingIds())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="new_id"):
        set_runtime_defaults(clock=TickingClock(), ids="run-1")  # type: ignore[arg-type]
    assert runtime_defaults() is before


microseconds = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))


@given(microseconds)
def test_a_written_time_is_read_back_as_it_was(moment: datetime) -> None:
    written = iso_utc(TickingClock(moment).time_ns())
    assert datetime.fromisoformat(written) == moment


@given(microseconds, microseconds)
def test_the_order_of_texts_is_the_order_of_times(first: datetime, second: datetime) -> None:
    texts = [iso_utc(TickingClock(moment).time_ns()) for moment in (first, second)]
    assert (texts[0] < texts[1]) == (first < second)


def test_a_clock_that_goes_back_is_refused() -> None:
    with pytest.raises(ValueError, match=r"-0\.5"):
        TickingClock(tick_s=-0.5)
