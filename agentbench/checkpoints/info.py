"""Descriptions of checkpoints without their contents: cheap to list, and sufficient to load them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentbench._copying import isolate_or_same, register_frozen
from agentbench._display import Displayable, drawn_by
from agentbench._limits import require_limit
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.exceptions import CheckpointNotFoundError


@drawn_by("agentbench.notebook.cards.checkpoint:checkpoint_info_bundle")
@dataclass(frozen=True, slots=True, repr=False)
class CheckpointInfo(Displayable):
    """A description of a checkpoint without its contents: cheap to list, and sufficient to load or continue from it.

    `list_infos` returns infos, and `checkpoint_saved` events carry them. Two are equal if they name the same
    checkpoint.
    `CheckpointInfo.of(checkpoint)` describes a loaded checkpoint.

    Attributes:
        workflow_name: The chain to which it belongs.
        checkpoint_id: Its id, by which a storage loads it.
        iteration: The number of the superstep after which it was saved, from 0; -1 before it (`save_input`).
        timestamp: The creation time: ISO 8601, UTC.
        previous_checkpoint_id: The checkpoint from which the run continued.
        seq: The position in the chain, from 1; 0 if it was saved without one.
        source: The reason for saving it, one of `agentbench.checkpoints.metadata.CheckpointSource`.
        run_id: The run that wrote it.
        graph_signature_hash: Identifies the graph that created it.
        n_messages: The number of messages queued for the next superstep.
        n_requests: The number of open requests.
        size_bytes: The number of bytes newly written for it; 0 if nothing is written.
        writers: Ids of the executors that ran in the superstep.
        forked_from: The checkpoint from which it was forked.
        metadata: The checkpoint's metadata; do not change it. It excludes the readable graph signature, which only the
            checkpoint has.

    Example:
        >>> infos = await list_infos(storage, workflow_name="report")
        >>> before_review = next(info for info in infos if "review" in info.writers)
        >>> result = await workflow.run(checkpoint_id=before_review.checkpoint_id, checkpoint_storage=storage)
    """

    workflow_name: str
    checkpoint_id: CheckpointID
    iteration: int = field(compare=False)
    timestamp: str = field(compare=False)
    previous_checkpoint_id: CheckpointID | None = field(default=None, compare=False, kw_only=True)
    seq: int = field(default=0, compare=False, kw_only=True)
    source: str = field(default="step", compare=False, kw_only=True)
    run_id: str | None = field(default=None, compare=False, kw_only=True)
    graph_signature_hash: str | None = field(default=None, compare=False, kw_only=True)
    n_messages: int = field(default=0, compare=False, kw_only=True)
    n_requests: int = field(default=0, compare=False, kw_only=True)
    size_bytes: int = field(default=0, compare=False, kw_only=True)
    writers: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    forked_from: CheckpointID | None = field(default=None, compare=False, kw_only=True)
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False, kw_only=True)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.checkpoint_id!r}, workflow_name={self.workflow_name!r}, "
            f"iteration={self.iteration}, seq={self.seq}, source={self.source!r})"
        )

    @classmethod
    def of(cls, checkpoint: WorkflowCheckpoint, *, own_metadata: bool = False) -> CheckpointInfo:
        """Describe a checkpoint; metadata that will not change (`own_metadata`) is not copied."""
        metadata = checkpoint.metadata
        own = {key: value for key, value in metadata.items() if key != keys.GRAPH_SIGNATURE}
        sizes = metadata.get(keys.SIZES)
        return cls(
            checkpoint.workflow_name,
            checkpoint.checkpoint_id,
            checkpoint.iteration_count,
            checkpoint.timestamp,
            previous_checkpoint_id=checkpoint.previous_checkpoint_id,
            seq=_seq_of(metadata),
            source=metadata.get(keys.SOURCE, "step"),
            run_id=metadata.get(keys.RUN_ID),
            graph_signature_hash=checkpoint.graph_signature_hash,
            n_messages=sum(map(len, checkpoint.messages.values())),
            n_requests=len(checkpoint.pending_request_info_events),
            size_bytes=sizes.get("bytes", 0) if isinstance(sizes, Mapping) else 0,
            writers=writers_of(metadata),
            forked_from=metadata.get(keys.FORKED_FROM),
            metadata=own if own_metadata else isolate_or_same(own),
        )


register_frozen(CheckpointInfo)


def _seq_of(metadata: Mapping[str, Any]) -> int:
    """Return the sequence number, or 0 for a checkpoint that was saved without one."""
    seq = metadata.get(keys.SEQ)
    return seq if isinstance(seq, int) and seq > 0 else 0


def writers_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the executors that ran, or none if the caller stores something else under the key."""
    writers = metadata.get(keys.WRITERS)
    return tuple(writers) if isinstance(writers, (list, tuple)) else ()


def checkpoint_order(item: WorkflowCheckpoint | CheckpointInfo) -> tuple[int, str]:
    """Return the key that sorts a chain, oldest first: by sequence number, since clocks may go back, then by time."""
    seq = item.seq if isinstance(item, CheckpointInfo) else _seq_of(item.metadata)
    return seq, _comparable_time(item.timestamp)


def _comparable_time(timestamp: str) -> str:
    if len(timestamp) == 32 and timestamp.endswith("+00:00"):
        return timestamp
    try:
        time = datetime.fromisoformat(timestamp)
    except ValueError:  # written by another program
        return timestamp
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.isoformat(timespec="microseconds")


def select_infos(
    infos: Sequence[CheckpointInfo],
    *,
    run_id: str | None = None,
    before: CheckpointID | None = None,
    limit: int | None = None,
) -> list[CheckpointInfo]:
    """Select infos for `list_infos`, oldest first; for storages that have all of them in memory."""
    require_limit("limit", limit, none="all")
    if before is not None:
        ids = [info.checkpoint_id for info in infos]
        if before not in ids:
            raise CheckpointNotFoundError(before)
        infos = infos[: ids.index(before)]
    if run_id is not None:
        infos = [info for info in infos if info.run_id == run_id]
    return list(infos if limit is None else infos[max(0, len(infos) - limit) :])
