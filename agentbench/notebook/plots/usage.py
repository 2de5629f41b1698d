"""The model usage: a column per superstep, or a bar per executor or model with its numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_names
from agentbench.notebook.frames.runs import Prices, known_prices, usage_frame
from agentbench.notebook.history.sources import Chosen, read_runs
from agentbench.notebook.history.usage import Usage, calls_of, group_usages, sum_usages
from agentbench.notebook.look.svg import (
    FONT_SIZE,
    SMALL,
    cut_to_width,
    hatch,
    hatch_pattern,
    legend,
    number,
    picture,
    rect,
    room_for,
    round_up,
    text,
)
from agentbench.notebook.plots.plot import Plot, align_columns, cut_lines, require_one_of

UsedBy = Literal["superstep", "executor", "model"]

_EDGE = 14.0
_HEAD = 44.0
_TALL = 150.0
_FOOT = 26.0
_LEGEND = 26.0
_ROW = 28.0
_BAR = 16.0
_WIDEST_BAR = 44.0
_NARROWEST_COLUMN = 4.0
_WIDEST_LABEL = 150.0
_MOST_ROWS = 60
_UNKNOWN = "\N{EN DASH}"

_RULES = (
    ".ab_in{fill:var(--queued)}.ab_out{fill:var(--running)}.ab_line{stroke:var(--rim)}",
    ".ab_cached{stroke:var(--text);stroke-width:1.5;opacity:.55}",
    ".ab_cost{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round}.ab_spot{fill:var(--accent)}",
    ".ab_halo{stroke:var(--ground);stroke-width:5;opacity:.8}",
    ".ab_plot text.ab_price{fill:var(--accent)}",
)


def usage(
    run: Any, *, by: UsedBy = "superstep", prices: Prices | None = None, run_id: str | None = None, width: float = 580
) -> Plot:
    """Draw the model usage: tokens in and out, and the cost if all prices are known.

    By superstep, neighbours share a column if there are many. By executor or by model, each has a bar with its numbers,
    in the order of the first calls.

    Args:
        run: A run, a result, or a list of events.
        by: Grouping of the bars: `"superstep"`, `"executor"` or `"model"`.
        prices: Prices per million tokens, by model name; see `usage_frame`.
        run_id: Only this run of several.
        width: Width of the picture in points.

    Raises:
        ValueError: `by` is none of the three, or `prices` has the wrong format.

    Example:
        usage(run, by="model", prices={"gpt-4o": (2.5, 10)})
    """
    require_one_of("by", by, UsedBy)
    price_table = known_prices(prices)
    runs = read_runs(run, Chosen(run_id=run_id), events_wanted=True)
    calls = [call for each in runs for call in calls_of(each, price_table)]
    groups: dict[Any, Usage] = group_usages(calls, lambda call: "?" if getattr(call, by) is None else getattr(call, by))
    if by == "superstep":
        groups = dict(sorted(groups.items()))
    drawing = _UsageDrawing(groups, [each.run_id for each in runs if each.run_id is not None], by, width)
    return Plot(
        drawing.title,
        svg=drawing.svg,
        text=drawing.text,
        frame=lambda: usage_frame(run, prices=prices, run_id=run_id, full=True),
    )


class _UsageDrawing:
    """The usage by superstep, executor or model, in their order."""

    def __init__(self, groups: Mapping[Any, Usage], run_ids: Sequence[str], by: UsedBy, width: float) -> None:
        self._groups = groups
        self._by = by
        self._width = width
        self._total = total = sum_usages(groups.values())
        self._digits = _cost_digits(total.cost or max((each.cost or 0.0 for each in groups.values()), default=0.0))
        parts = [count_text(total.calls, "model call")]
        if total.tokens_in is not None or total.tokens_out is not None:
            parts.append(f"{_count(total.tokens_in)} tokens in, {_count(total.tokens_out)} out")
        if total.cost is not None:
            parts.append(f"cost {self._cost(total.cost)}")
        self.title = f"usage of {run_names(run_ids)}: {', '.join(parts)}"

    def svg(self) -> str:
        """The picture."""
        if not self._groups:
            parts, height = [text(_EDGE, 44, "No model was called.", classes="ab_soft")], 70.0
        elif self._by == "superstep":
            parts, height = list(self._columns()), _HEAD + _TALL + _FOOT + _LEGEND
        else:
            parts, height = list(self._rows()), _HEAD + 34 + min(len(self._groups), _MOST_ROWS) * _ROW
        head = text(_EDGE, 20, cut_to_width(self.title, self._width - 2 * _EDGE), classes="ab_strong")
        return picture(
            [hatch_pattern("ab_cached", 5), head, *parts],
            width=self._width,
            height=height,
            title=self.title,
            description=self.text(),
            rules=_RULES,
        )

    def text(self) -> str:
        """The groups as aligned lines, and their sum; at most 60 lines."""
        if not self._groups:
            return self.title
        body = [(esc(key, into="line", limit=40), *self._cells(used)) for key, used in self._groups.items()]
        rows = [(self._by, "calls", "in", "out", "cached", "cost"), *body, ("all", *self._cells(self._total))]
        if all(row[-1] == _UNKNOWN for row in rows[1:]):
            rows = [row[:-1] for row in rows]
        lines = align_columns(rows, right=range(0 if self._by == "superstep" else 1, 6))
        return "\n".join([self.title, lines[0], *cut_lines(lines[1:-1]), lines[-1]])

    def _cells(self, used: Usage) -> tuple[str, ...]:
        counts = map(_count, (used.calls, used.tokens_in, used.tokens_out, used.tokens_cached))
        return (*counts, self._cost(used.cost))

    def _cost(self, cost: float | None) -> str:
        return _UNKNOWN if cost is None else f"{cost:,.{self._digits}f}"

    def _words(self, used: Usage) -> str:
        facts = [count_text(used.calls, "call"), f"{_count(used.tokens_in)} in, {_count(used.tokens_out)} out"]
        return ", ".join([*facts, f"cost {self._cost(used.cost)}"] if used.cost is not None else facts)

    def _hover_text(self, name: str, used: Usage) -> str:
        cached = f", {used.tokens_cached:,} cached" if used.tokens_cached else ""
        return f"<title>{esc(f'{name}: {self._words(used)}{cached}', into='svg', limit=400)}</title>"

    # ---- columns by superstep

    def _columns(self) -> Iterator[str]:
        """Yield a column per superstep, and the cumulative cost if it is known."""
        first, last = min(self._groups), max(self._groups)
        cost = self._total.cost
        left = _EDGE + room_for("superstep", SMALL) + 8
        right = self._width - _EDGE - (room_for(self._cost(cost), SMALL) + 14 if cost else 0)
        per = round_up((last - first + 1) / ((right - left) / _NARROWEST_COLUMN))
        columns = []
        for start in range(first - first % per, last + 1, per):
            end = min(start + per - 1, last)
            columns.append(
                (start, end, sum_usages(self._groups[n] for n in range(start, end + 1) if n in self._groups))
            )
        room = (right - left) / len(columns)
        most = max(1, *(_tokens(used) for _, _, used in columns))
        tick = round_up(most / 4)
        most = tick * -(-most // tick)
        per_token = _TALL / most
        bottom = _HEAD + _TALL
        for count in range(0, most + 1, tick):
            y = bottom - count * per_token
            yield f'<path class="ab_line" d="M{number(left)} {number(y)}H{number(right)}"/>'
            yield text(left - 8, y, _count(count), anchor="end", classes="ab_soft ab_small")
        yield text(left - 8, bottom + 13, "superstep", anchor="end", classes="ab_soft ab_small")
        numbered = round_up(max(1, (room_for(str(last), SMALL) + 14) / room)) * per
        wide = max(2.0, min(_WIDEST_BAR, room * 0.72))
        spent, line = 0.0, f"M{number(left)} {number(bottom)}"
        for at, (start, end, used) in enumerate(columns):
            middle = left + (at + 0.5) * room
            if used.calls:
                steps = f"superstep {start}" if start == end else f"supersteps {start} to {end}"
                bar = _bar(used, per_token, middle - wide / 2, bottom, wide, upright=True)
                yield f"<g>{self._hover_text(steps, used)}{bar}</g>"
            if start % numbered == 0 or len(columns) <= 3:
                yield text(middle, bottom + 13, start, anchor="middle", classes="ab_soft ab_small")
            spent += used.cost or 0.0
            line += f"L{number(middle)} {number(bottom - _TALL * spent / (cost or 1))}"
        if cost:
            yield f'<path class="ab_cost ab_halo" d="{line}H{number(right)}"/>'
            yield f'<path class="ab_cost" d="{line}H{number(right)}"/>'
            yield f'<circle class="ab_spot" cx="{number(right)}" cy="{number(_HEAD)}" r="3"/>'
            price = self._cost(cost)
            yield text(self._width - _EDGE, _HEAD, price, anchor="end", classes="ab_price ab_small")
        yield from self._legend(bottom + _FOOT + 8, has_line=bool(cost))

    # ---- bars by executor or model

    def _rows(self) -> Iterator[str]:
        """Yield a bar per executor or model, with its numbers."""
        rows = list(self._groups.items())[:_MOST_ROWS]
        words = [self._words(used) for _, used in rows]
        labels = min(_WIDEST_LABEL, max(room_for(name[:100], FONT_SIZE) for name in self._groups))
        left = _EDGE + labels + 12
        room = self._width - _EDGE - left - max(room_for(each, SMALL) for each in words) - 8
        per_token = max(room, 40.0) / max(1, *(_tokens(used) for _, used in rows))
        for at, (name, used) in enumerate(rows):
            y = _HEAD + at * _ROW
            middle = y + _ROW / 2
            yield f'<path class="ab_line" d="M{number(_EDGE)} {number(y)}H{number(self._width - _EDGE)}"/>'
            label = cut_to_width(esc(name, into="line", limit=200), labels)
            yield f"<g>{self._hover_text(name, used)}{text(left - 12, middle, label, anchor='end')}"
            yield _bar(used, per_token, left, middle - _BAR / 2, _BAR, upright=False)
            yield text(left + _tokens(used) * per_token + 8, middle, words[at], classes="ab_small") + "</g>"
        y = _HEAD + len(rows) * _ROW
        yield f'<path class="ab_line" d="M{number(_EDGE)} {number(y)}H{number(self._width - _EDGE)}"/>'
        hidden = len(self._groups) - len(rows)
        yield from self._legend(y + 18, f"{hidden:,} more are not drawn" if hidden else "")

    def _legend(self, y: float, remark: str = "", *, has_line: bool = False) -> Iterator[str]:
        signs: dict[str, Callable[[float, float], str]] = {"tokens in": partial(rect, "ab_in", width=18.0, height=12.0)}
        if any(used.tokens_cached for used in self._groups.values()):
            signs["of these cached"] = lambda x, y: signs["tokens in"](x, y) + hatch("ab_cached", x, y, 18, 12)
        signs["tokens out"] = partial(rect, "ab_out", width=18.0, height=12.0)
        if has_line:
            signs["cost so far"] = lambda x, y: f'<path class="ab_cost" d="M{number(x)} {number(y + 6)}h18"/>'
        yield from legend(_EDGE, y, signs)
        if remark or self._total.cost is None:
            remark = remark or "no cost: a price is missing"
            yield text(self._width - _EDGE, y, remark, anchor="end", classes="ab_soft ab_small")


def _bar(used: Usage, per_token: float, x: float, y: float, wide: float, *, upright: bool) -> str:
    """Return a bar of tokens in, their cached part, and tokens out: from (x, y) up or to the right."""

    def box(start: float, size: float) -> tuple[float, float, float, float]:
        return (x, y - start - size, wide, size) if upright else (x + start, y, size, wide)

    read, written = (used.tokens_in or 0) * per_token, (used.tokens_out or 0) * per_token
    gap = 1.0 if read and written > 2 else 0.0
    bars = rect("ab_in", *box(0.0, read)) + rect("ab_out", *box(read + gap, written - gap))
    cached = min((used.tokens_cached or 0) * per_token, read)
    return bars + (hatch("ab_cached", *box(0.0, cached)) if cached else "")


def _tokens(used: Usage) -> int:
    return (used.tokens_in or 0) + (used.tokens_out or 0)


def _count(count: int | None) -> str:
    """Return a count with thousands separators; a dash if unknown."""
    return _UNKNOWN if count is None else f"{count:,}"


def _cost_digits(largest: float) -> int:
    """Return the number of decimal places for a cost of this size, the same for a whole column."""
    if largest >= 1.0:
        return 2
    return 4 if largest >= 0.01 else 6 if largest else 2
