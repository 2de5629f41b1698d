"""The tree of checkpoints: time flows down, forks are branches, and each row has a description."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_name
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.frames.checkpoints import forks, lineage_frame
from agentbench.notebook.history.sources import Chosen, read_infos
from agentbench.notebook.look.svg import FONT_SIZE, cut_to_width, number, pause_sign, picture, room_for, text
from agentbench.notebook.plots.plot import Plot, cut_lines

_ROW = 24.0
_COLUMN = 20.0
_HEAD = 36.0
_EDGE = 16.0
_GAP = 16.0
_MOST_ROWS = 200
_MOST_COLUMNS = 24
_FOLD_BEYOND = 60  # rows
_WRAP_BEYOND = 10  # columns
_ID = 20
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
    """Draw the tree of checkpoints: time flows down, forks are branches to the right.

    If a run resumed from a checkpoint of another run, that checkpoint is drawn too. In its `panel()`, a checkpoint can
    be selected by mouse or keyboard: `panel.chosen` is its id, `panel.on_select(fn)` calls a function with it.

    Args:
        storage: A storage, a run, a result, or a list of those.
        current: The checkpoint to ring: its id or info.
        workflow_name: Only this chain.
        width: Width of the picture in points; by default as wide as its text.

    Example:
        panel = lineage(storage).panel()
        panel.on_select(print)
    """
    read = read_infos(storage, Chosen(workflow_name))
    ringed = getattr(current, "checkpoint_id", current)
    infos = _with_origins(read.rows, read.by_id)
    rows = _rows(infos, ringed, forks(list(read.by_id.values())))
    branches = sum(row.is_fork for row in rows)
    title = f"{count_text(len(infos), 'checkpoint')}, {count_text(branches, 'fork')}"
    return Plot(
        title,
        svg=lambda: _svg(rows, title, width),
        keys=[row.info.checkpoint_id for row in rows],
        text=lambda: _text(rows, title),
        frame=lambda: lineage_frame(storage, workflow_name=workflow_name, full=True),
    )


@dataclass(frozen=True)
class LineageRow:
    """One row: a checkpoint or several consecutive ones, its column, and its parent row."""

    infos: Sequence[CheckpointInfo]
    column: int
    parent: int | None
    is_fork: bool
    is_end: bool
    is_current: bool

    @property
    def info(self) -> CheckpointInfo:
        """The last of its checkpoints."""
        return self.infos[-1]

    @property
    def is_folded(self) -> bool:
        """Whether it has several checkpoints."""
        return len(self.infos) > 1


def _with_origins(infos: Sequence[CheckpointInfo], known: Mapping[str, CheckpointInfo]) -> list[CheckpointInfo]:
    """Add the parents of checkpoints; for a fork, also the checkpoint that was forked."""
    by_id = {info.checkpoint_id: info for info in infos}
    for info in infos:
        before = known.get(info.previous_checkpoint_id or "")
        # A fork's checkpoint belongs to no run: it is between the run and the forked checkpoint.
        while before is not None and before.checkpoint_id not in by_id:
            by_id[before.checkpoint_id] = before
            before = known.get(before.previous_checkpoint_id or "") if before.forked_from is not None else None
    return [by_id.pop(each) for each in known if each in by_id] + list(by_id.values())


def _rows(infos: Sequence[CheckpointInfo], current: str | None, branching: set[str]) -> list[LineageRow]:
    """Arrange checkpoints in rows; long stretches without a branch are folded, if necessary including requests."""
    n_children = Counter(info.previous_checkpoint_id for info in infos)
    rows = [[info] for info in infos]
    for fold_questions in (False, True):
        if len(rows) > _FOLD_BEYOND:
            alone = {
                info.checkpoint_id
                for info in infos
                if info.checkpoint_id in {current, *branching}
                or n_children[info.checkpoint_id] != 1
                or (info.n_requests and not fold_questions)
                or info.source not in ("step", "answer")
            }
            rows = _fold(infos, alone)
    place = {info.checkpoint_id: row for row, members in enumerate(rows) for info in members}
    parents = [place.get(members[0].previous_checkpoint_id or "") for members in rows]
    return [
        LineageRow(
            members,
            column,
            parent,
            is_fork=members[0].checkpoint_id in branching,
            is_end=not n_children[members[-1].checkpoint_id],
            is_current=any(info.checkpoint_id == current for info in members),
        )
        for members, column, parent in zip(rows, _columns(parents), parents, strict=True)
    ]


def _fold(infos: Sequence[CheckpointInfo], alone: set[str]) -> list[list[CheckpointInfo]]:
    """Group consecutive checkpoints into rows."""
    rows: list[list[CheckpointInfo]] = []
    open_rows: dict[str, list[CheckpointInfo]] = {}  # by the id of their last checkpoint
    for info in infos:
        is_alone = info.checkpoint_id in alone
        row = None if is_alone else open_rows.pop(info.previous_checkpoint_id or "", None)
        if row is None:
            row = []
            rows.append(row)
        row.append(info)
        if not is_alone:
            open_rows[info.checkpoint_id] = row
    return rows


def _columns(parents: Sequence[int | None]) -> list[int]:
    """Return a column per row: the first child stays below its parent, later ones branch off to a free column."""
    heir: dict[int, int] = {}
    for row, parent in enumerate(parents):
        if parent is not None and parent < row:
            heir.setdefault(parent, row)
    columns = [0] * len(parents)
    taken: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for head, parent in enumerate(parents):
        if parent is not None and heir.get(parent) == head:
            continue
        branch = [head]
        while branch[-1] in heir:
            branch.append(heir[branch[-1]])
        # The link starts at the parent's row, so the column is needed from there on.
        first = head if parent is None else min(parent, head)
        near = 0 if parent is None else columns[parent] + 1
        # To the right of the parent if there is room, otherwise anywhere.
        places = itertools.chain(range(near, _WRAP_BEYOND), range(near), itertools.count(_WRAP_BEYOND))
        column = next(at for at in places if all(branch[-1] < start or end < first for start, end in taken[at]))
        taken[column].append((first, branch[-1]))
        for row in branch:
            columns[row] = column
    return columns


# ---- the picture ------------------------------------------------------------------------------------------------


def _svg(rows: Sequence[LineageRow], title: str, width: float | None) -> str:
    hidden = max(0, len(rows) - _MOST_ROWS)
    heading = f"{title}; {hidden:,} older lines are not drawn" if hidden else title
    columns = min(max((row.column for row in rows[hidden:]), default=0) + 1, _MOST_COLUMNS)
    tree = min(columns * _COLUMN, _WIDEST_TREE * (width or _WIDEST))
    left = _EDGE + tree + 8
    names = [_name(row) for row in rows]
    facts = _facts(rows)
    middle = left + max((room_for(name, FONT_SIZE) for name in names[hidden:]), default=0) + _GAP
    widest = max((room_for(each, FONT_SIZE) for each in facts[hidden:]), default=0)
    wide = width or min(_WIDEST, max(middle + widest, room_for(heading, FONT_SIZE) + _EDGE) + _EDGE)
    parts = [text(_EDGE, 20, cut_to_width(heading, wide - 2 * _EDGE), classes="ab_strong")]
    if not rows:
        parts.append(text(_EDGE, _HEAD + 12, "No checkpoints yet.", classes="ab_soft"))
    places = [
        (_EDGE + (min(row.column, columns - 1) + 0.5) * tree / columns, _HEAD + (at - hidden + 0.5) * _ROW + 2)
        for at, row in enumerate(rows)
    ]
    for at, row in enumerate(rows):
        if row.parent is not None and hidden <= row.parent < at:
            parts.append(_link(places[row.parent], places[at], is_fork=row.is_fork))
    for at, row in list(enumerate(rows))[hidden:]:
        x, y = places[at]
        # A transparent rectangle, so that the whole row has the tooltip and can be selected.
        size = f'x="{number(_EDGE - 6)}" width="{number(wide - 2 * _EDGE + 12)}" height="{number(_ROW)}"'
        look = "ab_row ab_here" if row.is_current else "ab_row"
        info, writers = row.info, ", ".join(row.info.writers) or "no executor"
        hover = f"{info.checkpoint_id}; {info.timestamp}; run {info.run_id or 'none'}; {writers} ran"
        parts.append(f'<g data-item="{at}"><title>{esc(hover, into="svg", limit=400)}</title>')
        parts.append(f'<rect class="{look}" {size} y="{number(y - _ROW / 2)}" rx="4"/>')
        parts += _signs(row, x, y)
        parts.append(text(left, y, names[at], classes="ab_strong" if row.is_current else ""))
        parts.append(text(middle, y, cut_to_width(facts[at], wide - _EDGE - middle), classes="ab_soft") + "</g>")
    return picture(
        parts,
        width=wide,
        height=_HEAD + max(1, len(rows) - hidden) * _ROW + 10,
        title=title,
        description=_text(rows, title),
        rules=_RULES,
    )


def _link(above: tuple[float, float], below: tuple[float, float], *, is_fork: bool) -> str:
    (x0, y0), (x1, y1) = above, below
    # Down its own column, to cross as few links of other branches as possible.
    bend = f"C{number(x1)} {number(y0 + 4)} {number(x1)} {number(y0 + 8)} {number(x1)} {number(y0 + _ROW)}"
    path = f"V{number(y1)}" if x0 == x1 else f"{bend}V{number(y1)}"
    return f'<path class="ab_link{" ab_fork" if is_fork else ""}" d="M{number(x0)} {number(y0)}{path}"/>'


def _signs(row: LineageRow, x: float, y: float) -> Iterable[str]:
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


# ---- words ------------------------------------------------------------------------------------------------------


def _text(rows: Sequence[LineageRow], title: str) -> str:
    """Return a line per row, branches indented below their parent; the middle is omitted beyond 60 lines."""
    depths: list[int] = []  # depth of each row; columns would also grow with parallel branches
    for at, row in enumerate(rows):
        above = row.parent if row.parent is not None and row.parent < at else None
        depths.append(0 if above is None else depths[above] + (row.column != rows[above].column))
    lines = []
    for row, depth, facts in zip(rows, depths, _facts(rows), strict=True):
        sign = "@" if row.is_current else "+" if row.is_fork else ":" if row.is_folded else "*"
        lines.append(f"{'  ' * depth}{sign} {_name(row)}  {facts}")
    return "\n".join([title, *cut_lines(lines)])


def _name(row: LineageRow) -> str:
    """Return the short id of a checkpoint, or the number of checkpoints."""
    return f"{len(row.infos)} checkpoints" if row.is_folded else _short_id(row.info.checkpoint_id)


def _short_id(checkpoint_id: str) -> str:
    return esc(checkpoint_id if len(checkpoint_id) <= _ID else checkpoint_id[:8] + "…", into="line")


def _facts(rows: Sequence[LineageRow]) -> list[str]:
    """Return the description of each row: superstep, source, requests, parent, and the run where it begins."""
    lines: list[str] = []
    runs: set[str | None] = {None}
    for at, row in enumerate(rows):
        info = row.info
        if row.is_folded:
            asking = sum(each.n_requests > 0 for each in row.infos)
            facts = [f"supersteps {row.infos[0].iteration} to {info.iteration}"]
            facts += [f"{asking} with requests"] if asking else []
        else:
            facts = [f"superstep {info.iteration}"]
            facts += [esc(info.source, into="line", limit=20)] if info.source != "step" else []
            counts = ((info.n_messages, "message"), (info.n_requests, "request"))
            facts += [count_text(count, name) for count, name in counts if count]
        if row.is_fork and not row.is_folded:
            facts.append(f"from {_short_id(info.previous_checkpoint_id or '')}")
        elif row.parent is not None and row.parent != at - 1:
            facts.append(f"from {_short_id(rows[row.parent].info.checkpoint_id)}")
        if info.run_id is not None and info.run_id not in runs:
            facts.append(run_name(info.run_id))
        runs.add(info.run_id)
        lines.append(", ".join(facts))
    return lines
