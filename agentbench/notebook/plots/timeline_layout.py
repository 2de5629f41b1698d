"""Pure: where the bars of a timeline stand. Points of the picture, no markup.

Time flows to the right. Where a run waited much longer than it worked, the wait is drawn as a break of fixed width, so
that milliseconds of work stay visible beside minutes of a person's thinking.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentbench.notebook.history.run_history import ExecutorCall as Bar
from agentbench.notebook.look.svg import round_up

__all__ = ["Band", "Break", "By", "Layout", "Mark", "lay_out"]

By = Literal["time", "step"]

MAX_BARS = 2000

_NARROWEST = 2.5
_BREAK_WIDTH = 30.0
# A pause is cut out if it is longer than this part of the time in which executors worked.
_LONG_PAUSE = 0.15
_MOST_BREAKS = 8
_STATUS_ORDER = ("failed", "waiting", "cancelled", "running", "bypassed", "completed")


@dataclass(frozen=True)
class Mark:
    """One rectangle: a bar, or the bars of one executor in several supersteps that are folded into one.

    `answered` is the place on the axis of the answers to its requests, where that is known.
    """

    lane: int
    x: float
    width: float
    status: str
    bars: Sequence[Bar]
    answered: float | None = None


@dataclass(frozen=True)
class Band:
    """The room of one superstep, or of several that are folded."""

    first: int
    last: int
    x: float
    width: float


@dataclass(frozen=True)
class Break:
    """A cut in the axis of time."""

    x: float
    width: float
    ns: int


@dataclass(frozen=True)
class Layout:
    """The elements of the picture, in points from the left edge of the lanes.

    Attributes:
        lanes: Executors, in the order in which they first worked.
        by: Whether widths are times or all supersteps are equal.
        per_column: How many supersteps are folded into one; 1 for none.
        ticks: Places on the axis with the time since the start, in nanoseconds.
    """

    lanes: Sequence[str]
    marks: Sequence[Mark]
    bands: Sequence[Band]
    by: By
    width: float
    per_column: int = 1
    breaks: Sequence[Break] = ()
    ticks: Sequence[tuple[float, int]] = field(default_factory=tuple)


def lay_out(bars: Sequence[Bar], *, width: float, by: By = "time", max_bars: int = MAX_BARS) -> Layout:
    """Place bars.

    Args:
        bars: By superstep and plan order.
        width: Room for them, in points.
        by: `time`: as long as they took, if all of them have times; `step`: every superstep equally wide.
        max_bars: Beyond so many bars, supersteps are folded.
    """
    lanes = list(dict.fromkeys(bar.executor for bar in bars))
    columns = _columns(bars, max_bars)
    folded = max((last - first for first, last in columns), default=0) + 1
    timed = by == "time" and all(bar.start_ns is not None for bar in bars)
    scale = _TimeScale(bars, width) if timed else None
    if scale is None or not scale.has_length:
        return _by_step(bars, lanes, columns, width, folded)
    return _by_time(bars, lanes, columns, scale, folded)


def _columns(bars: Sequence[Bar], max_bars: int) -> list[tuple[int, int]]:
    """First and last superstep of each column; some hold several, so that at most `max_bars` marks are drawn."""
    steps = sorted({bar.superstep for bar in bars})
    size = 1
    while len(bars) > max_bars and _count(bars, steps, size) > max_bars:
        size = max(size + 1, size * 5 // 4)
    return [(steps[at], steps[min(at + size, len(steps)) - 1]) for at in range(0, len(steps), size)]


def _count(bars: Iterable[Bar], steps: Sequence[int], size: int) -> int:
    column_of = {step: place // size for place, step in enumerate(steps)}
    return len({(column_of[bar.superstep], bar.executor) for bar in bars})


def _gather(
    bars: Sequence[Bar], lanes: Sequence[str], columns: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], list[Bar]]:
    """Bars by (column, lane)."""
    lane_of = {executor: lane for lane, executor in enumerate(lanes)}
    column_of = {step: column for column, (first, last) in enumerate(columns) for step in range(first, last + 1)}
    gathered: dict[tuple[int, int], list[Bar]] = {}
    for bar in bars:
        gathered.setdefault((column_of[bar.superstep], lane_of[bar.executor]), []).append(bar)
    return gathered


def _status(bars: Iterable[Bar]) -> str:
    """The one status of several bars: the one that needs attention first."""
    return min((bar.status for bar in bars), key=_STATUS_ORDER.index)


# ---- equal steps ------------------------------------------------------------------------------------------------


def _by_step(
    bars: Sequence[Bar], lanes: Sequence[str], columns: Sequence[tuple[int, int]], width: float, folded: int
) -> Layout:
    room = width / max(1, len(columns))
    gap = min(3.0, room * 0.15)
    marks = [
        Mark(
            lane,
            min(column * room + gap, width - _NARROWEST),
            max(room - 2 * gap, _NARROWEST),
            _status(those),
            those,
        )
        for (column, lane), those in _gather(bars, lanes, columns).items()
    ]
    bands = [Band(first, last, at * room, room) for at, (first, last) in enumerate(columns)]
    return Layout(lanes, marks, bands, "step", width, folded)


# ---- real time --------------------------------------------------------------------------------------------------


def _by_time(
    bars: Sequence[Bar],
    lanes: Sequence[str],
    columns: Sequence[tuple[int, int]],
    scale: "_TimeScale",
    folded: int,
) -> Layout:
    marks = []
    edges: dict[int, list[float]] = {}
    for (column, lane), those in _gather(bars, lanes, columns).items():
        start, end = scale.span(those)
        x = min(scale(start), scale.width - _NARROWEST)
        waits = [bar.end_ns + bar.wait_ns for bar in those if bar.end_ns is not None and bar.wait_ns is not None]
        answered = scale(max(waits)) if waits else None
        marks.append(Mark(lane, x, max(scale(end) - x, _NARROWEST), _status(those), those, answered))
        edges.setdefault(column, []).extend((x, x + marks[-1].width))
    bands = [Band(*columns[at], min(xs), max(xs) - min(xs)) for at, xs in sorted(edges.items())]
    return Layout(lanes, marks, bands, "time", scale.width, folded, scale.breaks, scale.ticks())


class _TimeScale:
    """Nanoseconds to points, with long pauses cut out."""

    def __init__(self, bars: Sequence[Bar], width: float) -> None:
        self.width = width
        self.breaks: list[Break] = []
        self._latest = max((t for bar in bars for t in (bar.start_ns, bar.end_ns) if t is not None), default=0)
        busy = _merge([self.span([bar]) for bar in bars])
        worked = sum(end - start for start, end in busy)
        self.has_length = worked > 0
        pauses = [(before[1], after[0]) for before, after in itertools.pairwise(busy)]
        cut = sorted((p for p in pauses if p[1] - p[0] > _LONG_PAUSE * worked), key=lambda p: p[0] - p[1])
        cut = sorted(cut[:_MOST_BREAKS])
        first = busy[0][0] if busy else 0
        visible = max(1, self._latest - first - sum(end - start for start, end in cut))
        per_ns = max(0.0, width - _BREAK_WIDTH * len(cut)) / visible
        # Knots of a piecewise linear function.
        self._knots: list[tuple[int, float]] = [(first, 0.0)]
        for start, end in cut:
            self._extend(start, per_ns)
            x = self._knots[-1][1]
            self.breaks.append(Break(x, _BREAK_WIDTH, end - start))
            self._knots.append((end, x + _BREAK_WIDTH))
        self._extend(self._latest, per_ns)
        self._per_ns = per_ns

    def _extend(self, until: int, per_ns: float) -> None:
        at, x = self._knots[-1]
        self._knots.append((until, x + (until - at) * per_ns))

    def span(self, bars: Sequence[Bar]) -> tuple[int, int]:
        """First start and last end of bars; what has no end lasts until the last thing that is known."""
        starts = [bar.start_ns for bar in bars if bar.start_ns is not None]
        ends = [bar.end_ns if bar.end_ns is not None else self._latest for bar in bars]
        return min(starts), max(ends)

    def __call__(self, at: int) -> float:
        for (t0, x0), (t1, x1) in itertools.pairwise(self._knots):
            if at <= t1:
                return x0 if t1 == t0 else x0 + (at - t0) * (x1 - x0) / (t1 - t0)
        return self._knots[-1][1]

    def ticks(self) -> list[tuple[float, int]]:
        """Round times, about a hundred points apart, outside of the breaks."""
        first, last = self._knots[0][0], self._latest
        if self._per_ns <= 0:
            return []
        step = _round_time(100 / self._per_ns)
        ticks: list[tuple[float, int]] = []
        for start, end in self._stretches():
            since = -(-(start - first) // step) * step
            while first + since <= min(end, last):
                ticks.append((self(first + since), since))
                since += step
        return ticks

    def _stretches(self) -> list[tuple[int, int]]:
        """The spans between the breaks."""
        cuts = {break_.x for break_ in self.breaks}
        return [
            (t0, t1)
            for (t0, x0), (t1, x1) in itertools.pairwise(self._knots)
            if not (x0 in cuts and x1 - x0 == _BREAK_WIDTH)
        ]


def _round_time(ns: float) -> int:
    """The next larger round time: of minutes and hours the parts that people use."""
    if ns <= _SECOND:
        return round_up(ns)
    seconds = ns / _SECOND
    return _SECOND * next((each for each in _ROUND_S if each >= seconds), 86_400 * round_up(seconds / 86_400))


_SECOND = 1_000_000_000
_ROUND_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200)


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
