"""The tree of checkpoints: time flows down, forks are branches, and a line beside each says what it is."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from agentbench.notebook.frames.checkpoints import forks, lineage_frame
from agentbench.notebook.history.sources import Chosen, read_infos
from agentbench.notebook.look.svg import FONT_SIZE, cut_to_width, number, pause_sign, picture, room_for, text
from agentbench.notebook.plots.lineage_rows import Row, facts_of, lineage_rows, lineage_text, name_of, with_origins
from agentbench.notebook.plots.plot import Plot
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text

__all__ = ["lineage", "lineage_svg"]

_ROW = 24.0
_COLUMN = 20.0
_HEAD = 36.0
_EDGE = 16.0
_GAP = 16.0
_MOST_ROWS = 200
_MOST_COLUMNS = 24
_WIDEST_TREE = 0.28
_WIDEST = 860.0

_RULES = (
    ".ab_link{stroke:var(--line);stroke-width:1.6;fill:none}.ab_fork{stroke-dasharray:4 3}.ab_ink{fill:var(--ink)}",
    ".ab_dot{fill:var(--surface);stroke:var(--line);stroke-width:1.8}.ab_end{fill:var(--line)}.ab_wait{fill:var(--waiting)}",
    ".ab_edit{fill:var(--queued);stroke:var(--line);stroke-width:1.6}",
    ".ab_bad{fill:var(--failed);stroke:var(--line);stroke-width:1.6}",
    ".ab_now{fill:none;stroke:var(--accent);stroke-width:2.6}.ab_row{fill:var(--accent);fill-opacity:0}.ab_here{fill-opacity:.1}",
)


def lineage(storage: Any, *, current: Any = None, workflow_name: str | None = None, width: float | None = None) -> Plot:
    """Draw which checkpoint followed which: time flows down, forks are branches to the right.

    Of a run that went on from a checkpoint of another one, that checkpoint is drawn too. In its `panel()` a checkpoint
    can be chosen by mouse or keyboard: `panel.chosen` is its id, `panel.on_select(fn)` calls a function with it.

    Args:
        storage: A storage, a run, a result, or a list of those.
        current: The checkpoint to ring: its id or info.
        workflow_name: Only this chain.
        width: Of the picture, in points; by default as wide as its words.

    Example:
        panel = lineage(storage).panel()
        panel.on_select(print)
    """
    read = read_infos(storage, Chosen(workflow_name))
    ringed = getattr(current, "checkpoint_id", current)
    infos = with_origins(read.rows, read.by_id)
    rows = lineage_rows(infos, current=ringed, branching=forks(list(read.by_id.values())))
    branches = sum(row.is_fork for row in rows)
    title = f"{count_text(len(infos), 'checkpoint')}, {count_text(branches, 'fork')}"
    return Plot(
        title,
        svg=lambda: lineage_svg(rows, title=title, width=width),
        keys=[row.info.checkpoint_id for row in rows],
        text=lambda: lineage_text(rows, title=title),
        frame=lambda: lineage_frame(storage, workflow_name=workflow_name),
    )


def lineage_svg(rows: Sequence[Row], *, title: str, width: float | None = None) -> str:
    """Draw rows."""
    drawn = _newest(rows)
    hidden = len(rows) - len(drawn)
    heading = f"{title}; {hidden:,} older lines are not drawn" if hidden else title
    columns = max((row.column for row in drawn), default=0) + 1
    tree = min(columns * _COLUMN, _WIDEST_TREE * (width or _WIDEST))
    left = _EDGE + tree + 8
    names = [name_of(row) for row in drawn]
    facts = [facts_of(drawn, at) for at in range(len(drawn))]
    middle = left + max((room_for(name, FONT_SIZE) for name in names), default=0) + _GAP
    widest = max((room_for(each, FONT_SIZE) for each in facts), default=0)
    wide = width or min(_WIDEST, max(middle + widest, room_for(heading, FONT_SIZE) + _EDGE) + _EDGE)
    parts = [text(_EDGE, 20, cut_to_width(heading, wide - 2 * _EDGE), classes="ab_strong")]
    if not drawn:
        parts.append(text(_EDGE, _HEAD + 12, "No checkpoint has been saved yet.", classes="ab_soft"))
    column = tree / columns
    parts += [_link(drawn, at, column) for at, row in enumerate(drawn) if row.parent is not None and row.parent < at]
    for at, row in enumerate(drawn):
        x, y = _place(row, at, column)
        # A transparent rectangle: the whole row has the tooltip, and can be chosen where rows can be.
        size = f'x="{number(_EDGE - 6)}" width="{number(wide - 2 * _EDGE + 12)}" height="{number(_ROW)}"'
        look = "ab_row ab_here" if row.is_current else "ab_row"
        parts.append(f'<g data-item="{hidden + at}"><title>{esc(_hover_text(row), into="svg", limit=400)}</title>')
        parts.append(f'<rect class="{look}" {size} y="{number(y - _ROW / 2)}" rx="4"/>')
        parts += _signs(row, x, y)
        parts.append(text(left, y, names[at], classes="ab_strong" if row.is_current else ""))
        parts.append(text(middle, y, cut_to_width(facts[at], wide - _EDGE - middle), classes="ab_soft") + "</g>")
    return picture(
        parts,
        width=wide,
        height=_HEAD + max(1, len(drawn)) * _ROW + 10,
        title=title,
        description=lineage_text(rows, title=title),
        rules=_RULES,
    )


def _newest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are drawn; what they went on from may lie above."""
    hidden = max(0, len(rows) - _MOST_ROWS)
    return [
        replace(
            row,
            column=min(row.column, _MOST_COLUMNS - 1),
            parent=None if row.parent is None or row.parent < hidden else row.parent - hidden,
        )
        for row in rows[hidden:]
    ]


def _place(row: Row, at: int, column: float) -> tuple[float, float]:
    return _EDGE + (row.column + 0.5) * column, _HEAD + at * _ROW + _ROW / 2 + 2


def _link(rows: Sequence[Row], at: int, column: float) -> str:
    row = rows[at]
    above = row.parent or 0
    (x0, y0), (x1, y1) = _place(rows[above], above, column), _place(row, at, column)
    # Down the own column, so that links of other branches are not crossed more than needed.
    bend = f"C{number(x1)} {number(y0 + 4)} {number(x1)} {number(y0 + 8)} {number(x1)} {number(y0 + _ROW)}"
    path = f"V{number(y1)}" if x0 == x1 else f"{bend}V{number(y1)}"
    return f'<path class="ab_link{" ab_fork" if row.is_fork else ""}" d="M{number(x0)} {number(y0)}{path}"/>'


def _hover_text(row: Row) -> str:
    info = row.info
    writers = ", ".join(info.writers) or "no executor"
    return f"{info.checkpoint_id}; {info.timestamp}; run {info.run_id or 'none'}; {writers} ran"


def _signs(row: Row, x: float, y: float) -> Iterable[str]:
    if row.is_current:
        yield f'<circle class="ab_now" cx="{number(x)}" cy="{number(y)}" r="9"/>'
    if row.is_folded:
        for shift in (-6, 0, 6):
            yield f'<circle class="ab_end" cx="{number(x)}" cy="{number(y + shift)}" r="2"/>'
    elif row.info.n_requests:
        yield pause_sign(x, y, 14)
    elif row.is_fork:
        yield f'<path class="ab_edit" d="M{number(x)} {number(y - 7)}l7 7l-7 7l-7 -7z"/>'
    else:
        kind = "ab_bad" if row.info.source == "error" else "ab_dot ab_end" if row.is_end else "ab_dot"
        yield f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="5"/>'
