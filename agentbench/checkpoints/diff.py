"""The differences between two checkpoints of any storage, chain or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentbench._display import Displayable, call_view, drawn_by
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.changes import CheckpointChange
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import ENGINE_KEYS, GRAPH_SIGNATURE

_IN_STATE = {"_executor_state": "executors", "_fan_in_buffers": "fan_in_buffers"}
_OF_REQUESTS = ("source_executor_id", "data", "request_type", "response_type")
_BOOKKEEPING = {"trace_contexts", "source_span_ids", "_stamps"}


@drawn_by("agentbench.notebook.history.changes:diff_bundle")
@dataclass(frozen=True, slots=True, repr=False)
class CheckpointDiff(Displayable):
    """The differences between two checkpoints. Iterates over the changes; empty, and false, if there are none.

    `str()` returns one line per change, with secrets masked and long values cut; notebooks display a table.

    Attributes:
        before: The earlier checkpoint.
        after: The later checkpoint.
        changes: The changes, in the order of the compared parts.

    Example:
        >>> diff = diff_checkpoints(first, second)
        >>> grown = [change.path for change in diff if change.op == "added"]
        >>> print(diff if diff else "no difference")
    """

    before: CheckpointInfo
    after: CheckpointInfo
    changes: tuple[CheckpointChange, ...]

    def __iter__(self) -> Iterator[CheckpointChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, place: int) -> CheckpointChange:
        return self.changes[place]

    def __str__(self) -> str:
        text: str = call_view("agentbench._text.changes:diff_text", self)
        return text

    def __repr__(self) -> str:
        ids = f"{self.before.checkpoint_id!r}, {self.after.checkpoint_id!r}"
        return f"{type(self).__name__}({ids}, changes={len(self.changes)})"


def diff_checkpoints(
    a: WorkflowCheckpoint | Mapping[str, Any], b: WorkflowCheckpoint | Mapping[str, Any]
) -> CheckpointDiff:
    """Compare the contents of two checkpoints.

    The comparison includes the shared state (`state`), the executors' own state (`executors`), messages waiting at
    fan-ins (`fan_in_buffers`), queued messages (`messages`), open requests (`requests`), the superstep, the graph, and
    the caller's own metadata (`metadata`). It excludes ids, times and traces; they are in `before` and `after` of the
    result.

    Dicts are compared by key, objects by field, sets by member, lists of items with ids by id and all other lists in
    order. Types matter, NaN equals NaN. Values that cannot be compared count as changed, and never raise.

    Args:
        a: The earlier checkpoint, or its `to_dict()`.
        b: The later checkpoint, or its `to_dict()`. The two need not be related.

    Returns:
        The changes from `a` to `b`. Their values are those of the checkpoints, not copies.

    Raises:
        WorkflowCheckpointException: A dict is not the form of a checkpoint.
        TypeError: An argument is an id, an info or another object without contents.

    Example:
        >>> for change in diff_checkpoints(await storage.load(first), await storage.load(second)):
        ...     print(change)
    """
    before, after = map(_checkpoint, (a, b))
    same_graph = before.graph_signature_hash == after.graph_signature_hash
    old, new = (_comparable_parts(each, with_graph=not same_graph) for each in (before, after))
    changes = Comparison(_is_compared).changes(old, new)
    return CheckpointDiff(CheckpointInfo.of(before), CheckpointInfo.of(after), tuple(changes))


def _checkpoint(value: object) -> WorkflowCheckpoint:
    if isinstance(value, WorkflowCheckpoint):
        return value
    if isinstance(value, Mapping):
        return WorkflowCheckpoint.from_dict(value)
    msg = (
        f"diff_checkpoints() received a {type(value).__name__}; expected a WorkflowCheckpoint. Load both first "
        "(`await storage.load(checkpoint_id)`), or name them to agentbench.notebook.diff(a, b, source=storage)."
    )
    raise TypeError(msg)


def _comparable_parts(checkpoint: WorkflowCheckpoint, *, with_graph: bool) -> dict[str, Any]:
    apart = {section: checkpoint.state.get(key) or {} for key, section in _IN_STATE.items()}
    requests = checkpoint.pending_request_info_events
    return {
        "iteration_count": checkpoint.iteration_count,
        "version": checkpoint.version,
        "graph_signature_hash": checkpoint.graph_signature_hash,
        "graph": checkpoint.metadata.get(GRAPH_SIGNATURE, {}) if with_graph else {},
        "state": {key: value for key, value in checkpoint.state.items() if key not in _IN_STATE},
        **apart,
        "messages": checkpoint.messages,
        "requests": {request_id: _read_request(request) for request_id, request in requests.items()},
        "metadata": {key: value for key, value in checkpoint.metadata.items() if key not in ENGINE_KEYS},
    }


def _read_request(request: Any) -> Any:
    """Return the compared fields of a request; a request in another form is returned unchanged."""
    if not all(hasattr(type(request), name) for name in _OF_REQUESTS):
        return request
    return {name: getattr(request, name) for name in _OF_REQUESTS}


def _is_compared(cls: type, name: str) -> bool:
    return name not in _BOOKKEEPING or not cls.__module__.startswith("agentbench.")
