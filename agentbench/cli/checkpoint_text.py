"""Pure functions that format checkpoints as text and plain JSON; text is escaped, secrets are masked by default."""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentbench._plain_text import MASK, plain_line, plain_text
from agentbench._secrets import is_secret_name, mask_secrets
from agentbench._text.changes import hides, masked_path, short_value
from agentbench._text.phrases import count_text
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import ENGINE_KEYS
from agentbench.serialization.json_text import to_json

_LINE_LIMIT = 100
_WIDTH = 100
_HEAD = ("number", "id", "superstep", "source", "saved (UTC)", "messages", "requests", "size", "executors")
_FORKS = ("fork", "update")
_IN_STATE = {"_executor_state": "executors", "_fan_in_buffers": "fan-in buffers"}


def line(value: object, limit: int | None = None) -> str:
    """Return a value as one line of text that is harmless in a terminal."""
    return plain_line(value, limit)


def infos_text(infos: Sequence[CheckpointInfo]) -> str:
    """Return a table of the checkpoints of one chain."""
    rows = [
        (
            str(info.seq),
            line(info.checkpoint_id),
            str(info.iteration),
            line(info.source, 20),
            _time(info.timestamp),
            str(info.n_messages),
            str(info.n_requests),
            _size(info.size_bytes),
            line(", ".join(info.writers), 60),
        )
        for info in infos
    ]
    return "\n".join(align([_HEAD, *rows], right={0, 2, 5, 6, 7}))


def info_json(info: CheckpointInfo, *, secrets: bool = False) -> dict[str, Any]:
    """Describe a checkpoint as JSON values."""
    return {
        "workflow_name": info.workflow_name,
        "checkpoint_id": info.checkpoint_id,
        "previous_checkpoint_id": info.previous_checkpoint_id,
        "forked_from": info.forked_from,
        "seq": info.seq,
        "superstep": info.iteration,
        "source": info.source,
        "timestamp": info.timestamp,
        "run_id": info.run_id,
        "graph_signature_hash": info.graph_signature_hash,
        "messages": info.n_messages,
        "requests": info.n_requests,
        "size_bytes": info.size_bytes,
        "writers": list(info.writers),
        "metadata": stored_form(_own_metadata(info.metadata), secrets=secrets),
    }


def align(rows: Sequence[Sequence[str]], right: set[int]) -> Iterator[str]:
    """Yield the lines of a table, with some columns aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _time(timestamp: str) -> str:
    """Format a time, to the second."""
    return line(timestamp[:19].replace("T", " ") if timestamp.endswith("+00:00") else timestamp, 40)


def _size(size_bytes: int) -> str:
    if not size_bytes:
        return ""
    return f"{size_bytes:,} B" if size_bytes < 10_000 else f"{size_bytes / 1000:,.0f} kB"


def checkpoint_text(checkpoint: WorkflowCheckpoint, *, full: bool = False, secrets: bool = False) -> str:
    """Describe a checkpoint and its contents: the beginning of each value or all of it, secrets masked or not."""
    lines = list(_facts(checkpoint, secrets=secrets))
    for title, entries in _sections(checkpoint):
        if entries:
            lines += ["", f"{title} ({len(entries):,})"]
        for name, value in entries:
            if full:
                lines += _whole_value(name, value, secrets=secrets)
            else:
                lines.append(f"  {line(name, 60)} = {_short_value(name, value, secrets=secrets)}")
    return "\n".join(lines)


def _facts(checkpoint: WorkflowCheckpoint, *, secrets: bool) -> Iterator[str]:
    info = CheckpointInfo.of(checkpoint)
    facts = {
        "checkpoint": info.checkpoint_id,
        "chain": f"{info.workflow_name}, number {info.seq}",
        "superstep": f"{info.iteration}" + (f", {', '.join(info.writers)}" if info.writers else ""),
        "saved": f"{info.timestamp}, source {info.source}",
        "run": info.run_id,
        "follows": info.previous_checkpoint_id,
        "forked from": info.forked_from,
        "graph": info.graph_signature_hash,
    }
    for name, fact in facts.items():
        if fact is not None:
            yield f"{name:12}{line(fact)}"
    for name, value in _own_metadata(info.metadata).items():
        yield f"{'metadata':12}{line(name)} = {_short_value(name, value, secrets=secrets)}"


def _sections(checkpoint: WorkflowCheckpoint) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    messages = [
        (f"{source} -> {getattr(message, 'target_id', None) or 'all targets'}", getattr(message, "data", message))
        for source, sent in checkpoint.messages.items()
        for message in sent
    ]
    requests = [
        (f"{request_id} of {getattr(event, 'source_id', None) or 'unknown'}", getattr(event, "data", event))
        for request_id, event in checkpoint.pending_request_info_events.items()
    ]
    yield "messages", messages
    yield "requests", requests
    yield "state", [(str(key), value) for key, value in checkpoint.state.items() if key not in _IN_STATE]
    for key, title in _IN_STATE.items():
        yield title, list((checkpoint.state.get(key) or {}).items())


def _whole_value(name: str, value: object, *, secrets: bool) -> Iterator[str]:
    yield f"  {line(name)} ="
    masked = value if secrets else mask_secrets(value, key=name)
    text = masked if isinstance(masked, str) else pprint.pformat(masked, width=_WIDTH, sort_dicts=False)
    for each in plain_text(text, None).split("\n"):
        yield f"    {each}"


def _short_value(name: str, value: object, *, secrets: bool) -> str:
    if is_secret_name(name) and value is not None and not secrets:
        return MASK
    return short_value(value, limit=_LINE_LIMIT, secrets=secrets)


def _own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in ENGINE_KEYS}


def tree_text(name: str, infos: Sequence[CheckpointInfo]) -> str:
    """Draw a chain: each checkpoint below its parent, with branches marked `+` between the two."""
    children: dict[str, list[CheckpointInfo]] = {}
    roots: list[CheckpointInfo] = []
    for info in infos:
        siblings = children.get(info.previous_checkpoint_id or "")  # parents are older: no cycles
        (roots if siblings is None else siblings).append(info)
        children[info.checkpoint_id] = []
    lines = [f"{line(name)}: {count_text(len(infos), 'checkpoint')}"]
    stack = [(root, 0, False) for root in reversed(roots)]
    while stack:
        info, depth, is_branch = stack.pop()
        facts = ", ".join(_tree_facts(info, is_branch=is_branch, known=children))
        lines.append(f"{'  ' * depth}{'+' if is_branch else '*'} {line(info.checkpoint_id)}  {facts}")
        below = children[info.checkpoint_id]
        # A run may save an update of its own checkpoint, which is not a branch.
        heir = next((child for child in below if child.forked_from is None or child.source not in _FORKS), None)
        if heir is not None:
            stack.append((heir, depth, False))
        stack += [(child, depth + 1, True) for child in reversed(below) if child is not heir]
    return "\n".join(lines)


def _tree_facts(info: CheckpointInfo, *, is_branch: bool, known: dict[str, list[CheckpointInfo]]) -> Iterator[str]:
    previous = info.previous_checkpoint_id
    yield f"superstep {info.iteration}"
    if info.source != "step":
        yield line(info.source, 20)
    for count, noun in ((info.n_messages, "message"), (info.n_requests, "request")):
        if count:
            yield count_text(count, noun)
    if is_branch:
        yield f"from {line(previous)}"
    elif previous is not None and previous not in known:
        yield f"after {line(previous)}, which is not listed here"


def diff_json(diff: CheckpointDiff, *, secrets: bool = False) -> dict[str, Any]:
    """Return a diff as JSON values."""

    def change_json(change: Any) -> dict[str, Any]:
        hidden = hides(change) and not secrets
        values = {
            name: MASK if hidden and value is not None else stored_form(value, secrets=secrets)
            for name, value in (("before", change.before), ("after", change.after))
        }
        return {"path": masked_path(change) if hidden else change.path, "op": change.op, **values}

    return {
        "before": info_json(diff.before, secrets=secrets),
        "after": info_json(diff.after, secrets=secrets),
        "changes": [change_json(change) for change in diff],
    }


def stored_form(value: object, *, secrets: bool = False) -> Any:
    """Return a value as it would be stored: plain values unchanged, others with a tag that names their kind."""
    plain = json.loads(to_json(value if secrets else mask_secrets(value)))
    return plain if secrets else mask_secrets(plain)  # again: stored fields have their names
