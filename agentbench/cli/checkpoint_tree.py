"""Pure: the checkpoints of a chain as a tree: which one follows which, and where others branch off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.cli.checkpoint_text import line

_FORKS = ("fork", "update")


def tree_text(name: str, infos: Sequence[CheckpointInfo]) -> str:
    """Draw a chain: a line for its name, and one for each checkpoint.

    The checkpoint that follows another one is below it. What branches off, which begins with `+`, is between the two,
    further to the right.
    """
    children: dict[str, list[CheckpointInfo]] = {}
    roots: list[CheckpointInfo] = []
    for info in infos:
        siblings = children.get(info.previous_checkpoint_id or "")  # only of older ones: there are no circles
        (roots if siblings is None else siblings).append(info)
        children[info.checkpoint_id] = []
    lines = [f"{line(name)}: {len(infos):,} checkpoint{'' if len(infos) == 1 else 's'}"]
    stack = [(root, 0, False) for root in reversed(roots)]
    while stack:
        info, depth, is_branch = stack.pop()
        facts = ", ".join(_facts(info, is_branch=is_branch, known=children))
        lines.append(f"{'  ' * depth}{'+' if is_branch else '*'} {line(info.checkpoint_id)}  {facts}")
        below = children[info.checkpoint_id]
        # A run may save an update of its own, which is no branch.
        heir = next((child for child in below if child.forked_from is None or child.source not in _FORKS), None)
        if heir is not None:
            stack.append((heir, depth, False))
        stack += [(child, depth + 1, True) for child in reversed(below) if child is not heir]
    return "\n".join(lines)


def _facts(info: CheckpointInfo, *, is_branch: bool, known: dict[str, list[CheckpointInfo]]) -> Iterator[str]:
    previous = info.previous_checkpoint_id
    yield f"superstep {info.iteration}"
    if info.source != "step":
        yield line(info.source, 20)
    for count, noun in ((info.n_messages, "message"), (info.n_requests, "request")):
        if count:
            yield f"{count:,} {noun}{'' if count == 1 else 's'}"
    if is_branch:
        yield f"from {line(previous)}"
    elif previous is not None and previous not in known:
        yield f"after {line(previous)}, which is not listed here"
