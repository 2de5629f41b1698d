"""The differences between two checkpoints or two runs as data frames."""

from typing import TYPE_CHECKING, Any

from agentbench._secrets import mask_secrets
from agentbench._text.changes import hides, masked_path
from agentbench._text.escape import MASK
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.frames.columns import build_frame
from agentbench.notebook.history.compare import RunComparison
from agentbench.notebook.history.sources import Chosen, find_storage, run_on_engine

if TYPE_CHECKING:
    import pandas as pd

Side = WorkflowCheckpoint | CheckpointInfo | str


def diff_of(a: Side, b: Side, source: Any) -> CheckpointDiff:
    """Compare two checkpoints; infos and ids are loaded from the source. See `diff_frame`."""
    return diff_checkpoints(_checkpoint(a, source), _checkpoint(b, source))


def diff_frame(a: Side, b: Side, *, source: Any = None, limit: int | None = None, full: bool = False) -> "pd.DataFrame":
    """Tabulate the differences between two checkpoints, one row per differing path.

    Args:
        a: The earlier checkpoint, its info or its id.
        b: The later checkpoint, its info or its id.
        source: A storage, or a run or stepper that saves checkpoints; needed for infos and ids.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns.

    Shapes:
        Index `path` string; columns `op` category (`added`, `removed`, `changed`, `reordered`), `before`, `after`
        object, `None` for a missing value. Secrets are masked. No difference: no rows, same columns.

    Raises:
        TypeError: A side is an info or an id, but `source` does not store checkpoints.
        WorkflowCheckpointException: An id is unknown.

    Example:
        diff_frame("cp-0001", "cp-0002", source=storage)
    """
    return frame_of(diff_of(a, b, source), Chosen(limit=limit), full=full)


def frame_of(found: CheckpointDiff, chosen: Chosen, *, full: bool = False) -> "pd.DataFrame":
    """Tabulate changes; see `diff_frame`."""
    rows = chosen.last(list(found))
    return build_frame(
        "diff",
        {
            "path": ("string", [masked_path(change) for change in rows]),
            "op": ("category", [change.op for change in rows]),
            "before": ("object", [_mask_value(change.before, hidden=hides(change)) for change in rows]),
            "after": ("object", [_mask_value(change.after, hidden=hides(change)) for change in rows]),
        },
        index=["path"],
        chosen=chosen,
        full=full,
        run_ids=(found.before.run_id, found.after.run_id),
    )


def comparison_frame(found: RunComparison) -> "pd.DataFrame":
    """Tabulate the differences between two runs, one row per part of a superstep."""
    rows = found.rows
    return build_frame(
        "compare",
        {
            "superstep": ("int64", [row.superstep for row in rows]),
            "part": ("string", [row.part for row in rows]),
            "kind": ("category", [row.kind for row in rows]),
            "op": ("category", [row.op for row in rows]),
            "a": ("string", [row.a or None for row in rows]),
            "b": ("string", [row.b or None for row in rows]),
        },
        index=["superstep", "part"],
        chosen=Chosen(),
        full=True,
        run_ids=(found.a.name, found.b.name),
    )


def _mask_value(value: object, *, hidden: bool) -> object:
    return MASK if hidden and value is not None else mask_secrets(value)


def _checkpoint(side: Side, source: Any) -> WorkflowCheckpoint:
    if isinstance(side, WorkflowCheckpoint):
        return side
    storage = find_storage(source)
    if storage is None:
        msg = (
            f"{side!r} must be loaded, but source is {source!r}. "
            "Pass the storage, or the run that saved it: source=storage."
        )
        raise TypeError(msg)
    checkpoint_id = side.checkpoint_id if isinstance(side, CheckpointInfo) else side
    return run_on_engine(load_checkpoint(storage, checkpoint_id), storage)
