"""Migrates a checkpoint to another graph; converts the messages in agent-framework's checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from agentbench._clock import Clock, IdSource, iso_utc, runtime_defaults
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import head_of, load_checkpoint, next_seq, save_at_head, save_checkpoint
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager, require_storage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, WorkflowMessage, internal_source
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import buffer_key
from agentbench.workflows.persist.snapshot import EXECUTOR_STATE, FAN_IN_BUFFERS

_OF_ONE_SUPERSTEP = (keys.RUN_ID, keys.WRITERS, keys.DURATION_S)


async def migrate_checkpoint(
    storage: CheckpointStorage | CheckpointManager,
    checkpoint: CheckpointInfo | str,
    graph: Graph,
    *,
    workflow_name: str | None = None,
    head_seq: int | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> tuple[CheckpointInfo, list[str]]:
    """Save a copy without the parts that this graph lacks, unless it fits; return it, with a line per dropped part.

    `workflow_name` is the chain that gets the copy; by default the workflow's own. For `head_seq` see
    `fork_checkpoint`.

    Raises:
        WorkflowBusyError: Another writer has saved to the chain in the meantime; nothing was saved.
    """
    storage = require_storage(storage)
    clock, ids = clock or runtime_defaults().clock, ids or runtime_defaults().ids
    original = await load_checkpoint(storage, id_of(checkpoint))
    original.require_known_version()
    if original.graph_signature_hash == graph.signature_hash:
        return CheckpointInfo.of(original), []
    content, left_out = split_by_graph(original, graph)
    chain = workflow_name or graph.name
    seq = next_seq(await head_of(storage, chain)) if head_seq is None else head_seq + 1
    copy = copy_for(original, graph, content, chain, seq, ids.new_id("cp"), iso_utc(clock.time_ns()))
    await (save_at_head if head_seq is None else save_checkpoint)(storage, copy, seq - 1)
    return CheckpointInfo.of(copy), left_out


def copy_for(
    original: WorkflowCheckpoint,
    graph: Graph,
    content: Mapping[str, Any],
    chain: str,
    seq: int,
    checkpoint_id: CheckpointID,
    timestamp: str,
) -> WorkflowCheckpoint:
    """Return the checkpoint of another graph that follows an original."""
    copy = WorkflowCheckpoint(
        chain,
        graph.signature_hash,
        checkpoint_id=checkpoint_id,
        timestamp=timestamp,
        previous_checkpoint_id=original.checkpoint_id,
        iteration_count=original.iteration_count,
        version=original.version,
        **content,
    )
    copy.metadata = {
        **{key: value for key, value in original.metadata.items() if key not in _OF_ONE_SUPERSTEP},
        keys.SEQ: seq,
        keys.SOURCE: "update",
        keys.FORKED_FROM: original.checkpoint_id,
        keys.GRAPH_SIGNATURE: graph.signature,
        keys.SIZES: {
            "messages": sum(map(len, copy.messages.values())),
            "requests": len(copy.pending_request_info_events),
        },
    }
    return copy


def split_by_graph(original: WorkflowCheckpoint, graph: Graph) -> tuple[dict[str, Any], list[str]]:
    """Return the parts of a checkpoint for which a graph has executors and edges, and a line for each other part."""
    executors = graph.executors
    senders = {source for group in graph.edge_groups for source in group.source_executor_ids}
    senders |= {WORKFLOW_SOURCE, *map(internal_source, executors)}
    left_out: list[str] = []
    messages = {}
    for source, queued in original.messages.items():
        if source in senders:
            messages[source] = queued
        else:
            noun = "message" if len(queued) == 1 else "messages"
            left_out.append(f"left out: {len(queued):,} {noun} of {source!r}, which has no outgoing edge here")
    requests = dict(original.pending_request_info_events)
    for request_id, event in original.pending_request_info_events.items():
        if event.source_executor_id not in executors:
            del requests[request_id]
            left_out.append(f"left out: request {request_id!r} of {event.source_executor_id!r}, which is not there")
    state = dict(original.state)
    fan_ins = {buffer_key(group) for group in graph.edge_groups if isinstance(group, FanInEdgeGroup)}
    parts: tuple[tuple[str, Collection[str], str], ...] = (
        (EXECUTOR_STATE, executors, "the state of executor"),
        (FAN_IN_BUFFERS, fan_ins, "messages that wait at fan-in"),
    )
    for key, names, what in parts:
        if key in state:
            left_out += [f"left out: {what} {name!r}, which is not there" for name in state[key] if name not in names]
            state[key] = {name: value for name, value in state[key].items() if name in names}
    return {"state": state, "messages": messages, "pending_request_info_events": requests}, left_out


_REQUEST: Final = ("request_id", "source_executor_id", "request_type", "response_type")


class ForeignMessage(WorkflowMessage):
    """Becomes a plain message as soon as its attributes are set."""

    __slots__ = ()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes of their message; the names are the same as ours."""
        WorkflowMessage.__init__(self, **state)
        self.__class__ = WorkflowMessage  # type: ignore[assignment]


class ForeignEvent(WorkflowEvent[Any]):
    """Becomes a plain event as soon as its attributes are set."""

    __slots__ = ()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes of their event; except for requests, the names are the same as ours."""
        fields = {(name[1:] if name[1:] in _REQUEST else name): value for name, value in state.items()}
        WorkflowEvent.__init__(self, **fields)
        self.__class__ = WorkflowEvent  # type: ignore[assignment]
