"""Another future from a saved point: a fork is a checkpoint of its own, and changes nothing that exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench._copying import isolate_or_same
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage, head_of, lineage, next_seq

_OF_ONE_SUPERSTEP = {keys.RUN_ID, keys.WRITERS, keys.DURATION_S}
"""What a fork does not take over: no run wrote it, no executor ran for it."""


async def fork_checkpoint(
    storage: CheckpointStorage,
    checkpoint_id: CheckpointID,
    *,
    workflow_name: str | None = None,
    state_updates: Mapping[str, Any] | None = None,
    messages: Mapping[str, Sequence[Any]] | None = None,
    with_history: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> CheckpointInfo:
    """Save an edited sibling of a checkpoint, from which a run can go on in another direction.

    The fork is a new checkpoint with a new id and the present time. It follows the original
    (`previous_checkpoint_id`), keeps its superstep number, its waiting messages and its open requests, and becomes the
    newest one of its chain. Its metadata are those of the original without what only one run or superstep has; its
    `source` is `fork`, with edits `update`, and `forked_from` names the original.

    Args:
        storage: Any; the original is there, and the fork goes there.
        checkpoint_id: The original.
        workflow_name: The chain that the fork joins; by default that of the original.
        state_updates: New values for keys of the state; the other keys stay.
        messages: Replaces the waiting messages, all of them: lists of `WorkflowMessage`s by the id of the sending
            executor.
        with_history: Copy what led to the original to the other chain first, so that this chain stands alone; the fork
            then follows the copy of the original. Nothing to do on the original's own chain.
        metadata: Added to that of the fork. `seq`, `source`, `forked_from` and `sizes` are always the fork's own.

    Returns:
        The fork, ready to be loaded or resumed from.

    Raises:
        TypeError: `messages` holds something other than lists.
        WorkflowCheckpointException: The original is unknown, or the fork cannot be saved; nothing was saved then.
    """
    for source, sent in (messages or {}).items():
        if isinstance(sent, (str, bytes)) or not isinstance(sent, Sequence):
            msg = f"messages of {source!r} are {sent!r}; expected a list of WorkflowMessages."
            raise TypeError(msg)
    original = isolate_or_same(await storage.load(checkpoint_id))
    chain = original.workflow_name if workflow_name is None else workflow_name
    seq = next_seq(await head_of(storage, chain))
    past: list[WorkflowCheckpoint] = []
    if with_history and chain != original.workflow_name:
        past = await _copied_history(storage, checkpoint_id, chain, seq)
    fork = WorkflowCheckpoint(
        chain,
        original.graph_signature_hash,
        previous_checkpoint_id=past[-1].checkpoint_id if past else checkpoint_id,
        messages=original.messages if messages is None else {key: list(sent) for key, sent in messages.items()},
        state={**original.state, **(state_updates or {})},
        pending_request_info_events=original.pending_request_info_events,
        iteration_count=original.iteration_count,
        version=original.version,
    )
    fork.metadata = {
        **{key: value for key, value in original.metadata.items() if key not in _OF_ONE_SUPERSTEP},
        **(metadata or {}),
        keys.SEQ: seq + len(past),
        keys.SOURCE: "update" if state_updates or messages is not None else "fork",
        keys.FORKED_FROM: checkpoint_id,
        keys.SIZES: {
            "messages": sum(map(len, fork.messages.values())),
            "requests": len(fork.pending_request_info_events),
        },
    }
    await _save_all(storage, [*past, fork])
    return CheckpointInfo.of(fork)


async def _copied_history(
    storage: CheckpointStorage, checkpoint_id: CheckpointID, chain: str, first_seq: int
) -> list[WorkflowCheckpoint]:
    """Make copies for another chain of what led to a checkpoint, it included, oldest first."""
    copies: list[WorkflowCheckpoint] = []
    previous: CheckpointID | None = None
    for place, info in enumerate(await lineage(storage, checkpoint_id)):
        content = isolate_or_same(await storage.load(info.checkpoint_id)).to_dict()
        del content["checkpoint_id"]
        copy = WorkflowCheckpoint.from_dict({**content, "workflow_name": chain, "previous_checkpoint_id": previous})
        copy.metadata = {**copy.metadata, keys.SEQ: first_seq + place, keys.FORKED_FROM: info.checkpoint_id}
        copies.append(copy)
        previous = copy.checkpoint_id
    return copies


async def _save_all(storage: CheckpointStorage, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
    saved: list[CheckpointID] = []
    try:
        for checkpoint in checkpoints:
            saved.append(await storage.save(checkpoint))  # noqa: PERF401  needed when a later one fails
    except BaseException:
        for checkpoint_id in saved:
            await storage.delete(checkpoint_id)
        raise
