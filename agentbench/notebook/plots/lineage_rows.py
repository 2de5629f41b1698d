"""The tree of checkpoints, one line each, branches side by side; and as text."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.frames.checkpoints import forks
from agentbench.notebook.plots.plot import cut_lines
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, run_name

__all__ = ["MAX_ROWS", "Row", "facts_of", "lineage_rows", "lineage_text", "name_of", "with_origins"]

MAX_ROWS = 60

_MOST_COLUMNS = 10
_ID = 20


@dataclass(frozen=True)
class Row:
    """One line: a checkpoint or several that simply follow each other; its branch; the row that it goes on from."""

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


def with_origins(infos: Sequence[CheckpointInfo], known: Mapping[str, CheckpointInfo]) -> list[CheckpointInfo]:
    """Checkpoints together with those that they went on from; with a fork, also with the point that it left from."""
    found = {info.checkpoint_id: info for info in infos}
    for info in infos:
        before = known.get(info.previous_checkpoint_id or "")
        # No run wrote a fork: it lies between the run and the checkpoint that was forked.
        while before is not None and before.checkpoint_id not in found:
            found[before.checkpoint_id] = before
            before = known.get(before.previous_checkpoint_id or "") if before.forked_from is not None else None
    return [found.pop(each) for each in known if each in found] + list(found.values())


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
        max_rows: Beyond so many, stretches without a branch are folded; if need be, with the questions in them.
        branching: Ids of those that branch off, where there are more checkpoints than these; by default read from them.
    """
    branching = forks(infos) if branching is None else branching
    n_children = Counter(info.previous_checkpoint_id for info in infos)
    rows = [[info] for info in infos]
    for fold_questions in (False, True):
        if len(rows) > max_rows:
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
        Row(
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
    """Return checkpoints that simply follow each other as one row."""
    rows: list[list[CheckpointInfo]] = []
    open_rows: dict[str, list[CheckpointInfo]] = {}  # by the last checkpoint of each
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
        near = 0 if parent is None else columns[parent] + 1
        # To the right of the parent while there is room, else wherever there is.
        places = itertools.chain(range(near, _MOST_COLUMNS), range(near), itertools.count(_MOST_COLUMNS))
        column = next(at for at in places if at >= len(taken) or _is_free(taken[at], first, branch[-1]))
        taken += [[] for _ in range(column + 1 - len(taken))]
        taken[column].append((first, branch[-1]))
        for row in branch:
            columns[row] = column
    return columns


def _is_free(spans: Iterable[tuple[int, int]], first: int, last: int) -> bool:
    return all(last < start or end < first for start, end in spans)


# ---- words ------------------------------------------------------------------------------------------------------


def lineage_text(rows: Sequence[Row], *, title: str) -> str:
    """A line per row, branches indented below what they left; the middle is left out where there are more than 60."""
    depths: list[int] = []  # columns grow with the number of branches side by side, too
    for at, row in enumerate(rows):
        above = row.parent if row.parent is not None and row.parent < at else None
        depths.append(0 if above is None else depths[above] + (row.column != rows[above].column))
    lines = [
        f"{'  ' * depth}{_sign(row)} {name_of(row)}  {facts_of(rows, at)}"
        for at, (row, depth) in enumerate(zip(rows, depths, strict=True))
    ]
    return "\n".join([title, *cut_lines(lines)])


def _sign(row: Row) -> str:
    if row.is_current:
        return "@"
    return "+" if row.is_fork else ":" if row.is_folded else "*"


def name_of(row: Row) -> str:
    """The short id of a checkpoint, or how many there are."""
    return f"{len(row.infos)} checkpoints" if row.is_folded else _short_id(row.info.checkpoint_id)


def _short_id(checkpoint_id: str) -> str:
    return esc(checkpoint_id if len(checkpoint_id) <= _ID else checkpoint_id[:8] + "…", into="line")


def facts_of(rows: Sequence[Row], at: int) -> str:
    """What a row is: its superstep, its source, what waits in it, its origin, and its run where that begins."""
    row = rows[at]
    info = row.info
    if row.is_folded:
        asking = sum(each.n_requests > 0 for each in row.infos)
        facts = [f"supersteps {row.infos[0].iteration} to {info.iteration}"]
        facts += [f"{asking} of them ask a person"] if asking else []
    else:
        facts = [f"superstep {info.iteration}"]
        facts += [esc(info.source, into="line", limit=20)] if info.source != "step" else []
        counts = ((info.n_messages, "message"), (info.n_requests, "request"))
        facts += [count_text(count, name) for count, name in counts if count]
    if row.is_fork and not row.is_folded:
        facts.append(f"from {_short_id(info.previous_checkpoint_id or '')}")
    elif row.parent not in (None, at - 1):
        facts.append(f"from {_short_id(rows[row.parent].info.checkpoint_id)}")
    if info.run_id is not None and info.run_id not in {each.info.run_id for each in rows[:at]}:
        facts.append(run_name(info.run_id))
    return ", ".join(facts)
