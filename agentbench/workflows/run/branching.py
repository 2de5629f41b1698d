"""How a fork differs from its origin: edited messages, the event that reports them, and the checkpoints before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._copying import isolate_or_same
from agentbench._secrets import masked_repr
from agentbench._signatures import type_name
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, MessageType, WorkflowMessage
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup
from agentbench.workflows.persist.graph_changes import require_fitting

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.executors.options import RunOptions
    from agentbench.workflows.graph.graph import Graph


async def branch_off(
    storage: CheckpointStorage,
    origin_id: str,
    graph: Graph,
    options: RunOptions,
    state_updates: Mapping[str, Any] | None,
    messages: Mapping[str, Sequence[Any]] | None,
) -> tuple[CheckpointInfo, WorkflowEvent[Any] | None]:
    """Save an edited copy of a checkpoint; return it and the event that reports the edits; see `WorkflowRun.fork`."""
    original = await load_checkpoint(storage, origin_id)
    require_fitting(graph, original)
    queued = None if messages is None else _queue_messages(messages, graph)
    copied = await fork_checkpoint(
        storage,
        origin_id,
        workflow_name=options.chain,
        state_updates=state_updates,
        messages=queued,
        clock=options.clock,
        ids=options.ids,
    )
    is_edited = state_updates or queued is not None
    return copied, _edit_event(original, state_updates or {}, queued) if is_edited else None


def _queue_messages(messages: Mapping[str, Sequence[Any]], graph: Graph) -> dict[str, list[WorkflowMessage]]:
    """Return values as messages of their source, by source id, after checking that each can be delivered."""
    sources = {s for group in graph.edge_groups for s in group.source_executor_ids} | {WORKFLOW_SOURCE}
    queued = {}
    for source, values in messages.items():
        if source not in sources:
            msg = f"messages name the source {source!r}, which has no outgoing edge; expected one of {sorted(sources)}."
            raise ValueError(msg)
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            msg = f"messages of {source!r} are {values!r}; expected a list, such as [{values!r}]."
            raise TypeError(msg)
        queued[source] = [v if isinstance(v, WorkflowMessage) else WorkflowMessage(v, source) for v in values]
        _require_handlers(source, queued[source], graph)
    return queued


def _edit_event(
    original: WorkflowCheckpoint,
    state_updates: Mapping[str, Any],
    messages: Mapping[str, Sequence[WorkflowMessage]] | None,
) -> WorkflowEvent[Any]:
    """Return the event that reports a person's changes: before and after, by `state.KEY` and `messages.SOURCE`."""
    changes = {
        f"state.{key}": {"before": original.state.get(key), "after": isolate_or_same(value)}
        for key, value in state_updates.items()
    }
    if messages is not None:
        for source in dict.fromkeys([*original.messages, *messages]):
            before, after = ([m.data for m in queues.get(source, ())] for queues in (original.messages, messages))
            changes[f"messages.{source}"] = {"before": before, "after": isolate_or_same(after)}
    return WorkflowEvent("state_edited", changes)


def _require_handlers(source: str, messages: Sequence[WorkflowMessage], graph: Graph) -> None:
    """Reject a value for which no executor after the source has a handler, since it would be dropped."""
    groups = [group for group in graph.edge_groups if source in group.source_executor_ids]
    targets = {
        executor_id: graph.executors[executor_id]
        for executor_id in ([i for group in groups for i in group.target_executor_ids] or graph.start_executor_ids)
    }
    gathered = any(isinstance(group, FanInEdgeGroup) for group in groups)
    for message in messages:
        if message.type is not MessageType.STANDARD:  # a response, which is delivered by its request
            continue
        forms = [message.data, [message.data]] if gathered else [message.data]
        receivers = [executor for executor in targets.values() if message.target_id in (None, executor.id)]
        if not any(executor.find_handler(form) is not None for executor in receivers for form in forms):
            takes = "; ".join(
                f"{executor_id!r} takes {', '.join(map(type_name, executor.input_types)) or 'nothing'}"
                for executor_id, executor in targets.items()
            )
            held = f"{masked_repr(message.data)}, of type {type(message.data).__name__}"
            msg = f"messages of {source!r} hold {held}, but {takes}."
            raise ValueError(msg)


def cut_back(infos: list[CheckpointInfo], checkpoint: WorkflowCheckpoint) -> list[CheckpointInfo]:
    """Return the infos of the checkpoints that lead to a checkpoint, including its own as the last."""
    places = {info.checkpoint_id: place for place, info in enumerate(infos)}
    if checkpoint.checkpoint_id in places:
        return infos[: places[checkpoint.checkpoint_id] + 1]
    before = places.get(checkpoint.previous_checkpoint_id or "", -1)
    return [*infos[: before + 1], CheckpointInfo.of(checkpoint)]
