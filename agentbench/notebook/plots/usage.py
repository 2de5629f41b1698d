"""The usage of models as SVG: columns along the supersteps, or a bar per executor or model with its numbers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from agentbench.notebook.history.usage import Usage, sum_usages
from agentbench.notebook.look.svg import FONT_SIZE, SMALL, cut_to_width, number, picture, round_up, text, text_width
from agentbench.notebook.plots.usage_text import cost_digits, cost_text, short_count, token_text
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text

__all__ = ["Facts", "columns_svg", "rows_svg"]

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

_RULES = (
    ".ab_in{fill:var(--queued)}.ab_out{fill:var(--running)}.ab_line{stroke:var(--rim)}",
    ".ab_hatch{stroke:var(--text);stroke-width:1.5;opacity:.55}",
    ".ab_cost{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round}.ab_spot{fill:var(--accent)}",
    ".ab_halo{stroke:var(--ground);stroke-width:5;opacity:.8}",
    ".ab_plot text.ab_price{fill:var(--accent)}",
)
_HATCH = (
    '<defs><pattern id="ab_cached" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="ab_hatch" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
)


@dataclass(frozen=True)
class Facts:
    """The texts and numbers of every form of the picture.

    Attributes:
        title: The line above the picture.
        description: The same in words.
        total: The sum of everything.
        width: Of the picture, in points.
    """

    title: str
    description: str
    total: Usage
    width: float


def _picture(parts: Iterable[str], facts: Facts, height: float) -> str:
    head = text(_EDGE, 20, cut_to_width(facts.title, facts.width - 2 * _EDGE), classes="ab_strong")
    return picture(
        [_HATCH, head, *parts],
        width=facts.width,
        height=height,
        title=facts.title,
        description=facts.description,
        rules=_RULES,
    )


# ---- along the supersteps ---------------------------------------------------------------------------------------


def columns_svg(groups: Mapping[int, Usage], facts: Facts) -> str:
    """Draw a column per superstep, and the cost that has come together by then, where all of it is known.

    Args:
        groups: The usage by superstep, in their order.
        facts: Its texts and numbers.
    """
    if not groups:
        return _picture([text(_EDGE, 44, "No model was called.", classes="ab_soft")], facts, 70)
    drawing = _Columns(groups, facts)
    return _picture(drawing.parts(), facts, _HEAD + _TALL + _FOOT + _LEGEND)


class _Columns:
    def __init__(self, groups: Mapping[int, Usage], facts: Facts) -> None:
        self._facts = facts
        first, last = min(groups), max(groups)
        self._left = _EDGE + text_width("superstep", SMALL) + 8
        cost = facts.total.cost
        self._digits = cost_digits(cost or 0.0)
        self._right = facts.width - _EDGE - (0 if not cost else text_width(cost_text(cost, self._digits), SMALL) + 14)
        room = self._right - self._left
        self._per = round_up((last - first + 1) / (room / _NARROWEST_COLUMN))
        self._columns: list[tuple[int, int, Usage]] = []
        for start in range(first - first % self._per, last + 1, self._per):
            end = min(start + self._per - 1, last)
            self._columns.append((start, end, sum_usages(groups[n] for n in range(start, end + 1) if n in groups)))
        self._room = room / len(self._columns)
        most = max((used.tokens_in or 0) + (used.tokens_out or 0) for _, _, used in self._columns)
        self._tick = round_up(max(most, 1) / 4)
        self._most = self._tick * -(-max(most, 1) // self._tick)

    def parts(self) -> Iterator[str]:
        yield from self._scale()
        for at, (first, last, used) in enumerate(self._columns):
            if used.calls:
                yield self._column(at, first, last, used)
        yield from self._axis()
        yield from self._cost()
        cached = any(used.tokens_cached for _, _, used in self._columns)
        yield from _legend(self._facts, _HEAD + _TALL + _FOOT + 8, cached=cached, line=bool(self._facts.total.cost))

    def _y(self, tokens: float) -> float:
        return _HEAD + _TALL * (1 - tokens / self._most)

    def _scale(self) -> Iterator[str]:
        for at in range(int(self._most // self._tick) + 1):
            y = self._y(at * self._tick)
            yield f'<path class="ab_line" d="M{number(self._left)} {number(y)}H{number(self._right)}"/>'
            yield text(self._left - 8, y, short_count(at * self._tick), anchor="end", classes="ab_soft ab_small")

    def _column(self, at: int, first: int, last: int, used: Usage) -> str:
        wide = max(2.0, min(_WIDEST_BAR, self._room * 0.72))
        x = self._left + (at + 0.5) * self._room - wide / 2
        read, written = used.tokens_in or 0, used.tokens_out or 0
        y_in, y_out = self._y(read), self._y(read + written)
        gap = 1.0 if read and written and y_in - y_out > 2 else 0.0
        parts = [
            f"<title>{esc(_hover(_steps(first, last), used, self._digits), into='svg')}</title>",
            _rect("ab_in", x, y_in, wide, self._y(0) - y_in),
            _rect("ab_out", x, y_out, wide, y_in - y_out - gap),
        ]
        if used.tokens_cached and wide >= 5:
            top = self._y(min(used.tokens_cached, read))
            parts.append(_hatch(x, top, wide, self._y(0) - top))
        return f"<g>{''.join(parts)}</g>"

    def _axis(self) -> Iterator[str]:
        widest = text_width(f"{self._columns[-1][1]}", SMALL) + 14
        step = int(round_up(max(1, widest / self._room)))
        y = _HEAD + _TALL + 13
        yield text(self._left - 8, y, "superstep", anchor="end", classes="ab_soft ab_small")
        for at, (first, _, _) in enumerate(self._columns):
            if first % (step * self._per) == 0 or len(self._columns) <= 3:
                x = self._left + (at + 0.5) * self._room
                yield text(x, y, first, anchor="middle", classes="ab_soft ab_small")

    def _cost(self) -> Iterator[str]:
        total = self._facts.total.cost
        if not total:
            return
        sums, spent = [], 0.0
        for _, _, used in self._columns:
            spent += used.cost or 0.0
            sums.append(spent)
        places = [
            (self._left + (at + 0.5) * self._room, _HEAD + _TALL * (1 - spent / total)) for at, spent in enumerate(sums)
        ]
        start = f"M{number(self._left)} {number(self._y(0))}"
        path = start + "".join(f"L{number(x)} {number(y)}" for x, y in places) + f"H{number(self._right)}"
        yield f'<path class="ab_cost ab_halo" d="{path}"/><path class="ab_cost" d="{path}"/>'
        yield f'<circle class="ab_spot" cx="{number(self._right)}" cy="{number(places[-1][1])}" r="3"/>'
        end = self._facts.width - _EDGE
        yield text(end, places[-1][1], cost_text(total, self._digits), anchor="end", classes="ab_price ab_small")


def _steps(first: int, last: int) -> str:
    return f"superstep {first}" if first == last else f"supersteps {first} to {last}"


# ---- a bar each -------------------------------------------------------------------------------------------------


def rows_svg(groups: Mapping[str, Usage], facts: Facts, head: str) -> str:
    """Draw a bar per executor or model, its numbers beside it.

    Args:
        groups: The usage by name, in their order.
        facts: Its texts and numbers.
        head: Heading of the names.
    """
    if not groups:
        return columns_svg({}, facts)
    rows = list(groups.items())[:_MOST_ROWS]
    digits = cost_digits(facts.total.cost or max(used.cost or 0.0 for _, used in rows))
    numbers = [_numbers(used, digits) for _, used in rows]
    heads = ("calls", "in", "out", "cost")
    columns = [at for at in range(4) if at < 3 or any(row[3] != "\N{EN DASH}" for row in numbers)]
    widths = {at: max(text_width(cell, SMALL) for cell in (heads[at], *(row[at] for row in numbers))) for at in columns}
    ends: dict[int, float] = {}
    end = facts.width - _EDGE
    for at in reversed(columns):
        ends[at] = end
        end -= widths[at] + 16
    labels = min(_WIDEST_LABEL, max(text_width(name[:100], FONT_SIZE) for name in (head, *groups)) + 4)
    left = _EDGE + labels + 12
    most = max(1, *((used.tokens_in or 0) + (used.tokens_out or 0) for _, used in rows))
    per_token = (end - left) / most
    parts = [text(left - 12, _HEAD + 6, head, anchor="end", classes="ab_soft ab_small")]
    parts += [text(ends[at], _HEAD + 6, heads[at], anchor="end", classes="ab_soft ab_small") for at in columns]
    for at, (name, used) in enumerate(rows):
        y = _HEAD + 18 + at * _ROW
        parts.append(f'<path class="ab_line" d="M{number(_EDGE)} {number(y)}H{number(facts.width - _EDGE)}"/>')
        whole = _hover(name, used, digits)
        label = text(left - 12, y + _ROW / 2, cut_to_width(esc(name, into="line", limit=200), labels), anchor="end")
        cells = "".join(
            text(ends[column], y + _ROW / 2, numbers[at][column], anchor="end", classes="ab_small")
            for column in columns
        )
        bars = _row_bars(left, y + (_ROW - _BAR) / 2, used, per_token)
        parts.append(f"<g><title>{esc(whole, into='svg', limit=400)}</title>{label}{bars}{cells}</g>")
    bottom = _HEAD + 18 + len(rows) * _ROW
    parts.append(f'<path class="ab_line" d="M{number(_EDGE)} {number(bottom)}H{number(facts.width - _EDGE)}"/>')
    note = f"{len(groups) - len(rows)} more are not drawn" if len(groups) > len(rows) else ""
    cached = any(used.tokens_cached for _, used in rows)
    parts += _legend(facts, bottom + 18, cached=cached, line=False, note=note)
    return _picture(parts, facts, bottom + 34)


def _numbers(used: Usage, digits: int) -> tuple[str, str, str, str]:
    tokens = (token_text(count) for count in (used.calls, used.tokens_in, used.tokens_out))
    calls, read, written = tokens
    return calls, read, written, cost_text(used.cost, digits)


def _row_bars(x: float, y: float, used: Usage, per_token: float) -> str:
    read, written = (used.tokens_in or 0) * per_token, (used.tokens_out or 0) * per_token
    gap = 1.0 if read and written > 2 else 0.0
    parts = [_rect("ab_in", x, y, read, _BAR), _rect("ab_out", x + read + gap, y, written - gap, _BAR)]
    if used.tokens_cached:
        parts.append(_hatch(x, y, min(used.tokens_cached * per_token, read), _BAR))
    return "".join(parts)


# ---- both -------------------------------------------------------------------------------------------------------


def _legend(facts: Facts, y: float, *, cached: bool, line: bool, note: str = "") -> Iterator[str]:
    x = _EDGE
    kinds = [("ab_in", "tokens in"), ("ab_out", "tokens out")]
    if cached:
        kinds.insert(1, ("ab_in ab_reused", "of these cached"))
    for classes, name in kinds:
        yield _rect(classes, x, y - 6, 16, 12)
        if "ab_reused" in classes:
            yield _hatch(x, y - 6, 16, 12)
        yield text(x + 22, y, name, classes="ab_soft ab_small")
        x += 22 + text_width(name, SMALL) + 18
    if line:
        yield f'<path class="ab_cost" d="M{number(x)} {number(y)}h16"/>'
        yield text(x + 22, y, "cost so far", classes="ab_soft ab_small")
        x += 22 + text_width("cost so far", SMALL) + 18
    remark = note or ("" if facts.total.cost is not None else "no cost: not every price is known")
    if remark:
        yield text(facts.width - _EDGE, y, remark, anchor="end", classes="ab_soft ab_small")


def _hover(name: str, used: Usage, digits: int) -> str:
    facts = [count_text(used.calls, "call")]
    facts.append(f"{token_text(used.tokens_in)} tokens in, {token_text(used.tokens_out)} out")
    facts += [f"{used.tokens_cached:,} cached"] if used.tokens_cached else []
    facts += [f"cost {cost_text(used.cost, digits)}"] if used.cost is not None else []
    return f"{name}: {'; '.join(facts)}"


def _rect(classes: str, x: float, y: float, wide: float, high: float) -> str:
    if wide <= 0 or high <= 0:
        return ""
    size = f'x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{number(high)}"'
    return f'<rect class="{classes}" {size} rx="1.5"/>'


def _hatch(x: float, y: float, wide: float, high: float) -> str:
    size = f'x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{number(high)}"'
    return f'<rect {size} fill="url(#ab_cached)" pointer-events="none"/>'
