"""A timeline as SVG: one lane per executor, a band per superstep."""

from collections.abc import Iterable, Iterator, Sequence

from agentbench.notebook.history.run_history import ExecutorCall as Bar
from agentbench.notebook.look.svg import (
    FONT_SIZE,
    SMALL,
    cut_to_width,
    number,
    pause_sign,
    picture,
    round_up,
    text,
    text_width,
)
from agentbench.notebook.plots.timeline_layout import Band, By, Layout, Mark, lay_out
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text

__all__ = ["duration_text", "timeline_svg"]

_LANE = 30.0
_BAR = 18.0
_HEAD = 34.0
_STEPS = 22.0
_AXIS = 24.0
_LEGEND = 26.0
_EDGE = 14.0
_WIDEST_LABEL = 150.0
_CORNER = "superstep"  # above the names
_MOST_LANES = 60
_NARROWEST_BAND = 6.0
_MOST_NUMBERED = 0.8

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
_HATCH = (
    '<defs><pattern id="ab_hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="ab_hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>'
)


def timeline_svg(
    bars: Sequence[Bar],
    *,
    title: str,
    description: str,
    by: By = "time",
    width: float = 640.0,
    times: bool = True,
) -> str:
    """Draw bars.

    Args:
        bars: By superstep and plan order.
        title: The line above them.
        description: The same in words.
        by: `time` or `step`.
        width: Of the whole picture, in points; text stays readable on a page 600 pixels wide.
        times: Whether durations are written.
    """
    names = list(dict.fromkeys(bar.executor for bar in bars))
    hidden = len(names) - _MOST_LANES
    if hidden > 0:
        drawn = set(names[:_MOST_LANES])
        bars = [bar for bar in bars if bar.executor in drawn]
    labels = min(_WIDEST_LABEL, max(text_width(name[:100], FONT_SIZE) for name in (_CORNER, *names)) + 4)
    left = _EDGE + labels + 10
    layout = lay_out(bars, width=width - left - _EDGE, by=by)
    drawing = _Drawing(layout, left=left, width=width, labels=labels, times=times)
    return picture(
        [_HATCH, *drawing.parts(title, hidden)],
        width=width,
        height=drawing.height,
        title=title,
        description=description,
        rules=_RULES,
    )


class _Drawing:
    """The parts of one picture, from the back to the front."""

    def __init__(self, layout: Layout, *, left: float, width: float, labels: float, times: bool) -> None:
        self._layout = layout
        self._left = left
        self._width = width
        self._labels = labels
        self._times = times
        self._top = _HEAD + _STEPS
        self._bottom = self._top + max(1, len(layout.lanes)) * _LANE
        self._axis_room = _AXIS if times and (layout.ticks or layout.breaks) else 6.0
        self.height = self._bottom + self._axis_room + _LEGEND

    def parts(self, title: str, hidden: int) -> Iterator[str]:
        """All elements of the picture."""
        yield text(_EDGE, 20, cut_to_width(title, self._width - 2 * _EDGE - 130), classes="ab_strong")
        yield text(self._width - _EDGE, 20, self._mode(), anchor="end", classes="ab_soft ab_small")
        if not self._layout.lanes:
            yield text(_EDGE, self._top + _LANE / 2, "No executor has run yet.", classes="ab_soft")
            return
        yield from self._bands()
        yield from self._lanes()
        yield from self._breaks()
        for mark in self._layout.marks:
            yield self._mark(mark)
        yield from self._axis()
        yield from self._legend(hidden)

    def _mode(self) -> str:
        steps = self._layout.per_column
        folded = f", {steps} supersteps a column" if steps > 1 else ""
        return ("real time" if self._layout.by == "time" else "equal steps") + folded

    def _bands(self) -> Iterator[str]:
        yield text(self._left - 10, _HEAD + 10, _CORNER, anchor="end", classes="ab_soft ab_small")
        for place, band in enumerate(self._layout.bands):
            if place % 2 == 0 and band.width >= _NARROWEST_BAND:
                x = self._left + band.x
                yield _rect(x, self._top - 4, band.width, self._bottom - self._top + 4, "ab_band")
        for middle, name in _band_numbers(self._layout.bands):
            yield text(self._left + middle, _HEAD + 10, name, anchor="middle", classes="ab_soft ab_small")

    def _lanes(self) -> Iterator[str]:
        for lane, executor in enumerate(self._layout.lanes):
            y = self._top + lane * _LANE
            if lane:
                yield f'<path class="ab_line" d="M{number(_EDGE)} {number(y)}H{number(self._width - _EDGE)}"/>'
            name = cut_to_width(esc(executor, into="line", limit=200), self._labels)
            whole = f"<title>{esc(executor, into='svg', limit=200)}</title>"
            yield f"<g>{whole}{text(self._left - 10, y + _LANE / 2, name, anchor='end')}</g>"

    def _breaks(self) -> Iterator[str]:
        for cut in self._layout.breaks:
            x = self._left + cut.x
            for side in (x + 1, x + cut.width - 1):
                yield f'<path class="ab_cut" d="M{number(side)} {number(self._top)}V{number(self._bottom)}"/>'

    def _mark(self, mark: Mark) -> str:
        x, y = self._left + mark.x, self._top + mark.lane * _LANE + (_LANE - _BAR) / 2
        hover = esc(_hover_text(mark, times=self._times), into="svg", limit=400)
        # Bars that follow each other without a gap stay two bars.
        width = mark.width - 1 if mark.width >= 6 else mark.width
        parts = []
        if mark.answered is not None and mark.answered > mark.x + mark.width:
            y_wait = y + _BAR / 2
            line = f"M{number(x + width)} {number(y_wait)}H{number(self._left + mark.answered)}m0 -5v10"
            parts.append(f'<path class="ab_await" d="{line}"/>')
        parts.append(_rect(x, y, width, _BAR, f"{_CLASSES[mark.status]} ab_bar", title=hover))
        if mark.status == "failed":
            parts.append(_hatch(x, y, width, _BAR))
        if any(bar.requests for bar in mark.bars):
            # At the end of the bar, where the question was put; a narrow bar keeps its colour in sight.
            place = x + mark.width - 9 if mark.width >= 30 else x + mark.width + 9
            parts.append(pause_sign(min(place, self._width - _EDGE - 8), y + _BAR / 2, 14))
        return "".join(parts)

    def _axis(self) -> Iterator[str]:
        y = self._bottom
        yield f'<path class="ab_line" d="M{number(self._left)} {number(y)}H{number(self._width - _EDGE)}"/>'
        if not self._times:
            return
        taken: list[tuple[float, float]] = []
        written: set[str] = set()
        for name, at, always in [*self._cut_names(), *self._tick_names()]:
            if name in written:  # behind a long pause the difference does not show
                continue
            half = text_width(name, SMALL) / 2 + 4
            middle = min(max(at, self._left), self._width - _EDGE - half)
            if not always and any(abs(middle - other) < half + its_half for other, its_half in taken):
                continue
            taken.append((middle, half))
            written.add(name)
            yield f'<path class="ab_line" d="M{number(at)} {number(y)}v4"/>'
            yield text(middle, y + 12, name, anchor="middle", classes="ab_soft ab_small")

    def _cut_names(self) -> Iterator[tuple[str, float, bool]]:
        for cut in self._layout.breaks:
            yield f"pause {duration_text(cut.ns)}", self._left + cut.x + cut.width / 2, True

    def _tick_names(self) -> Iterator[tuple[str, float, bool]]:
        for x, since in self._layout.ticks:
            yield duration_text(since), self._left + x, False

    def _legend(self, hidden: int) -> Iterator[str]:
        x, y = _EDGE, self._bottom + self._axis_room + 8
        met = {mark.status for mark in self._layout.marks}
        for status in (status for status in _CLASSES if status in met):
            yield _rect(x, y - 6, 18, 12, f"{_CLASSES[status]} ab_bar")
            if status == "failed":
                yield _hatch(x, y - 6, 18, 12)
            yield text(x + 24, y, status, classes="ab_soft ab_small")
            x += 24 + text_width(status, SMALL) + 16
        if any(bar.requests for mark in self._layout.marks for bar in mark.bars):
            yield pause_sign(x + 7, y, 14)
            yield text(x + 20, y, "asked a person", classes="ab_soft ab_small")
            x += 20 + text_width("asked a person", SMALL) + 16
        if hidden > 0:
            yield text(x, y, f"{hidden} more executors are not drawn", classes="ab_soft ab_small")


def _band_numbers(bands: Sequence[Band]) -> list[tuple[float, str]]:
    """Which bands are numbered, and where: all of them, or every second, fifth, tenth … so that most have room."""
    folded = any(band.first != band.last for band in bands)
    step = 1
    while True:
        numbered = [band for at, band in enumerate(bands) if (at if folded else band.first) % step == 0] or bands[:1]
        wanted = [(band.x + band.width / 2, str(band.first)) for band in numbered]
        fitting: list[tuple[float, str]] = []
        free = float("-inf")
        for x, name in wanted:
            half = text_width(name, SMALL) / 2 + 5
            if x - half >= free:
                fitting.append((x, name))
                free = x + half
        if len(fitting) >= _MOST_NUMBERED * len(wanted):
            return fitting
        step = round_up(step + 1)


def _rect(x: float, y: float, width: float, height: float, classes: str, *, title: str = "") -> str:
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {size} class="{classes}"' + (f"><title>{title}</title></rect>" if title else "/>")


def _hatch(x: float, y: float, width: float, height: float) -> str:
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {size} fill="url(#ab_hatch)" pointer-events="none"/>'


def _hover_text(mark: Mark, *, times: bool) -> str:
    """The tooltip of a bar."""
    first, last = mark.bars[0], mark.bars[-1]
    steps = f"superstep {first.superstep}"
    if last.superstep != first.superstep:
        steps = f"supersteps {first.superstep} to {last.superstep}, {len(mark.bars)} of them"
    facts = [f"{first.executor}, {steps}: {mark.status}"]
    if times:
        facts += _durations(mark.bars)
    facts.append(f"{sum(b.messages_in for b in mark.bars)} in, {sum(b.messages_out for b in mark.bars)} out")
    requests = sum(len(bar.requests) for bar in mark.bars)
    facts += [count_text(requests, "request")] if requests else []
    facts += [bar.error for bar in mark.bars if bar.error][:1]
    return "; ".join(facts)


def _durations(bars: Iterable[Bar]) -> list[str]:
    took = [bar.duration_ns for bar in bars if bar.duration_ns is not None]
    waited = [bar.wait_ns for bar in bars if bar.wait_ns is not None]
    facts = [duration_text(sum(took))] if took else []
    return facts + ([f"waited {duration_text(max(waited))} for a person"] if waited else [])


_UNITS = ((3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def duration_text(ns: int) -> str:
    """A duration in the largest unit that it fills, with at most three digits that count."""
    for size, unit in _UNITS:
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns" if ns else "0"
