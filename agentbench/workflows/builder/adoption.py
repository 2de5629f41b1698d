"""Going on from a checkpoint of another graph, where somebody insists: a copy with what this graph has places for.

The original is never changed. What has no place any more is left out, and told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbench._clock import Clock, IdSource, iso_utc, runtime_defaults
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import head_of, id_of, load_checkpoint, next_seq, save_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager, require_storage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, internal_source
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup
from agentbench.workflows.graph.routing import buffer_key
from agentbench.workflows.persist.writer import EXECUTOR_STATE, FAN_IN_BUFFERS

if TYPE_CHECKING:
    from agentbench.workflows.run.workflow import Workflow

__all__ = ["adopt_checkpoint", "without_place"]

_OF_ONE_SUPERSTEP = (keys.RUN_ID, keys.WRITERS, keys.DURATION_S)


async def adopt_checkpoint(
    storage: CheckpointStorage | CheckpointManager,
    checkpoint: CheckpointInfo | str,
    workflow: Workflow,
    *,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> tuple[CheckpointInfo, list[str]]:
    """Save a copy of a checkpoint from which a workflow with another graph can go on.

    The shared state is kept. Left out are waiting messages of senders, own states and requests of executors, and
    fan-ins that this graph does not have. Nothing is saved where the graph fits as it is.

    Args:
        storage: Where the checkpoint is, and where the copy goes.
        checkpoint: The original, by its id or its info.
        workflow: What is to go on from it.
        clock: Gives the time of the copy; by default the clock of the process.
        ids: Gives its id; by default the ids of the process.

    Returns:
        What to resume from, and one line for each thing that was left out.

    Raises:
        WorkflowCheckpointException: The original is unknown or of an unknown format, or the copy cannot be saved.
    """
    storage = require_storage(storage)
    clock, ids = clock or runtime_defaults().clock, ids or runtime_defaults().ids
    original = await load_checkpoint(storage, id_of(checkpoint))
    original.require_known_version()
    if original.graph_signature_hash == workflow.graph_signature_hash:
        return CheckpointInfo.of(original), []
    content, told = without_place(original, workflow)
    chain = workflow.name
    copy = WorkflowCheckpoint(
        chain,
        workflow.graph_signature_hash,
        checkpoint_id=ids.new_id("cp"),
        timestamp=iso_utc(clock.time_ns()),
        previous_checkpoint_id=original.checkpoint_id,
        iteration_count=original.iteration_count,
        version=original.version,
        **content,
    )
    copy.metadata = {
        **{key: value for key, value in original.metadata.items() if key not in _OF_ONE_SUPERSTEP},
        keys.SEQ: next_seq(await head_of(storage, chain)),
        keys.SOURCE: "update",
        keys.FORKED_FROM: original.checkpoint_id,
        keys.GRAPH_SIGNATURE: workflow.graph_signature,
        keys.SIZES: {
            "messages": sum(map(len, copy.messages.values())),
            "requests": len(copy.pending_request_info_events),
        },
    }
    await save_checkpoint(storage, copy)
    return CheckpointInfo.of(copy), told


def without_place(original: WorkflowCheckpoint, workflow: Workflow) -> tuple[dict[str, Any], list[str]]:
    """What of a checkpoint a graph has places for: `state`, `messages` and requests; and what is left out, in words."""
    told: list[str] = []
    known = workflow.executors
    senders = {source for group in workflow.edge_groups for source in group.source_executor_ids}
    senders |= {WORKFLOW_SOURCE, *map(internal_source, known)}
    messages = {}
    for source, queued in original.messages.items():
        if source in senders:
            messages[source] = queued
        else:
            told.append(f"left out: {_counted(len(queued), 'message')} of {source!r}, which sends to nobody here")
    requests = {}
    for request_id, event in original.pending_request_info_events.items():
        if event.source_executor_id in known:
            requests[request_id] = event
        else:
            told.append(f"left out: request {request_id!r} of {event.source_executor_id!r}, which is not there")
    state = dict(original.state)
    fan_ins = {buffer_key(group) for group in workflow.edge_groups if isinstance(group, FanInEdgeGroup)}
    _keep_known(state, EXECUTOR_STATE, known, "the own state of executor {!r}, which is not there", told)
    _keep_known(state, FAN_IN_BUFFERS, dict.fromkeys(fan_ins), "what waits at fan-in {!r}, which is not there", told)
    return {"state": state, "messages": messages, "pending_request_info_events": requests}, told


def _keep_known(state: dict[str, Any], key: str, known: Mapping[str, Any], what: str, told: list[str]) -> None:
    if key not in state:
        return
    told += [f"left out: {what.format(each)}" for each in state[key] if each not in known]
    state[key] = {each: value for each, value in state[key].items() if each in known}


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
