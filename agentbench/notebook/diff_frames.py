"""What differs between two checkpoints, as a data frame."""

from typing import TYPE_CHECKING, Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.checkpoints.guarded import load_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.notebook.diff_view import hides, shown_path
from agentbench.notebook.escaping import MASK
from agentbench.notebook.frame_columns import build_frame
from agentbench.notebook.frame_sources import Chosen
from agentbench.notebook.loop_bound import awaited
from agentbench.notebook.redaction import mask_secrets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Side", "diff_frame", "diff_of", "frame_of"]

Side = WorkflowCheckpoint | CheckpointInfo | str


def diff_of(a: Side, b: Side, source: Any) -> CheckpointDiff:
    """Compare two checkpoints, which are looked up where they are not at hand; see `diff_frame`."""
    return diff_checkpoints(_checkpoint(a, source), _checkpoint(b, source))


def diff_frame(a: Side, b: Side, *, source: Any = None, limit: int | None = None) -> "pd.DataFrame":
    """Tabulate what differs between two checkpoints, one row per differing path.

    Args:
        a: The checkpoint before, its info or its id.
        b: The checkpoint after, likewise.
        source: Where infos and ids are looked up: a storage, or a run or stepper that saves checkpoints.
        limit: At most so many rows, the last ones.

    Shapes:
        Index `path` string; columns `op` category (`added`, `removed`, `changed`, `reordered`), `before`, `after`
        object, `None` where nothing was. Secrets are masked. No difference: no rows, same columns.

    Raises:
        TypeError: A checkpoint has to be looked up, but `source` keeps none.
        WorkflowCheckpointException: An id is unknown.
    """
    return frame_of(diff_of(a, b, source), Chosen(limit=limit))


def frame_of(found: CheckpointDiff, chosen: Chosen) -> "pd.DataFrame":
    """Tabulate changes; see `diff_frame`."""
    rows = chosen.last(list(found))
    return build_frame(
        "diff",
        {
            "path": ("string", [shown_path(change) for change in rows]),
            "op": ("category", [change.op for change in rows]),
            "before": ("object", [_shown(change.before, hidden=hides(change)) for change in rows]),
            "after": ("object", [_shown(change.after, hidden=hides(change)) for change in rows]),
        },
        index=["path"],
        chosen=chosen,
        run_ids=(found.before.run_id, found.after.run_id),
    )


def _shown(value: object, *, hidden: bool) -> object:
    return MASK if hidden and value is not None else mask_secrets(value)


def _checkpoint(side: Side, source: Any) -> WorkflowCheckpoint:
    if isinstance(side, WorkflowCheckpoint):
        return side
    kept_by = getattr(source, "handle", source)  # of a stepper the run
    storage = kept_by if isinstance(kept_by, CheckpointStorage) else getattr(kept_by, "storage", None)
    if not isinstance(storage, CheckpointStorage):
        msg = (
            f"{side!r} has to be looked up, but source is {source!r}. "
            "Give the storage, or the run that saved it: source=storage."
        )
        raise TypeError(msg)
    checkpoint_id = side.checkpoint_id if isinstance(side, CheckpointInfo) else side
    return awaited(load_checkpoint(storage, checkpoint_id), storage)
