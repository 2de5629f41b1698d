"""Pure: the checkpoints of a chain as a tree: what went on from what, and where others branched off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.cli.checkpoint_text import line

_MOST_LINES = 60
_FORKS = ("fork", "update")


@dataclass(frozen=True)
class _Row:
    """A checkpoint in its place.

    Attributes:
        info: It.
        depth: How many branches it lies inside.
        is_branch: Whether it begins a branch of the nearest row above that is less deep.
        is_plain: Whether it only lies between two others.
    """

    info: CheckpointInfo
    depth: int
    is_branch: bool
    is_plain: bool


def tree_text(name: str, infos: Sequence[CheckpointInfo]) -> str:
    """Draw a chain: a line for its name, and one for each checkpoint.

    What went on from a checkpoint stands below it. What branched off, which begins with `+`, stands between the two,
    further to the right. Where there is much, stretches in which nothing happened are folded.

    Args:
        name: Of the chain.
        infos: Oldest first.
    """
    known = {info.checkpoint_id for info in infos}
    rows = list(_rows(infos))
    stretches = _folded(rows) if len(rows) > _MOST_LINES else [[row] for row in rows]
    lines = [_stretch_text(stretch, known) for stretch in stretches]
    if len(lines) > _MOST_LINES:
        half = (_MOST_LINES - 1) // 2
        lines = [*lines[:half], f"… {len(lines) - 2 * half:,} more lines …", *lines[-half:]]
    count = f"{len(infos):,} checkpoint{'' if len(infos) == 1 else 's'}"
    return "\n".join([f"{line(name)}: {count}", *lines])


def _rows(infos: Sequence[CheckpointInfo]) -> Iterator[_Row]:
    children: dict[str, list[CheckpointInfo]] = {}
    roots: list[CheckpointInfo] = []
    for info in infos:
        above = children.get(info.previous_checkpoint_id or "")  # only of what is older: there are no circles
        (roots if above is None else above).append(info)
        children[info.checkpoint_id] = []
    left = [(root, 0, False) for root in reversed(roots)]
    while left:
        info, depth, is_branch = left.pop()
        below = children[info.checkpoint_id]
        heir = next((child for child in below if not _is_fork(child)), None)
        is_plain = not is_branch and below == [heir] and info.source in ("step", "answer") and not info.n_requests
        yield _Row(info, depth, is_branch, is_plain)
        if heir is not None:
            left.append((heir, depth, False))
        left += ((child, depth + 1, True) for child in reversed(below) if child is not heir)


def _is_fork(info: CheckpointInfo) -> bool:
    return info.forked_from is not None and info.source in _FORKS  # a run may save an update of its own


def _folded(rows: Sequence[_Row]) -> list[list[_Row]]:
    stretches: list[list[_Row]] = []
    for row in rows:
        last = stretches[-1][-1] if stretches else None
        if row.is_plain and last is not None and last.is_plain:
            stretches[-1].append(row)
        else:
            stretches.append([row])
    return stretches


def _stretch_text(stretch: Sequence[_Row], known: set[str]) -> str:
    last = stretch[-1]
    if len(stretch) > 1:
        return f"{'  ' * last.depth}: {len(stretch):,} checkpoints  up to superstep {last.info.iteration}"
    facts = ", ".join(_facts(last, known))
    return f"{'  ' * last.depth}{'+' if last.is_branch else '*'} {line(last.info.checkpoint_id)}  {facts}"


def _facts(row: _Row, known: set[str]) -> Iterator[str]:
    info, previous = row.info, row.info.previous_checkpoint_id
    yield f"superstep {info.iteration}"
    if info.source != "step":
        yield line(info.source, 20)
    for count, noun in ((info.n_messages, "message"), (info.n_requests, "request")):
        if count:
            yield f"{count:,} {noun}{'' if count == 1 else 's'}"
    if row.is_branch:
        yield f"from {line(previous)}"
    elif previous is not None and previous not in known:
        yield f"after {line(previous)}, which is not shown here"
