"""Another future from a saved point: a fork is a checkpoint of its own, and changes nothing that exists."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from agentbench._clock import Clock, IdSource, iso_utc, runtime_defaults
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import (
    checkpoint_error,
    head_of,
    lineage,
    load_checkpoint,
    next_seq,
    save_at_head,
    save_checkpoint,
)
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager, require_storage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException

_OF_ONE_SUPERSTEP = {keys.RUN_ID, keys.WRITERS, keys.DURATION_S}
"""What a fork does not take over: no run wrote it, no executor ran for it."""


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
    """Save an edited sibling of a checkpoint, from which a run can go on in another direction.

    The fork has a new id and the present time, follows the original (`previous_checkpoint_id`) and keeps its superstep,
    messages and requests; it is the newest one of its chain. Its metadata are the original's without what only one run
    has; its `source` is `fork`, with edits `update`, and `forked_from` names the original.

    Args:
        storage: Any; the original is there, and the fork goes there.
        checkpoint_id: The original, by its id or its info.
        workflow_name: The chain that the fork joins; by default that of the original.
        state_updates: New values for keys of the state; the other keys stay.
        messages: Replaces the waiting messages, all of them: lists of `WorkflowMessage`s by the id of the sending
            executor.
        requests: Replaces the open requests, all of them, by id.
        with_history: Copy what led to the original to the other chain first, so that this chain is complete; the fork
            then follows the copy of the original. Nothing to do on the original's own chain.
        metadata: Added to that of the fork. `seq`, `source`, `forked_from` and `sizes` are always the fork's own.
        head_seq: The number of the chain's newest checkpoint (0: an empty chain) as the caller knows it: the fork is
            saved only if that is still the newest. By default it is read when the call begins.
        clock: Gives its timestamp; by default the clock of the process.
        ids: Gives its id, and those of copies; by default the ids of the process.

    Returns:
        The fork, ready to be loaded or resumed from.

    Raises:
        TypeError: `storage` is none, or `messages` holds something other than lists.
        ValueError: `state_updates` has a path into a value instead of a key.
        WorkflowCheckpointException: The original is unknown, or the fork cannot be saved; nothing was saved then.
        WorkflowBusyError: Another writer has saved to the chain since; nothing was saved then.

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
    # What resembles a path into a value would become a key of its own, which no executor reads.
    for key in state_updates or ():
        whole = key.partition(".")[0]
        if key not in original.state and "." in key and isinstance(original.state.get(whole), Mapping):
            msg = (
                f"state_updates replaces whole keys, and the state has no key {key!r}, but a dict {whole!r}. "
                f"Give all of it: state_updates={{{whole!r}: {{...}}}}."
            )
            raise ValueError(msg)
    chain = original.workflow_name if workflow_name is None else workflow_name
    seq = next_seq(await head_of(storage, chain)) if head_seq is None else head_seq + 1
    past: list[WorkflowCheckpoint] = []
    if with_history and chain != original.workflow_name:
        past = await _copied_history(storage, checkpoint_id, chain, seq, ids)
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
    await _save_all(storage, [*past, fork], is_strict=bool(past) or head_seq is not None)
    return CheckpointInfo.of(fork)


async def _copied_history(
    storage: CheckpointStorage, checkpoint_id: CheckpointID, chain: str, first_seq: int, ids: IdSource
) -> list[WorkflowCheckpoint]:
    """Make copies for another chain of what led to a checkpoint, it included, oldest first."""
    copies: list[WorkflowCheckpoint] = []
    previous: CheckpointID | None = None
    for place, info in enumerate(await lineage(storage, checkpoint_id)):
        content = (await load_checkpoint(storage, info.checkpoint_id)).to_dict()
        links = {"workflow_name": chain, "checkpoint_id": ids.new_id("cp"), "previous_checkpoint_id": previous}
        copy = WorkflowCheckpoint(**{**content, **links})
        copy.metadata = {**copy.metadata, keys.SEQ: first_seq + place, keys.FORKED_FROM: info.checkpoint_id}
        copies.append(copy)
        previous = copy.checkpoint_id
    return copies


async def _save_all(storage: CheckpointStorage, checkpoints: Sequence[WorkflowCheckpoint], *, is_strict: bool) -> None:
    saved: list[CheckpointID] = []
    save = save_checkpoint if is_strict else save_at_head
    try:
        for checkpoint in checkpoints:
            saved.append(checkpoint.checkpoint_id)  # before: it may have arrived although the save fails
            await save(storage, checkpoint, checkpoint.metadata[keys.SEQ] - 1)
    except BaseException as error:
        for checkpoint_id in saved:
            with contextlib.suppress(Exception):  # what made the save fail is what matters
                await storage.delete(checkpoint_id)
        if isinstance(error, Exception) and not isinstance(error, (WorkflowCheckpointException, WorkflowBusyError)):
            raise checkpoint_error(error, f"The fork {checkpoints[-1].checkpoint_id!r} was not saved") from error
        raise
