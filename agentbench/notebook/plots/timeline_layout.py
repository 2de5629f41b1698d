"""Pure: the layout of a timeline, in points of the picture, without markup.

Time flows to the right. A wait that is much longer than the work is drawn as a break of fixed width, so that
milliseconds of work stay visible next to minutes of a person's thinking.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentbench.notebook.history.run_history import ExecutorCall
from agentbench.notebook.look.svg import round_up

By = Literal["time", "step"]

_MOST_BARS = 2000

_NARROWEST = 2.5
_BREAK_WIDTH = 30.0
# A pause is cut out if it is longer than this fraction of the executors' working time.
_LONG_PAUSE = 0.15
_MOST_BREAKS = 8
_STATUS_ORDER = ("failed", "waiting", "cancelled", "running", "bypassed", "completed")
_SECOND = 1_000_000_000
_ROUND_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200)


@dataclass(frozen=True)
class Mark:
    """One rectangle: the work of one executor in one superstep, or in several that are folded into one."""

    lane: int
    x: float
    width: float
    bars: Sequence[ExecutorCall]
    answered: float | None = None
    """The position of the answers to its requests, if known."""

    @property
    def status(self) -> str:
        """The status of its bars; of several the most urgent one."""
        return min((bar.status for bar in self.bars), key=_STATUS_ORDER.index)


@dataclass(frozen=True)
class Band:
    """The horizontal space of one superstep, or of several that are folded."""

    first: int
    last: int
    x: float
    width: float


@dataclass(frozen=True)
class Break:
    """A cut in the time axis."""

    x: float
    width: float
    ns: int


@dataclass(frozen=True)
class Layout:
    """The elements of the picture, in points from the left edge of the lanes; ticks are nanoseconds since the start."""

    lanes: Sequence[str]
    marks: Sequence[Mark]
    bands: Sequence[Band]
    by: By
    per_column: int = 1
    breaks: Sequence[Break] = ()
    ticks: Sequence[tuple[float, int]] = ()


def lay_out(bars: Sequence[ExecutorCall], width: float, by: By = "time", *, empty: Iterable[int] = ()) -> Layout:
    """Place bars, which are in plan order, by time if all of them have times, otherwise in equal steps.

    Beyond 2,000 bars, supersteps are folded. In equal steps, `empty` supersteps also get a column.
    """
    lanes = {executor: lane for lane, executor in enumerate(dict.fromkeys(bar.executor for bar in bars))}
    steps = sorted({*empty, *(bar.superstep for bar in bars)})
    size = 1
    while len(groups := _groups(bars, steps, size)) > _MOST_BARS:
        size = max(size + 1, size * 5 // 4)
    columns = [(steps[at], steps[min(at + size, len(steps)) - 1]) for at in range(0, len(steps), size)]
    per_column = max((last - first for first, last in columns), default=0) + 1
    timed = by == "time" and bool(bars) and all(bar.start_ns is not None for bar in bars)
    scale = _TimeScale(bars, width) if timed else None
    if scale is None or not scale.worked_ns:
        room = width / max(1, len(columns))
        gap = min(3.0, room * 0.15)
        wide = max(room - 2 * gap, _NARROWEST)
        marks = [
            Mark(lanes[executor], min(column * room + gap, width - _NARROWEST), wide, members)
            for (column, executor), members in groups.items()
        ]
        bands = [Band(first, last, at * room, room) for at, (first, last) in enumerate(columns)]
        return Layout(list(lanes), marks, bands, "step", per_column)
    marks = []
    edges: dict[int, list[float]] = {}
    for (column, executor), members in groups.items():
        start, end = scale.span(members)
        x = min(scale(start), width - _NARROWEST)
        waits = [bar.end_ns + bar.wait_ns for bar in members if bar.end_ns is not None and bar.wait_ns is not None]
        answered = scale(max(waits)) if waits else None
        marks.append(Mark(lanes[executor], x, max(scale(end) - x, _NARROWEST), members, answered))
        edges.setdefault(column, []).extend((x, x + marks[-1].width))
    bands = [Band(*columns[at], min(xs), max(xs) - min(xs)) for at, xs in sorted(edges.items())]
    return Layout(list(lanes), marks, bands, "time", per_column, scale.breaks, scale.ticks())


def _groups(bars: Iterable[ExecutorCall], steps: Sequence[int], size: int) -> dict[tuple[int, str], list[ExecutorCall]]:
    """Return bars by (column, executor), where each column has `size` supersteps."""
    column_of = {step: place // size for place, step in enumerate(steps)}
    groups: dict[tuple[int, str], list[ExecutorCall]] = {}
    for bar in bars:
        groups.setdefault((column_of[bar.superstep], bar.executor), []).append(bar)
    return groups


class _TimeScale:
    """Converts nanoseconds to points, with long pauses cut out."""

    def __init__(self, bars: Sequence[ExecutorCall], width: float) -> None:
        self._latest = max(t for bar in bars for t in (bar.start_ns, bar.end_ns) if t is not None)
        busy = _merge(self.span([bar]) for bar in bars)
        self.worked_ns = sum(end - start for start, end in busy)
        pauses = [(before[1], after[0]) for before, after in itertools.pairwise(busy)]
        cut = sorted((p for p in pauses if p[1] - p[0] > _LONG_PAUSE * self.worked_ns), key=lambda p: p[0] - p[1])
        cut = sorted(cut[:_MOST_BREAKS])
        self._first = busy[0][0]
        visible = max(1, self._latest - self._first - sum(end - start for start, end in cut))
        self._per_ns = max(0.0, width - _BREAK_WIDTH * len(cut)) / visible
        # Knots of a piecewise linear function, and the stretches between the breaks.
        self._knots: list[tuple[int, float]] = [(self._first, 0.0)]
        self._stretches: list[tuple[int, int]] = []
        self.breaks: list[Break] = []
        for start, end in [*cut, (self._latest, self._latest)]:
            since, x = self._knots[-1]
            self._stretches.append((since, start))
            x += (start - since) * self._per_ns
            self._knots.append((start, x))
            if end > start:
                self.breaks.append(Break(x, _BREAK_WIDTH, end - start))
                self._knots.append((end, x + _BREAK_WIDTH))

    def span(self, bars: Sequence[ExecutorCall]) -> tuple[int, int]:
        """Return the first start and the last end of bars; unfinished bars last until the latest known time."""
        starts = [bar.start_ns for bar in bars if bar.start_ns is not None]
        return min(starts), max(self._latest if bar.end_ns is None else bar.end_ns for bar in bars)

    def __call__(self, at: int) -> float:
        for (t0, x0), (t1, x1) in itertools.pairwise(self._knots):
            if at <= t1:
                return x0 if t1 == t0 else x0 + (at - t0) * (x1 - x0) / (t1 - t0)
        return self._knots[-1][1]

    def ticks(self) -> list[tuple[float, int]]:
        """Return round times, about a hundred points apart, outside the breaks."""
        if self._per_ns <= 0:
            return []
        step = _round_time(100 / self._per_ns)
        ticks: list[tuple[float, int]] = []
        for start, end in self._stretches:
            first = -(-(start - self._first) // step) * step
            ticks += [(self(self._first + since), since) for since in range(first, end - self._first + 1, step)]
        return ticks


def _round_time(ns: float) -> int:
    """Return the next larger round time; minutes and hours in common fractions."""
    if ns <= _SECOND:
        return round_up(ns)
    seconds = ns / _SECOND
    return _SECOND * next((each for each in _ROUND_S if each >= seconds), 86_400 * round_up(seconds / 86_400))


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
