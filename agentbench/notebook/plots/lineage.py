"""The tree of checkpoints as SVG: time flows down, forks are branches, and facts about each are in columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentbench.notebook.look.svg import FONT_SIZE, SMALL, cut_to_width, number, pause_sign, picture, text, text_width
from agentbench.notebook.plots.lineage_rows import Row, lineage_text, name_of, short_id
from agentbench.notebook.text.escape import esc

__all__ = ["lineage_svg"]

_ROW = 24.0
_COLUMN = 20.0
_HEAD = 56.0
_EDGE = 16.0
_GAP = 20.0
_MOST_ROWS = 200
_NARROWEST = 24.0
_MOST_COLUMNS = 24
_WIDEST_NEWS = 220.0
_WIDEST_TREE = 0.28
_WIDE = 860.0
_WIDEST_RUN = 140.0

_RULES = (
    ".ab_link{stroke:var(--line);stroke-width:1.6;fill:none}.ab_fork{stroke-dasharray:4 3}.ab_ink{fill:var(--ink)}",
    ".ab_dot{fill:var(--surface);stroke:var(--line);stroke-width:1.8}.ab_end{fill:var(--line)}.ab_wait{fill:var(--waiting)}",
    ".ab_edit{fill:var(--queued);stroke:var(--line);stroke-width:1.6}",
    ".ab_bad{fill:var(--failed);stroke:var(--line);stroke-width:1.6}",
    ".ab_now{fill:none;stroke:var(--accent);stroke-width:2.6}.ab_row{fill:var(--accent);fill-opacity:0}.ab_here{fill-opacity:.1}",
    ".ab_rule{stroke:var(--rim)}",
)


@dataclass(frozen=True)
class _Cells:
    """The texts beside the tree in one row."""

    name: str
    step: str
    news: str
    messages: str
    requests: str
    run: str


_HEADS = _Cells("checkpoint", "superstep", "", "messages", "asked", "run")


def lineage_svg(rows: Sequence[Row], *, title: str, width: float | None = None) -> str:
    """Draw rows.

    Args:
        rows: From the oldest checkpoint to the newest.
        title: The line above them.
        width: Of the whole picture, in points; by default as wide as its words.
    """
    drawn = _newest(rows)
    if not drawn:
        parts = [_title(title, 300), text(_EDGE, 48, "No checkpoint has been saved yet.", classes="ab_soft")]
        return picture(parts, width=width or 300, height=70, title=title, description=title, rules=_RULES)
    cells = _cells(drawn)
    columns = max(row.column for row in drawn) + 1
    tree = min(columns * _COLUMN, _WIDEST_TREE * (width or _WIDE))
    at = _places(cells, _EDGE + tree + 8, text_width(title, FONT_SIZE) * 1.1, width)
    column = tree / columns
    parts = [_title(title, at.end - _EDGE), *_heads(at, cells)]
    parts += [
        _link(drawn, place, column) for place, row in enumerate(drawn) if row.parent is not None and row.parent < place
    ]
    hidden = len(rows) - len(drawn)
    parts += [
        _line(row, cells[place], (_x(row, column), _y(place)), at, hidden + place) for place, row in enumerate(drawn)
    ]
    if hidden:
        words = f"{hidden:,} older lines are not drawn; the frame has all"
        parts.append(text(at.end, 20, words, anchor="end", classes="ab_soft ab_small"))
    return picture(
        parts,
        width=width or at.end + _EDGE,
        height=_HEAD + len(drawn) * _ROW + 10,
        title=title,
        description=lineage_text(rows, title=title),
        rules=_RULES,
    )


def _title(title: str, room: float) -> str:
    return text(_EDGE, 20, cut_to_width(title, room), classes="ab_strong")


def _newest(rows: Sequence[Row]) -> list[Row]:
    """The rows that are drawn; what they went on from may lie above."""
    hidden = max(0, len(rows) - _MOST_ROWS)
    return [
        replace(
            row,
            column=min(row.column, _MOST_COLUMNS - 1),
            parent=None if row.parent is None or row.parent < hidden else row.parent - hidden,
        )
        for row in rows[hidden:]
    ]


# ---- words beside the tree --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Places:
    """Where the columns are: left ends, of numbers the right ones."""

    name: float
    step: float
    news: float
    messages: float
    requests: float
    run: float
    end: float
    news_room: float
    run_room: float


def _places(cells: Sequence[_Cells], left: float, title: float, width: float | None) -> _Places:
    """Columns as wide as their words; one without words takes no room."""

    def room(name: str, widest: float = 400.0) -> float:
        widths = [text_width(getattr(each, name), FONT_SIZE) * 1.06 for each in cells if getattr(each, name)]
        head = text_width(getattr(_HEADS, name), SMALL)
        return min(widest, max([*widths, head])) + _GAP if widths else 0.0

    step = left + room("name") + room("step") - _GAP
    news = step + _GAP
    rest = room("messages") + room("requests") + room("run", _WIDEST_RUN)
    wide = room("news", _WIDEST_NEWS)
    if width is not None:
        wide = max(0.0, width - _EDGE - news - rest + _GAP)
    messages = news + wide + room("messages") - _GAP
    requests = messages + room("requests")
    run = requests + _GAP
    end = max(run + room("run", _WIDEST_RUN) - _GAP, _EDGE + title) if width is None else width - _EDGE
    return _Places(left, step, news, messages, requests, run, end, wide - _GAP, end - run)


def _cells(rows: Sequence[Row]) -> list[_Cells]:
    run_ids = _run_ids(rows)
    return [
        _Cells(
            name_of(row),
            str(row.info.iteration) if row.folded == 1 else f"{row.since}\N{EN DASH}{row.info.iteration}",
            _news(row),
            f"{row.info.n_messages:,}" if row.info.n_messages and row.folded == 1 else "",
            f"{row.asking if row.folded > 1 else row.info.n_requests:,}" if row.asking else "",
            _run(run_ids[at]) if row.is_fork or at == 0 or run_ids[at] != run_ids[at - 1] else "",
        )
        for at, row in enumerate(rows)
    ]


def _news(row: Row) -> str:
    """The origin of a fork or the source of a checkpoint, in words; empty for an ordinary one."""
    if row.folded > 1:
        return ""
    source = "" if row.info.source == "step" else esc(row.info.source, into="line", limit=20)
    if row.is_fork and row.info.previous_checkpoint_id is not None:
        return f"{source or 'again'} from {short_id(row.info.previous_checkpoint_id)}"
    return source


def _run(run_id: str | None) -> str:
    return "" if run_id is None else cut_to_width(esc(run_id, into="line", limit=100), _WIDEST_RUN, SMALL)


def _run_ids(rows: Sequence[Row]) -> list[str | None]:
    """The run of each row; of a fork, which no run wrote, the one that goes on from it."""
    found = [row.info.run_id for row in rows]
    for at in range(len(rows) - 1, -1, -1):
        parent = rows[at].parent
        if parent is not None and rows[parent].info.run_id is None:
            found[parent] = found[at]
    return found


def _heads(at: _Places, cells: Sequence[_Cells]) -> Iterator[str]:
    y = _HEAD - 12
    for name, x, anchor in (
        ("name", at.name, "start"),
        ("step", at.step, "end"),
        ("messages", at.messages, "end"),
        ("requests", at.requests, "end"),
        ("run", at.run, "start"),
    ):
        if any(getattr(each, name) for each in cells):
            yield text(x, y, getattr(_HEADS, name), anchor=anchor, classes="ab_soft ab_small")
    yield f'<path class="ab_rule" d="M{number(_EDGE)} {number(_HEAD - 2)}H{number(at.end)}"/>'


# ---- the tree ---------------------------------------------------------------------------------------------------


def _x(row: Row, column: float) -> float:
    return _EDGE + (row.column + 0.5) * column


def _y(at: int) -> float:
    return _HEAD + at * _ROW + _ROW / 2 + 2


def _link(rows: Sequence[Row], at: int, column: float) -> str:
    row = rows[at]
    above = row.parent or 0
    x0, y0, x1, y1 = _x(rows[above], column), _y(above), _x(row, column), _y(at)
    # Down the own column, so that links of other branches are not crossed more than needed.
    bend = f"C{number(x1)} {number(y0 + 4)} {number(x1)} {number(y0 + 8)} {number(x1)} {number(y0 + _ROW)}"
    path = f"V{number(y1)}" if x0 == x1 else f"{bend}V{number(y1)}"
    classes = "ab_link ab_fork" if row.is_fork else "ab_link"
    return f'<path class="{classes}" d="M{number(x0)} {number(y0)}{path}"/>'


def _line(row: Row, cells: _Cells, place: tuple[float, float], at: _Places, item: int) -> str:
    (x, y), info = place, row.info
    writers = ", ".join(info.writers) or "no executor"
    hover = f"{info.checkpoint_id}; {info.timestamp}; run {info.run_id or 'none'}; {writers} ran"
    parts = [f"<title>{esc(hover, into='svg', limit=400)}</title>"]
    # A transparent rectangle: the whole row has the tooltip, and can be chosen where rows can be.
    size = f'x="{number(_EDGE - 6)}" width="{number(at.end - _EDGE + 12)}" height="{number(_ROW)}"'
    look = "ab_row ab_here" if row.is_current else "ab_row"
    parts.append(f'<rect class="{look}" {size} y="{number(y - _ROW / 2)}" rx="4"/>')
    parts += _signs(row, x, y)
    parts.append(text(at.name, y, cells.name, classes="ab_strong" if row.is_current else ""))
    parts.append(text(at.step, y, cells.step, anchor="end"))
    for content, left, room, look in (
        (cells.news, at.news, at.news_room, ""),
        (cells.run, at.run, at.run_room, "ab_soft"),
    ):
        if content and room > _NARROWEST:
            parts.append(text(left, y, cut_to_width(content, room), classes=look))
    for content, right in ((cells.messages, at.messages), (cells.requests, at.requests)):
        if content:
            parts.append(text(right, y, content, anchor="end"))
    return f'<g data-item="{item}">{"".join(parts)}</g>'


def _signs(row: Row, x: float, y: float) -> Iterable[str]:
    if row.is_current:
        yield f'<circle class="ab_now" cx="{number(x)}" cy="{number(y)}" r="9"/>'
    if row.folded > 1:
        for shift in (-6, 0, 6):
            yield f'<circle class="ab_end" cx="{number(x)}" cy="{number(y + shift)}" r="2"/>'
    elif row.info.n_requests:
        yield pause_sign(x, y, 14)
    elif row.is_fork:
        yield f'<path class="ab_edit" d="M{number(x)} {number(y - 7)}l7 7l-7 7l-7 -7z"/>'
    else:
        kind = "ab_bad" if row.info.source == "error" else "ab_dot ab_end" if row.is_end else "ab_dot"
        yield f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="5"/>'
