from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.history.run_history import ExecutorCall
from agentbench.notebook.plots.timeline_layout import lay_out

MS = 1_000_000


def bar(superstep: int, executor: str, start: int | None, end: int | None, status: str = "completed") -> ExecutorCall:
    return ExecutorCall(superstep, executor, 0, start, end, status)


@st.composite
def runs(draw: st.DrawFn) -> list[ExecutorCall]:
    bars, at = [], draw(st.integers(0, 10**18))
    for superstep in range(draw(st.integers(0, 12))):
        for lane in range(draw(st.integers(1, 4))):
            end = draw(st.none() | st.integers(0, 10**12).map(lambda took, at=at: at + took))  # type: ignore[misc]
            bars.append(bar(superstep, f"e{lane}", at, end))
        at += draw(st.integers(0, 10**13))
    return bars


@given(runs(), st.sampled_from(["time", "step"]), st.floats(120, 2000))
def test_every_bar_is_drawn_once_and_inside_the_picture(bars: list[ExecutorCall], by: str, width: float):
    layout = lay_out(bars, width=width, by=by)  # type: ignore[arg-type]
    assert sum(len(mark.bars) for mark in layout.marks) == len(bars)
    for mark in layout.marks:
        assert mark.x >= -0.01
        assert mark.x + mark.width <= width + 0.01
        assert mark.width > 0
        assert {layout.lanes[mark.lane]} == {each.executor for each in mark.bars}


@given(runs())
def test_what_began_later_is_never_further_left(bars: list[ExecutorCall]):
    layout = lay_out(bars, width=600)
    if layout.by == "time":
        placed = sorted((mark.bars[0].start_ns or 0, mark.x) for mark in layout.marks)
        assert all(before[1] <= after[1] + 0.01 for before, after in itertools.pairwise(placed))


def test_widths_are_proportional_to_time():
    layout = lay_out([bar(0, "a", 0, 10 * MS), bar(1, "b", 10 * MS, 40 * MS)], width=400)
    assert [mark.width for mark in layout.marks] == pytest.approx([100, 300])
    assert (layout.by, layout.breaks) == ("time", [])


def test_a_long_pause_is_cut_out_and_named():
    minutes = 300_000 * MS
    layout = lay_out([bar(0, "a", 0, 10 * MS), bar(1, "a", minutes, minutes + 10 * MS)], width=430)
    (cut,) = layout.breaks
    assert (cut.x, cut.width) == pytest.approx((200, 30))
    assert cut.ns == minutes - 10 * MS
    assert [mark.width for mark in layout.marks] == pytest.approx([200, 200])
    assert all(not cut.x < x < cut.x + cut.width for x, _ in layout.ticks)


def test_work_that_has_not_ended_lasts_to_the_end_of_what_is_known():
    layout = lay_out([bar(0, "a", 0, None, "running"), bar(0, "b", 0, 50, "completed")], width=100)
    assert [mark.width for mark in layout.marks] == [100, 100]


@pytest.mark.parametrize("by", ["time", "step"])
def test_many_bars_are_folded_into_columns_with_the_status_that_asks_for_attention(by: str):
    bars = [bar(n, "a", n * MS, n * MS + MS // 2, "failed" if n == 2500 else "completed") for n in range(5000)]
    layout = lay_out(bars, width=600, by=by)  # type: ignore[arg-type]
    assert len(layout.marks) <= 2000
    assert layout.per_column > 1
    assert [mark.status for mark in layout.marks].count("failed") == 1
    assert (layout.bands[0].first, layout.bands[-1].last) == (0, 4999)
