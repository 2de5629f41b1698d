"""The timeline of a run: one lane per executor, a band per superstep."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_names
from agentbench.notebook.frames.runs import timeline_frame
from agentbench.notebook.history.requests import calls_with_waits
from agentbench.notebook.history.run_history import ExecutorCall
from agentbench.notebook.history.sources import Chosen, read_runs
from agentbench.notebook.look.svg import (
    FONT_SIZE,
    SMALL,
    cut_to_width,
    hatch,
    hatch_pattern,
    legend,
    number,
    pause_sign,
    picture,
    rect,
    room_for,
    round_up,
    text,
)
from agentbench.notebook.plots.plot import Plot, cut_lines, require_one_of
from agentbench.notebook.runtime import settings

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


# ---- the plot


_LANE = 30.0
_BAR = 18.0
_HEAD = 34.0
_TOP = _HEAD + 22.0  # top of the lanes
_AXIS = 24.0
_LEGEND = 26.0
_EDGE = 14.0
_WIDEST_LABEL = 150.0
_CORNER = "superstep"  # above the names
_MOST_LANES = 60
_NARROWEST_BAND = 6.0
_MOST_NUMBERED = 0.8
_NAMED = 12

_CLASSES = {
    "completed": "ab_done",
    "failed": "ab_failed",
    "waiting": "ab_wait",
    "running": "ab_running",
    "cancelled": "ab_off",
    "bypassed": "ab_off",
}

_RULES = (
    ".ab_bar{rx:2px}.ab_done{fill:var(--done)}.ab_ink{fill:var(--ink)}",
    ".ab_failed{fill:var(--failed);stroke:var(--text);stroke-width:1.5;stroke-dasharray:4 2}",
    ".ab_wait{fill:var(--waiting);stroke:var(--text)}.ab_running{fill:var(--running);stroke:var(--text);stroke-width:2}",
    ".ab_await{fill:none;stroke:var(--waiting);stroke-width:3}",
    ".ab_off{fill:none;stroke:var(--muted);stroke-dasharray:3 2}.ab_hatch{stroke:var(--ink);stroke-width:2}",
    ".ab_band{fill:var(--surface)}.ab_line{stroke:var(--rim)}.ab_cut{stroke:var(--muted);stroke-dasharray:1 3}",
)


def timeline(run: Any, *, by: By = "time", run_id: str | None = None, width: float = 580) -> Plot:
    """Draw the timeline of a run: a lane per executor, a band per superstep.

    Failures are hatched, requests to people marked with a pause sign. Pauses much longer than the work are cut out of
    the axis. Beyond 2,000 bars supersteps are folded into columns. Its `panel()` switches between both kinds of axis.

    Args:
        run: A run, a result, or a list of events.
        by: `"time"`: real durations; `"step"`: every superstep equally wide. Runs that were not observed have
            no times and are drawn in equal steps.
        run_id: Only this run of several.
        width: Width of the picture in points; text stays readable at 600 pixels.

    Raises:
        ValueError: `by` is neither.

    Example:
        timeline(run, by="step").save("timeline.svg")
    """
    require_one_of("by", by, By)
    runs = read_runs(run, Chosen(run_id=run_id), events_wanted=True)
    bars = [call for each in runs for call in calls_with_waits(each)]
    steps = sorted({step.number for each in runs for step in each.supersteps if step.has_begun})
    times = not settings.current().deterministic
    title = _title(bars, steps, [each.run_id for each in runs if each.run_id is not None], times=times)
    forms: dict[str, Callable[[], str]] = {
        "real time": lambda: _TimelineDrawing(bars, steps, title, "time", width, times=times).svg(),
        "equal steps": lambda: _TimelineDrawing(bars, steps, title, "step", width, times=times).svg(),
    }
    if by == "step":
        forms = dict(reversed(forms.items()))
    return Plot(
        title,
        svg=next(iter(forms.values())),
        text=lambda: _text(bars, steps, title, times=times),
        frame=lambda: timeline_frame(run, run_id=run_id, full=True),
        forms=forms,
    )


class _TimelineDrawing:
    """One picture, drawn from back to front."""

    def __init__(
        self, bars: Sequence[ExecutorCall], steps: Sequence[int], title: str, by: By, width: float, *, times: bool
    ) -> None:
        names = list(dict.fromkeys(bar.executor for bar in bars))
        drawn = set(names[:_MOST_LANES])
        self._bars = bars
        self._steps = steps
        self._title = title
        self._width = width
        self._times = times
        self._hidden = len(names) - len(drawn)
        self._labels = min(_WIDEST_LABEL, max(room_for(name[:100], FONT_SIZE) for name in (_CORNER, *names)) + 4)
        self._left = _EDGE + self._labels + 10
        shown = [bar for bar in bars if bar.executor in drawn]
        self._layout = lay_out(shown, width - self._left - _EDGE, by, empty=steps if shown else ())
        self._bottom = _TOP + max(1, len(self._layout.lanes)) * _LANE
        self._axis_room = _AXIS if times and (self._layout.ticks or self._layout.breaks) else 6.0

    def svg(self) -> str:
        """The picture."""
        return picture(
            [hatch_pattern("ab_hatch", 6), *self._parts()],
            width=self._width,
            height=self._bottom + self._axis_room + _LEGEND,
            title=self._title,
            description=_text(self._bars, self._steps, self._title, times=self._times),
            rules=_RULES,
        )

    def _parts(self) -> Iterator[str]:
        steps = self._layout.per_column
        mode = "real time" if self._layout.by == "time" else "equal steps"
        mode += f", {steps} supersteps a column" if steps > 1 else ""
        room = self._width - 2 * _EDGE - room_for(mode, SMALL) - 12
        yield text(_EDGE, 20, cut_to_width(self._title, room), classes="ab_strong")
        yield text(self._width - _EDGE, 20, mode, anchor="end", classes="ab_soft ab_small")
        if not self._layout.lanes:
            yield text(_EDGE, _TOP + _LANE / 2, "No executor has run yet.", classes="ab_soft")
            return
        yield from self._bands()
        yield from self._lanes()
        for mark in self._layout.marks:
            yield self._mark(mark)
        yield from self._axis()
        yield from self._legend()

    def _bands(self) -> Iterator[str]:
        yield text(self._left - 10, _HEAD + 10, _CORNER, anchor="end", classes="ab_soft ab_small")
        for band in self._layout.bands[::2]:
            if band.width >= _NARROWEST_BAND:
                yield rect("ab_band", self._left + band.x, _TOP - 4, band.width, self._bottom - _TOP + 4)
        for middle, name in _band_numbers(self._layout.bands):
            yield text(self._left + middle, _HEAD + 10, name, anchor="middle", classes="ab_soft ab_small")
        for cut in self._layout.breaks:
            x = self._left + cut.x
            lines = "".join(f"M{number(at)} {number(_TOP)}V{number(self._bottom)}" for at in (x + 1, x + cut.width - 1))
            yield f'<path class="ab_cut" d="{lines}"/>'

    def _lanes(self) -> Iterator[str]:
        for lane, executor in enumerate(self._layout.lanes):
            y = _TOP + lane * _LANE
            if lane:
                yield f'<path class="ab_line" d="M{number(_EDGE)} {number(y)}H{number(self._width - _EDGE)}"/>'
            name = cut_to_width(esc(executor, into="line", limit=200), self._labels)
            whole = f"<title>{esc(executor, into='svg', limit=200)}</title>"
            yield f"<g>{whole}{text(self._left - 10, y + _LANE / 2, name, anchor='end')}</g>"

    def _mark(self, mark: Mark) -> str:
        x, y = self._left + mark.x, _TOP + mark.lane * _LANE + (_LANE - _BAR) / 2
        # Consecutive bars without a gap stay two bars.
        width = mark.width - 1 if mark.width >= 6 else mark.width
        bar_svg = _status_rect(mark.status, x, y, width, _BAR, _hover_text(mark, times=self._times))
        if mark.answered is not None and mark.answered > mark.x + mark.width:
            line = f"M{number(x + width)} {number(y + _BAR / 2)}H{number(self._left + mark.answered)}m0 -5v10"
            bar_svg = f'<path class="ab_await" d="{line}"/>{bar_svg}'
        if any(bar.requests for bar in mark.bars):
            # At the end of the bar, where the request was made; beside a narrow bar, so that its colour stays visible.
            place = x + mark.width - 9 if mark.width >= 30 else x + mark.width + 9
            bar_svg += pause_sign(min(place, self._width - _EDGE - 8), y + _BAR / 2, 14)
        return bar_svg

    def _axis(self) -> Iterator[str]:
        y = self._bottom
        yield f'<path class="ab_line" d="M{number(self._left)} {number(y)}H{number(self._width - _EDGE)}"/>'
        pauses = sorted(self._layout.breaks, key=lambda cut: -cut.ns)  # label the longest first
        names = [(f"pause {_duration(cut.ns)}", cut.x + cut.width / 2) for cut in pauses]
        names += [(_duration(since), x) for x, since in self._layout.ticks]
        written: dict[str, tuple[float, float]] = {}
        for name, x in names if self._times else ():
            half = room_for(name, SMALL) / 2 + 4
            middle = min(max(self._left + x, self._left), self._width - _EDGE - half)
            # After a long pause, the difference of two times may be too small to label.
            if name in written or any(abs(middle - other) < half + room for other, room in written.values()):
                continue
            written[name] = (middle, half)
            yield f'<path class="ab_line" d="M{number(self._left + x)} {number(y)}v4"/>'
            yield text(middle, y + 12, name, anchor="middle", classes="ab_soft ab_small")

    def _legend(self) -> Iterator[str]:
        marks, y = self._layout.marks, self._bottom + self._axis_room + 8
        met = {mark.status for mark in marks}
        signs: dict[str, Callable[[float, float], str]] = {
            status: partial(_status_rect, status, width=18.0, height=12.0) for status in _CLASSES if status in met
        }
        if any(bar.requests for mark in marks for bar in mark.bars):
            signs["request to a person"] = lambda x, y: pause_sign(x + 9, y + 6, 14)
        yield from legend(_EDGE, y, signs)
        if self._hidden:
            hidden = f"{self._hidden} more executors are not drawn"
            yield text(self._width - _EDGE, y, hidden, anchor="end", classes="ab_soft ab_small")


def _status_rect(status: str, x: float, y: float, width: float, height: float, title: str = "") -> str:
    bar = rect(f"{_CLASSES[status]} ab_bar", x, y, width, height, title=title)
    return bar + hatch("ab_hatch", x, y, width, height) if status == "failed" else bar


def _band_numbers(bands: Sequence[Band]) -> list[tuple[float, str]]:
    """Return the numbered bands and their positions: all, or every second, fifth, tenth …, depending on the room."""
    folded = any(band.first != band.last for band in bands)
    step = 1
    while True:
        numbered = [band for at, band in enumerate(bands) if (at if folded else band.first) % step == 0] or bands[:1]
        fitting: list[tuple[float, str]] = []
        free = float("-inf")
        for band in numbered:
            x, half = band.x + band.width / 2, room_for(str(band.first), SMALL) / 2 + 5
            if x - half >= free:
                fitting.append((x, str(band.first)))
                free = x + half
        if len(fitting) >= _MOST_NUMBERED * len(numbered):
            return fitting
        step = round_up(step + 1)


def _hover_text(mark: Mark, *, times: bool) -> str:
    """Return the tooltip of a bar."""
    first, last = mark.bars[0].superstep, mark.bars[-1].superstep
    steps = f"superstep {first}" if first == last else f"supersteps {first} to {last}, {len(mark.bars)} of them"
    requests = sum(len(bar.requests) for bar in mark.bars)
    facts = [f"{mark.bars[0].executor}, {steps}: {mark.status}", *(_times_of(mark.bars) if times else [])]
    facts.append(f"{sum(b.messages_in for b in mark.bars)} in, {sum(b.messages_out for b in mark.bars)} out")
    facts += [count_text(requests, "request")] if requests else []
    return "; ".join(facts + [bar.error for bar in mark.bars if bar.error][:1])


def _times_of(bars: Sequence[ExecutorCall]) -> list[str]:
    took = [bar.duration_ns for bar in bars if bar.duration_ns is not None]
    waited = [bar.wait_ns for bar in bars if bar.wait_ns is not None]
    waits = [f"waited {_duration(max(waited))} for a person"] if waited else []
    workers = dict.fromkeys(worker for bar in bars for worker in bar.workers)
    places = [f"on {esc(', '.join(workers), into='line', limit=60)}"] if workers else []
    return [*([_duration(sum(took))] if took else []), *waits, *places]


# ---- words ------------------------------------------------------------------------------------------------------


def _title(bars: Sequence[ExecutorCall], steps: Sequence[int], run_ids: Sequence[str], *, times: bool) -> str:
    """Return one line about all bars, with the numbers of the supersteps."""
    numbers = [f"superstep {steps[0]}" if len(steps) == 1 else f"supersteps {steps[0]} to {steps[-1]}"] if steps else []
    parts = [*numbers, count_text(len({bar.executor for bar in bars}), "executor")]
    known = [t for bar in bars for t in (bar.start_ns, bar.end_ns) if t is not None]
    if times and known:
        parts.append(_duration(max(known) - min(known)))
    return f"timeline of {run_names(run_ids)}: {', '.join(parts)}"


def _text(bars: Sequence[ExecutorCall], steps: Sequence[int], title: str, *, times: bool) -> str:
    """Return the title and a line per superstep."""
    worked: dict[int, list[str]] = {step: [] for step in steps}
    for bar in bars:
        notes = [] if bar.status == "completed" else [bar.status]
        notes += [f"x{bar.messages_in}"] if bar.messages_in > 1 else []
        notes += [f"{count_text(len(bar.requests), 'request')}"] if bar.requests and bar.status != "waiting" else []
        notes += _times_of([bar]) if times else []
        name = esc(bar.executor, into="line", limit=60)
        worked[bar.superstep].append(f"{name} ({', '.join(notes)})" if notes else name)
    lines = [
        f"superstep {step}: {', '.join(words[:_NAMED]) or 'nothing was delivered'}"
        + (f", and {len(words) - _NAMED} more" if len(words) > _NAMED else "")
        for step, words in worked.items()
    ]
    return "\n".join([esc(title, into="line", limit=200), *cut_lines(lines)])


_UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def _duration(ns: int) -> str:
    """Return a duration in its largest unit, with at most three significant digits, because an axis has little room."""
    for size, unit in _UNITS:
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns" if ns else "0"
