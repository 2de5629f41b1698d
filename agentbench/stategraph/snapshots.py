"""A thread at one of its checkpoints, and its whole history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from pydantic import ValidationError

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import masked_fields
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.messages.whole_copies import copy_whole
from agentbench.stategraph.interrupts import BreakpointRequest, Interrupt
from agentbench.stategraph.merging.updates import merge_finished
from agentbench.stategraph.running.executors import DONE, META, PENDING, TaskResult
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.running.routing import Activation
from agentbench.stategraph.state import ExecutionState, ExecutionStatus, StateT

REPLAY_OF = "replay_of"
"""In the metadata of a copy from which a thread runs again: the id of the original. Copies of the copy inherit it."""


@dataclass(frozen=True)
class SnapshotTask:
    """A task that is due at a checkpoint: its error, its open questions, or the result of an earlier attempt.

    `state` is the snapshot of a graph in the node that has begun, if `get_state(..., subgraphs=True)` asked for it. It
    has no configuration of its own: the outer graph continues it.

    Example:
        for task in app.get_state(thread).tasks:
            print(task.name, task.error, task.interrupts)
    """

    id: str
    name: str
    error: str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    result: Any = None
    state: StateSnapshot[Any] | None = None


@drawn_by("agentbench.notebook.cards.state_graph:snapshot_bundle")
@dataclass(frozen=True)
class StateSnapshot(Displayable, Generic[StateT]):
    """A thread at a checkpoint. Its values are copies: changing them changes nothing else.

    Args:
        values: The state: an `AgentState`, or the dictionary of the fields that have a value; while a superstep waits
            for some of its nodes, with the writes of the others, unless the configuration named the checkpoint.
        next: The nodes that run next.
        config: The configuration that names this checkpoint, for `invoke`, `update_state` and `fork`.
        parent_config: The configuration that names its parent.
        metadata: `source`, `step`, `seq`, `run_id`, `thread_id`, `writers` (nodes), `changed` (fields, each with the
            nodes that wrote it), and additions of the call. Without an `AgentState`, `source` is `input`, `loop`,
            `update` or `fork`.
        created_at: The time when it was saved.
        step: The number of supersteps of its run up to it.
        status: The status of the execution; `None` for a thread that does not exist.
        tasks: The tasks that are due.
        interrupts: The open questions and breakpoints.
        pending_writes: The writes of finished tasks in an unfinished superstep, by task id.
        extra: Stored values that are no longer fields of the state class.
        invalid: The reason why the stored values do not fit the state class.

    Example:
        >>> app.get_state({"thread_id": "inc-7"}).next
        ('judge',)
    """

    values: StateT
    next: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    parent_config: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: str | None = None
    step: int = 0
    status: ExecutionStatus | None = None
    tasks: tuple[SnapshotTask, ...] = ()
    interrupts: tuple[Any, ...] = ()
    pending_writes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    invalid: ValidationError | None = None

    __repr__ = masked_fields

    @property
    def exists(self) -> bool:
        """Whether the thread has a checkpoint."""
        return self.created_at is not None


def snapshot_of(
    plan: GraphPlan,
    checkpoint: WorkflowCheckpoint,
    thread_id: Any,
    *,
    is_newest: bool = False,
    subgraphs: bool = False,
) -> StateSnapshot[Any]:
    """Return a checkpoint of a thread as a snapshot; it need not fit the state class.

    The newest one of a thread includes the writes of finished tasks, unless the state is an `AgentState`.
    """
    info = CheckpointInfo.of(checkpoint)
    stored: Mapping[str, Any] = copy_whole(_public(checkpoint.state))
    meta = checkpoint.state[META]
    values: Mapping[str, Any] = plan.values_in(stored)
    pending: Sequence[TaskResult] = checkpoint.state.get(PENDING) or ()
    if is_newest:
        finished = [result.writes for result in pending if not result.interrupts]
        values = merge_finished(plan.fields, values, finished, last_wins=plan.last_wins)
    due = [
        (message.target_id or message.source_id, message.data)
        for queued in checkpoint.messages.values()
        for message in queued
        if isinstance(message.data, Activation)
    ]
    due.sort(key=lambda each: each[1].order)
    tasks = [(each.order, SnapshotTask(each.task_id, node, meta.get("error_message"))) for node, each in due]
    following = [(each.order, node) for node, each in due]
    following += [(result.activation.order, result.writes.node) for result in pending if result.interrupts]
    nodes = [node for _, node in sorted(following, key=lambda each: each[0])]
    for result in pending:
        asked = tuple(each for each in result.interrupts if each.id in checkpoint.pending_request_info_events)
        written = None if result.interrupts else copy_whole(dict(result.writes.writes))
        task = SnapshotTask(result.activation.task_id, result.writes.node, None, asked, written)
        tasks.append((result.activation.order, task))
    tasks.sort(key=lambda each: each[0])
    if subgraphs:
        tasks = [(order, replace(task, state=_inner_state(plan, checkpoint, task, thread_id))) for order, task in tasks]
    requests = [event.data for event in checkpoint.pending_request_info_events.values()]
    return StateSnapshot(
        values=plan.fields.to_display(values, ExecutionState(**meta)),
        next=tuple(dict.fromkeys(nodes) if plan.fields.is_agent_state else nodes),  # several `Send`s may name a node
        config=config_of(plan, thread_id, info.checkpoint_id),
        parent_config=config_of(plan, thread_id, parent) if (parent := parent_of(info)) else None,
        metadata={**metadata_of(plan, checkpoint.metadata), "step": meta["step"], "thread_id": thread_id},
        created_at=info.timestamp,
        step=meta["step"],
        status=ExecutionStatus(meta["status"]),
        tasks=tuple(task for _, task in tasks),
        interrupts=tuple(request for request in requests if isinstance(request, (Interrupt, BreakpointRequest))),
        pending_writes={
            result.activation.task_id: [(name, copy_whole(value)) for name, value in result.writes.writes]
            for result in pending
            if not result.interrupts
        },
        extra={name: value for name, value in stored.items() if name not in plan.fields.by_name},
        invalid=plan.fields.misfit(values),
    )


def _inner_state(
    plan: GraphPlan, checkpoint: WorkflowCheckpoint, task: SnapshotTask, thread_id: Any
) -> StateSnapshot[Any] | None:
    """Return the state of a graph in the node of a task; None if there is none, or it has not begun."""
    graph = getattr(plan.nodes[task.name].target, "graph", None) if task.name in plan.nodes else None
    run = (checkpoint.state.get(DONE) or {}).get(task.id, {}).get("run")
    if graph is None or run is None:
        return None
    inner = replace(
        checkpoint, state=run["state"], messages=run["messages"], pending_request_info_events=run["requests"]
    )
    found = snapshot_of(graph.plan, inner, thread_id, is_newest=True, subgraphs=True)
    return replace(found, config={}, parent_config=None)


BEFORE_INPUT = "input@"
"""Begins the id of the position before an input; the id of the first checkpoint after it follows."""


def parent_of(info: CheckpointInfo) -> CheckpointID | None:
    """Return the id of the position before a checkpoint."""
    if info.source == "input" and info.metadata.get(keys.INPUT) is not None:
        return id_of(BEFORE_INPUT + info.checkpoint_id)
    return info.previous_checkpoint_id


def metadata_of(plan: GraphPlan, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a checkpoint for a snapshot; the words for its source depend on the state class."""
    source = metadata.get(keys.SOURCE)
    if plan.fields.is_agent_state or source is None:
        return {**metadata}
    if metadata.get(REPLAY_OF) is not None and metadata[REPLAY_OF] == metadata.get(keys.FORKED_FROM):
        source = "fork"
    elif source not in ("update", "fork"):
        source = "loop"
    return {**metadata, keys.SOURCE: source}


def values_diff(before: WorkflowCheckpoint, after: WorkflowCheckpoint) -> CheckpointDiff:
    """Return the differences between the values of two checkpoints."""
    one, other = (
        replace(
            checkpoint, state=_public(checkpoint.state), messages={}, pending_request_info_events={}, iteration_count=0,
            metadata={},
        )
        for checkpoint in (before, after)
    )  # fmt: skip
    return replace(diff_checkpoints(one, other), before=CheckpointInfo.of(before), after=CheckpointInfo.of(after))


def _public(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if not key.startswith("_")}


def config_of(plan: GraphPlan, thread_id: Any, checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return the configuration that names a thread, or a checkpoint of it; flat only for an `AgentState`."""
    flat = {"thread_id": thread_id} | ({} if checkpoint_id is None else {"checkpoint_id": checkpoint_id})
    return flat if plan.fields.is_agent_state else {"configurable": flat}
