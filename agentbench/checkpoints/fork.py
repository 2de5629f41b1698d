"""Forks: a fork is a new checkpoint from which a run can take another direction; nothing existing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench._clock import Clock, IdSource, iso_utc, runtime_defaults
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import (
    head_of,
    list_lineage,
    load_checkpoint,
    next_seq,
    save_one_by_one,
)
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager, require_storage
from agentbench.checkpoints.storage import CheckpointStorage

_OF_ONE_SUPERSTEP = {keys.RUN_ID, keys.WRITERS, keys.DURATION_S, keys.CODE_HASHES}
"""Metadata that a fork does not inherit, because no run wrote it and no executor ran for it."""


async def fork_checkpoint(  # noqa: PLR0913 - the published signature
    storage: CheckpointStorage | CheckpointManager,
    checkpoint_id: CheckpointID | CheckpointInfo,
    *,
    workflow_name: str | None = None,
    state_updates: Mapping[str, Any] | None = None,
    messages: Mapping[str, Sequence[Any]] | None = None,
    requests: Mapping[str, Any] | None = None,
    with_history: bool = False,
    metadata: Mapping[str, Any] | None = None,
    head_seq: int | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> CheckpointInfo:
    """Save an edited copy of a checkpoint, from which a run can continue in another direction.

    The fork has a new id and the current time. It follows the original (`previous_checkpoint_id`), keeps its superstep,
    messages and requests, and is the newest one of its chain. Its metadata is the original's without the entries of a
    single run; its `source` is `fork`, or `update` if there are edits, and `forked_from` is the original's id.

    Args:
        storage: Any storage; it holds the original and gets the fork.
        checkpoint_id: The original, by its id or its info.
        workflow_name: The chain of the fork; by default that of the original.
        state_updates: New values for keys of the state; the other keys stay.
        messages: Replaces all queued messages: lists of `WorkflowMessage`s by the id of the sending executor.
        requests: Replaces all open requests, by id.
        with_history: First copy the checkpoints that led to the original to the other chain, so that this chain is
            complete; the fork then follows the copy of the original. Has no effect on the original's own chain.
        metadata: Added to that of the fork. `seq`, `source`, `forked_from` and `sizes` are always the fork's own.
        head_seq: The number of the chain's newest checkpoint (0: an empty chain) as the caller knows it: the fork is
            saved only if that is still the newest. By default it is read when the call begins.
        clock: The source of its timestamp; by default the clock of the process.
        ids: The source of its id, and of those of copies; by default the ids of the process.

    Returns:
        The fork, ready to be loaded or resumed from.

    Raises:
        TypeError: `storage` is not a storage, or `messages` contains something other than lists.
        ValueError: `state_updates` contains a path into a value instead of a key.
        WorkflowCheckpointException: The original is unknown, or the fork cannot be saved; then nothing is saved.
        WorkflowBusyError: Another writer has saved to the chain in the meantime; then nothing is saved.

    Example:
        >>> fork = await fork_checkpoint(storage, info, workflow_name="what if", state_updates={"topic": "llamas"})
        >>> result = await workflow.run(checkpoint_id=fork.checkpoint_id, checkpoint_storage=storage)
    """
    storage = require_storage(storage)
    checkpoint_id = id_of(checkpoint_id)
    for source, sent in (messages or {}).items():
        if isinstance(sent, (str, bytes)) or not isinstance(sent, Sequence):
            msg = f"messages of {source!r} are {sent!r}; expected a list of WorkflowMessages."
            raise TypeError(msg)
    clock, ids = clock or runtime_defaults().clock, ids or runtime_defaults().ids
    original = await load_checkpoint(storage, checkpoint_id)
    # A path into a value would become a separate key, which no executor reads.
    for key in state_updates or ():
        whole = key.partition(".")[0]
        if key not in original.state and "." in key and isinstance(original.state.get(whole), Mapping):
            msg = (
                f"state_updates replaces whole keys, and the state has no key {key!r}, but a dict {whole!r}. "
                f"Pass the whole dict: state_updates={{{whole!r}: {{...}}}}."
            )
            raise ValueError(msg)
    chain = original.workflow_name if workflow_name is None else workflow_name
    seq = next_seq(await head_of(storage, chain)) if head_seq is None else head_seq + 1
    past: list[WorkflowCheckpoint] = []
    if with_history and chain != original.workflow_name:
        past = await _copy_history(storage, checkpoint_id, chain, seq, ids)
    fork = WorkflowCheckpoint(
        chain,
        original.graph_signature_hash,
        checkpoint_id=ids.new_id("cp"),
        timestamp=iso_utc(clock.time_ns()),
        previous_checkpoint_id=past[-1].checkpoint_id if past else checkpoint_id,
        messages=original.messages if messages is None else {key: list(sent) for key, sent in messages.items()},
        state={**original.state, **(state_updates or {})},
        pending_request_info_events=original.pending_request_info_events if requests is None else dict(requests),
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
    await save_one_by_one(storage, [*past, fork], seq - 1 if past or head_seq is not None else None)
    return CheckpointInfo.of(fork)


async def _copy_history(
    storage: CheckpointStorage, checkpoint_id: CheckpointID, chain: str, first_seq: int, ids: IdSource
) -> list[WorkflowCheckpoint]:
    """Copy the checkpoints that led to a checkpoint, including it, for another chain, oldest first."""
    copies: list[WorkflowCheckpoint] = []
    previous: CheckpointID | None = None
    for place, info in enumerate(await list_lineage(storage, checkpoint_id)):
        content = (await load_checkpoint(storage, info.checkpoint_id)).to_dict()
        links = {"workflow_name": chain, "checkpoint_id": ids.new_id("cp"), "previous_checkpoint_id": previous}
        copy = WorkflowCheckpoint(**{**content, **links})
        copy.metadata = {**copy.metadata, keys.SEQ: first_seq + place, keys.FORKED_FROM: info.checkpoint_id}
        copies.append(copy)
        previous = copy.checkpoint_id
    return copies
