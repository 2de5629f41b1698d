"""What a checkpoint is, without what it holds: cheap to list, enough to load it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbench._copying import isolate_or_same, register_frozen
from agentbench._display import Displayable, drawn_by
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint


@drawn_by("agentbench.notebook.views:checkpoint_info_bundle")
@dataclass(frozen=True, slots=True, repr=False)
class CheckpointInfo(Displayable):
    """A checkpoint as lists, events and pictures show it. Equal to another one if both name the same checkpoint.

    Attributes:
        workflow_name: The chain that it is part of.
        checkpoint_id: Its id; what a storage loads it by.
        iteration: Number of the superstep.
        timestamp: When it was made: ISO 8601, UTC.
        previous_checkpoint_id: The checkpoint that the run went on from.
        seq: Place in the chain, from 1; 0 if it was saved without one.
        source: Why it was made, one of `agentbench.checkpoints.metadata.CheckpointSource`.
        run_id: The run that wrote it.
        graph_signature_hash: Identifies the graph that made it.
        n_messages: How many messages wait for the next superstep.
        n_requests: How many requests wait for an answer.
        size_bytes: How many bytes were newly written for it; 0 where nothing is written.
        writers: Ids of the executors that ran in the superstep.
        forked_from: The checkpoint that it was forked from.
        metadata: The checkpoint's metadata, not to be changed. The readable graph signature is not in it, only in the
            checkpoint.
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
        """Describe a checkpoint.

        Args:
            checkpoint: Any; it is not changed, and later changes of it do not reach the description.
            own_metadata: Its metadata are not changed by anybody any more, so that they need no copy.
        """
        found = checkpoint.metadata
        shown = {key: value for key, value in found.items() if key != keys.GRAPH_SIGNATURE}
        sizes = found.get(keys.SIZES)
        return cls(
            checkpoint.workflow_name,
            checkpoint.checkpoint_id,
            checkpoint.iteration_count,
            checkpoint.timestamp,
            previous_checkpoint_id=checkpoint.previous_checkpoint_id,
            seq=keys.seq_of(found),
            source=found.get(keys.SOURCE, "step"),
            run_id=found.get(keys.RUN_ID),
            graph_signature_hash=checkpoint.graph_signature_hash,
            n_messages=sum(map(len, checkpoint.messages.values())),
            n_requests=len(checkpoint.pending_request_info_events),
            size_bytes=sizes.get("bytes", 0) if isinstance(sizes, Mapping) else 0,
            writers=keys.writers_of(found),
            forked_from=found.get(keys.FORKED_FROM),
            metadata=shown if own_metadata else isolate_or_same(shown),
        )


register_frozen(CheckpointInfo)
