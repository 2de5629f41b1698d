"""The differences between two checkpoints as lines of text; secrets masked, everything escaped."""

import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from agentbench._secrets import is_secret_name, mask_secrets
from agentbench._text.escape import MASK, esc
from agentbench._text.redact import preview
from agentbench.checkpoints.difference.changes import CheckpointChange, path_text
from agentbench.workflows.executors.message import WorkflowMessage

SIGNS = {"added": "+", "removed": "-", "changed": "~", "reordered": ">"}
_LINE_LIMIT = 80
_CONTEXT = 20


def hides(change: CheckpointChange) -> bool:
    """Whether a key on the path of a change is the name of a secret."""
    return any(map(is_secret_name, change.keys))


def masked_path(change: CheckpointChange) -> str:
    """Return the path of a change, cut after the name of a secret, because keys below it may be secret too."""
    secret = next((place for place, key in enumerate(change.keys) if is_secret_name(key)), None)
    return change.path if secret is None else path_text(change.keys[: secret + 1])


def values_of(change: CheckpointChange) -> tuple[object, object]:
    """Return both values of a change; a request or a message is represented by its data."""
    is_request = change.op != "changed" and len(change.keys) == 2 and change.keys[0] == "requests"
    return _content_of(change.before, is_request), _content_of(change.after, is_request)


def _content_of(value: object, is_request: bool) -> object:
    if isinstance(value, WorkflowMessage):  # the sender is in the path
        return value.data
    if isinstance(value, list) and any(isinstance(each, WorkflowMessage) for each in value):
        return [_content_of(each, is_request) for each in value]
    return value["data"] if is_request and isinstance(value, dict) and "data" in value else value


def diff_text(diff: Any, *, limit: int | None = None, secrets: bool = False) -> str:
    """Return a `CheckpointDiff` as text: a line per checkpoint and a line per change, up to `limit`."""
    lines = [f"CheckpointDiff: {counts(diff)}", *(f"  {side:6}  {text}" for side, text in checkpoints_of(diff))]
    lines += (change_line(change, secrets=secrets) for change in diff.changes[:limit])
    if limit is not None and len(diff) > limit:
        lines.append(f"… {len(diff) - limit:,} more")
    return "\n".join(lines)


def counts(diff: Any) -> str:
    """Return the number of changes of each kind, in words."""
    counts = Counter(change.op for change in diff)
    return ", ".join(f"{counts[op]:,} {op}" for op in SIGNS if counts[op]) or "no difference"


def change_line(change: CheckpointChange, *, secrets: bool = False) -> str:
    """Return a change as one line, such as `+ state.conv[12] = 'x'`."""
    values, start = values_of(change), 0
    old, new = values
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > _LINE_LIMIT:
        start = max(0, same_start(old, new) - _CONTEXT)  # so that the first difference is visible
    before, after = (short_value(value, secrets=secrets, start=start) for value in values)
    if hides(change) and not secrets:
        before = after = MASK
    path = esc(change.path if secrets else masked_path(change), into="line", limit=None)
    if change.op in ("added", "removed"):
        return f"{SIGNS[change.op]} {path} = {after if change.op == 'added' else before}"
    return f"{SIGNS[change.op]} {path}: {'reordered ' if change.op == 'reordered' else ''}{before} -> {after}"


def same_start(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the length of the common start."""
    shorter = min(len(before), len(after))
    return next((at for at in range(shorter) if before[at] != after[at]), shorter)


def short_value(value: object, *, limit: int = _LINE_LIMIT, secrets: bool = False, start: int = 0) -> str:
    """Return a value as one line, cut with `…`; texts are quoted."""
    value = value if secrets else mask_secrets(value)
    if isinstance(value, str):
        text, value = repr(value[start : start + limit]), value[start:]
        text = f"{'…' if start else ''}{text}{'…' if len(value) > limit else ''}"
    else:
        text = _Unmasked(limit).repr(value) if secrets else preview(value, limit=limit)
        text = text if len(text) <= limit else text[:limit] + "…"
    return esc(text, into="line", limit=None)


class _Unmasked(reprlib.Repr):
    """`repr` that stops early on large values."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = self.maxlong = limit


def checkpoints_of(diff: Any) -> Iterator[tuple[str, str]]:
    """Yield `before` and `after`, each with a line about its checkpoint."""
    for side, info in (("before", diff.before), ("after", diff.after)):
        facts = f"{info.checkpoint_id}  chain {info.workflow_name}, superstep {info.iteration}, {info.timestamp}"
        yield side, esc(facts, into="line", limit=400)
