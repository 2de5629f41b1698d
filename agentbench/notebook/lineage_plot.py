"""The tree of checkpoints as a picture and as text: one line each, branches side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.checkpoint_frames import forks
from agentbench.notebook.escaping import esc
from agentbench.notebook.rendering.builtin import text_width
from agentbench.notebook.svg_parts import FONT_SIZE, SMALL, cut_to_width, number, pause_sign, picture, text

__all__ = ["Row", "lineage_rows", "lineage_svg", "lineage_text", "with_origins"]

MAX_ROWS = 60

_ROW = 26.0
_COLUMN = 22.0
_HEAD = 36.0
_EDGE = 16.0
_MOST_COLUMNS = 12
_ID = 20

_RULES = (
    ".ab_link{stroke:var(--line);stroke-width:2;fill:none}.ab_fork{stroke-dasharray:5 3}.ab_ink{fill:var(--ink)}",
    ".ab_dot{fill:var(--surface);stroke:var(--line);stroke-width:2}.ab_end{fill:var(--line)}.ab_wait{fill:var(--waiting)}",
    ".ab_edit{fill:var(--queued);stroke:var(--line);stroke-width:2}.ab_bad{fill:var(--failed);stroke:var(--line);stroke-width:2}",
    ".ab_now{fill:none;stroke:var(--accent);stroke-width:3}",
)


@dataclass(frozen=True)
class Row:
    """One line: a checkpoint, or a stretch of them that is folded.

    Attributes:
        info: The checkpoint; of a stretch the last one.
        column: Branch that it stands in, 0 at the left.
        parent: Row that it goes on from, `None` where nothing is known above it.
        is_fork: Whether it branches off.
        is_end: Whether nothing goes on from it.
        is_current: Whether it is ringed.
        folded: How many checkpoints it stands for.
    """

    info: CheckpointInfo
    column: int
    parent: int | None
    is_fork: bool
    is_end: bool
    is_current: bool
    folded: int = 1


def with_origins(infos: Sequence[CheckpointInfo], known: Mapping[str, CheckpointInfo]) -> list[CheckpointInfo]:
    """Checkpoints together with those that they went on from; with a fork, also with the point that it left from.

    Args:
        infos: In their order.
        known: Those and others of their chains by id, in their order.
    """
    shown = {info.checkpoint_id: info for info in infos}
    for info in infos:
        before = known.get(info.previous_checkpoint_id or "")
        # No run wrote a fork: it stands between the run and the point that was left.
        while before is not None and before.checkpoint_id not in shown:
            shown[before.checkpoint_id] = before
            before = known.get(before.previous_checkpoint_id or "") if before.forked_from is not None else None
    return [shown.pop(each) for each in known if each in shown] + list(shown.values())


def lineage_rows(
    infos: Sequence[CheckpointInfo],
    *,
    current: str | None = None,
    max_rows: int = MAX_ROWS,
    branching: set[str] | None = None,
) -> list[Row]:
    """Arrange checkpoints.

    Args:
        infos: In the order in which they were saved.
        current: Id of the one to ring.
        max_rows: Beyond so many, stretches without a branch are folded.
        branching: Ids of those that branch off, where there are more checkpoints than these; else they tell it.
    """
    branching = forks(infos) if branching is None else branching
    children: dict[str, list[str]] = {}
    for info in infos:
        if info.previous_checkpoint_id is not None:
            children.setdefault(info.previous_checkpoint_id, []).append(info.checkpoint_id)
    kept = _stretches(infos, children, branching, current) if len(infos) > max_rows else [[info] for info in infos]
    place = {info.checkpoint_id: row for row, stretch in enumerate(kept) for info in stretch}
    parents = [place.get(stretch[0].previous_checkpoint_id or "") for stretch in kept]
    columns = _columns(parents)
    return [
        Row(
            stretch[-1],
            columns[row],
            parents[row],
            is_fork=stretch[0].checkpoint_id in branching,
            is_end=stretch[-1].checkpoint_id not in children,
            is_current=any(info.checkpoint_id == current for info in stretch),
            folded=len(stretch),
        )
        for row, stretch in enumerate(kept)
    ]


def _stretches(
    infos: Sequence[CheckpointInfo], children: dict[str, list[str]], branching: set[str], current: str | None
) -> list[list[CheckpointInfo]]:
    """Checkpoints that simply follow each other as one; what branches, ends, asks or is ringed stays alone."""
    alone = {
        info.checkpoint_id
        for info in infos
        if info.checkpoint_id in branching
        or len(children.get(info.checkpoint_id, ())) != 1
        or info.n_requests
        or info.source not in ("step", "answer")
        or info.checkpoint_id == current
    }
    stretches: list[list[CheckpointInfo]] = []
    open_at: dict[str, int] = {}
    for info in infos:
        parent = info.previous_checkpoint_id
        if info.checkpoint_id not in alone and parent in open_at:
            at = open_at.pop(parent)
            stretches[at].append(info)
        else:
            at = len(stretches)
            stretches.append([info])
        if info.checkpoint_id not in alone:
            open_at[info.checkpoint_id] = at
    return stretches


def _columns(parents: Sequence[int | None]) -> list[int]:
    """A column per row: the first row to go on from another stays below it, later ones branch off to a free column."""
    heir: dict[int, int] = {}
    for row, parent in enumerate(parents):
        if parent is not None and parent < row:
            heir.setdefault(parent, row)
    columns = [0] * len(parents)
    taken: list[list[tuple[int, int]]] = []
    for head, parent in enumerate(parents):
        if parent is not None and heir.get(parent) == head:
            continue
        branch = [head]
        while branch[-1] in heir:
            branch.append(heir[branch[-1]])
        # Its link leaves the parent's row, so the column is needed from there on.
        first = head if parent is None else min(parent, head)
        column = 0 if parent is None else columns[parent] + 1
        while column < len(taken) and not _is_free(taken[column], first, branch[-1]):
            column += 1
        taken += [[] for _ in range(column + 1 - len(taken))]
        taken[column].append((first, branch[-1]))
        for row in branch:
            columns[row] = column
    return columns


def _is_free(spans: Iterable[tuple[int, int]], first: int, last: int) -> bool:
    return all(last < start or end < first for start, end in spans)


# ---- words ------------------------------------------------------------------------------------------------------


def lineage_text(rows: Sequence[Row], *, title: str) -> str:
    """A line per row, branches indented; the middle is left out where there are more than 60."""
    lines = [f"{'  ' * row.column}{_sign(row)} {_name(row)}  {_facts(row)}" for row in rows]
    if len(lines) > MAX_ROWS:
        half = (MAX_ROWS - 1) // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]
    return "\n".join([title, *lines])


def _sign(row: Row) -> str:
    if row.is_current:
        return "@"
    return "+" if row.is_fork else ":" if row.folded > 1 else "*"


def _name(row: Row) -> str:
    return f"{row.folded} checkpoints" if row.folded > 1 else _short(row.info.checkpoint_id)


def _short(checkpoint_id: str) -> str:
    return esc(checkpoint_id if len(checkpoint_id) <= _ID else checkpoint_id[:8] + "…", into="line")


def _facts(row: Row) -> str:
    info = row.info
    if row.folded > 1:
        return f"up to superstep {info.iteration}"
    facts = [f"superstep {info.iteration}"]
    if info.source != "step":
        facts.append(esc(info.source, into="line", limit=20))
    for count, name in ((info.n_messages, "message"), (info.n_requests, "request")):
        if count:
            facts.append(f"{count} {name}{'' if count == 1 else 's'}")
    if row.is_fork and info.previous_checkpoint_id is not None:
        facts.append(f"from {_short(info.previous_checkpoint_id)}")
    return ", ".join(facts)


# ---- picture ----------------------------------------------------------------------------------------------------


def lineage_svg(rows: Sequence[Row], *, title: str, width: float = 640.0) -> str:
    """Draw rows.

    Args:
        rows: From the oldest checkpoint to the newest.
        title: What stands above them.
        width: Of the whole picture, in points.
    """
    shown = [replace(row, column=min(row.column, _MOST_COLUMNS - 1)) for row in rows]
    columns = max((row.column for row in shown), default=0) + 1
    parts = [text(_EDGE, 20, title, classes="ab_strong")]
    if not shown:
        parts.append(text(_EDGE, _y(0), "No checkpoint has been saved yet.", classes="ab_soft"))
    parts += (_link(shown, at) for at, row in enumerate(shown) if row.parent is not None and row.parent < at)
    names_at = _EDGE + columns * _COLUMN + 8
    facts_at = names_at + max((text_width(_name(row), FONT_SIZE) for row in shown), default=0.0) * 1.1 + 16
    run_ids = _run_ids(shown)
    for at, row in enumerate(shown):
        news = row.is_fork or at == 0 or run_ids[at] != run_ids[at - 1]
        parts.append(_line(row, at, (names_at, facts_at, width - _EDGE), run_id=run_ids[at] if news else None))
    return picture(
        parts,
        width=width,
        height=_HEAD + max(1, len(shown)) * _ROW + 8,
        title=title,
        description=lineage_text(rows, title=title),
        rules=_RULES,
    )


def _run_ids(rows: Sequence[Row]) -> list[str | None]:
    """The run of each row; of a fork, which no run wrote, the one that goes on from it."""
    found = [row.info.run_id for row in rows]
    for at in range(len(rows) - 1, -1, -1):
        parent = rows[at].parent
        if parent is not None and rows[parent].info.run_id is None:
            found[parent] = found[at]
    return found


def _x(row: Row) -> float:
    return _EDGE + row.column * _COLUMN + _COLUMN / 2


def _y(at: int) -> float:
    return _HEAD + at * _ROW + _ROW / 2


def _link(rows: Sequence[Row], at: int) -> str:
    row = rows[at]
    above = row.parent or 0
    x0, y0, x1, y1 = _x(rows[above]), _y(above), _x(row), _y(at)
    # Down the own column, so that links of other branches are not crossed more than needed.
    bend = f"C{number(x1)} {number(y0 + 4)} {number(x1)} {number(y0 + 8)} {number(x1)} {number(y0 + _ROW)}"
    path = f"V{number(y1)}" if x0 == x1 else f"{bend}V{number(y1)}"
    classes = "ab_link ab_fork" if row.is_fork else "ab_link"
    return f'<path class="{classes}" d="M{number(x0)} {number(y0)}{path}"/>'


def _line(row: Row, at: int, places: tuple[float, float, float], *, run_id: str | None) -> str:
    x, y, info = _x(row), _y(at), row.info
    names_at, facts_at, end = places
    writers = ", ".join(info.writers) or "nobody"
    hover = f"{info.checkpoint_id}; {info.timestamp}; run {info.run_id or 'none'}; {writers} ran"
    parts = [f"<title>{esc(hover, into='svg', limit=400)}</title>", *_signs(row, x, y)]
    parts.append(text(names_at, y, _name(row), classes="ab_strong" if row.is_current else ""))
    room = end - facts_at
    if run_id is not None:
        run = cut_to_width(esc(run_id, into="line", limit=100), 110, SMALL)
        parts.append(text(end, y, run, anchor="end", classes="ab_soft ab_small"))
        room -= text_width(run, SMALL) + 12
    parts.append(text(facts_at, y, cut_to_width(_facts(row), room)))
    return f"<g>{''.join(parts)}</g>"


def _signs(row: Row, x: float, y: float) -> Iterable[str]:
    if row.is_current:
        yield f'<circle class="ab_now" cx="{number(x)}" cy="{number(y)}" r="9.5"/>'
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
