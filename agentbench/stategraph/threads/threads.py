"""Reads and edits threads: snapshots, history, updates, forks. Each edit is a new checkpoint; none is changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from agentbench._copying import isolate
from agentbench._user_code import warn_user
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import (
    head_of,
    load_checkpoint,
    save_at_head,
)
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.exceptions import GraphError, ThreadBusyError, WorkflowBusyError
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import TaskWrites, merge, read_return
from agentbench.stategraph.running.executors import META, PENDING, RESUME, WAITING
from agentbench.stategraph.running.plan import GraphPlan, node_config
from agentbench.stategraph.running.routing import Activation, Routed, Waiting, route
from agentbench.stategraph.snapshots import REPLAY_OF, StateSnapshot, config_of, snapshot_of
from agentbench.stategraph.state import END, START, ExecutionState
from agentbench.stategraph.threads.positions import snapshot_at
from agentbench.workflows.executors.message import WorkflowMessage, internal_source
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.persist.graph_changes import graph_mismatch
from agentbench.workflows.persist.migration import migrate_checkpoint


class Threads:
    """The threads of one graph in one storage; `storage_or_none` is `None` if it saves none."""

    def __init__(self, plan: GraphPlan, storage: Any) -> None:
        self.plan = plan
        self.storage_or_none = storage
        self.unsaved: deque[Any] = deque(maxlen=1000)
        """Ids of calls without a thread id that completed, so that nothing was saved."""

    @property
    def storage(self) -> Any:
        """The storage; `GraphError` for a graph that was compiled without one."""
        if self.storage_or_none is None:
            message = "This graph saves no threads: it was compiled with checkpointer=False. Remove that argument."
            raise GraphError(message)
        return self.storage_or_none

    def chain(self, thread_id: Any) -> str:
        """Return the name of the chain of checkpoints that holds a thread."""
        return f"{self.prefix}{quote(str(thread_id), safe='')}"

    @property
    def prefix(self) -> str:
        """The beginning of the names of all chains of the graph."""
        return f"{quote(self.plan.name, safe='')}/"

    # ---- reading -----------------------------------------------------------------------------------------------------

    async def load(self, config: Mapping[str, Any]) -> WorkflowCheckpoint | None:
        """Return the checkpoint that a configuration names, by default the newest of its thread."""
        checkpoint_id = config.get("checkpoint_id")
        if checkpoint_id is None:
            head = await head_of(self.storage, self.chain(config["thread_id"]))
            checkpoint_id = head and head.checkpoint_id
        if checkpoint_id is None and config["thread_id"] in self.unsaved:
            message = (
                f"Nothing was saved under {config['thread_id']!r}: that call had no thread_id. Pass one to keep the "
                "state: app.invoke(..., {'thread_id': 'order-7'})."
            )
            raise GraphError(message, thread_id=config["thread_id"])
        return None if checkpoint_id is None else await load_checkpoint(self.storage, checkpoint_id)

    async def require(self, config: Mapping[str, Any]) -> WorkflowCheckpoint:
        """Return the checkpoint that a configuration names; `GraphError` if there is none."""
        checkpoint = await self.load(config)
        if checkpoint is None:
            message = f"Thread {config['thread_id']!r} has no checkpoint. Invoke the graph on it first."
            raise GraphError(message, thread_id=config["thread_id"])
        return checkpoint

    async def snapshot(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot[Any]:
        """Return a thread at its newest checkpoint, or at the one named by the configuration."""
        if (checkpoint_id := config.get("checkpoint_id")) is not None:
            return await snapshot_at(self.plan, self.storage, checkpoint_id, config["thread_id"], subgraphs=subgraphs)
        checkpoint = await self.load(config)
        if checkpoint is None:
            values, fields = {}, self.plan.fields
            if fields.is_agent_state:
                values = fields.cls.model_construct(**fields.initial(self.plan.template))
            return StateSnapshot(values, config=config_of(self.plan, config["thread_id"]))
        return snapshot_of(self.plan, checkpoint, config["thread_id"], is_newest=True, subgraphs=subgraphs)

    # ---- editing -----------------------------------------------------------------------------------------------------

    async def update(
        self, config: Mapping[str, Any], values: Any = None, as_node: str | None = None, *, thread_id: Any = None
    ) -> dict[str, Any]:
        """Save an edited copy of a checkpoint, and return the configuration that names it.

        Without `as_node`, the values change and everything else stays: the next nodes, open questions, pending writes.
        With it, the thread continues as if that node had just returned the values. Without an `AgentState` it is by
        default the node whose conditions have chosen the next nodes, so that they choose again.
        """
        target = config["thread_id"] if thread_id is None else thread_id
        head_seq = await self.head_seq(target)  # read before the thread
        checkpoint = await self.require(config)
        plan = self.plan
        self.require_node(as_node)
        if as_node is None and not plan.fields.is_agent_state:
            as_node = _chooser(plan, checkpoint)
        task_id = "update" if as_node is None else f"{checkpoint.state[META]['step'] + 1}:{as_node}:0"
        writes = read_return(values, plan.fields, as_node or START, task_id, plan.values_in(checkpoint.state))
        if as_node is None:
            writes = replace(writes, goto=None)
        saved = await self.save_update(checkpoint, writes, target, head_seq, as_node)
        return config_of(plan, target, saved.checkpoint_id)

    def require_node(self, as_node: str | None) -> None:
        """Check the node that an update is made for.

        Raises:
            GraphError: The graph has no such node.
        """
        if as_node not in (None, START, END) and as_node not in self.plan.nodes:
            message = f"as_node is {as_node!r}, which is not a node. Nodes: {', '.join(self.plan.nodes)}."
            raise GraphError(message, "GRAPH_004", node=as_node)

    async def save_update(
        self,
        checkpoint: WorkflowCheckpoint,
        writes: TaskWrites,
        thread_id: Any,
        head_seq: int,
        as_node: str | None = None,
    ) -> WorkflowCheckpoint:
        """Save a copy of a checkpoint with further writes, and return it; see `update`.

        Without `as_node`, the targets of the writes run in addition to the nodes that are next.
        """
        state, messages = await self._edits(checkpoint, writes, thread_id, as_node)
        return await self._fork(
            checkpoint,
            thread_id,
            head_seq,
            state_updates=state,
            messages=messages,
            requests=None if as_node is None else {},
            with_history=True,
            metadata=_of_update(thread_id, writes),
        )

    async def _edits(
        self, checkpoint: WorkflowCheckpoint, writes: TaskWrites, thread_id: Any, as_node: str | None
    ) -> tuple[dict[str, Any], dict[str, list[Any]] | None]:
        """Return the new values of shared state for an update, and the messages to the nodes that come next."""
        meta = self._fork_meta(checkpoint)
        before = self.plan.values_in(checkpoint.state)
        merged = merge(self.plan.fields, before, [writes])
        state: dict[str, Any] = {
            name: value for name, value in merged.values.items() if name not in before or value is not before[name]
        }
        messages: dict[str, list[Any]] | None = None
        if as_node is not None:
            tasks = [] if as_node == END else [replace(writes, node=as_node)]
            routed = await self._route(checkpoint, tasks, merged.values, meta, thread_id)
            messages = _queue_messages(routed.frontier)
            meta = _at(meta, routed.frontier)
            state |= {PENDING: [], RESUME: {}, WAITING: routed.waiting}
        elif writes.goto:
            routed = await self._route(checkpoint, [writes], merged.values, meta, thread_id)
            messages = _with_further(checkpoint, routed.frontier)
        if as_node is not None or not self.plan.fields.is_agent_state:
            state[META] = meta
        return state, messages

    async def _route(
        self,
        checkpoint: WorkflowCheckpoint,
        tasks: Sequence[TaskWrites],
        values: Mapping[str, Any],
        meta: Mapping[str, Any],
        thread_id: Any,
    ) -> Routed:
        def state_for(view: StateFields) -> Any:
            return view.view(values, isolate, lambda: ExecutionState(**meta))

        def argument(kind: str) -> Any:
            return node_config({"thread_id": thread_id}) if kind == "config" else None

        waiting: Waiting = checkpoint.state.get(WAITING) or Waiting()
        return await route(self.plan, tasks, waiting, state_for, argument, meta["step"] + 1, values)

    async def begin(self, config: Mapping[str, Any], values: Any, as_node: str, graph: Graph) -> dict[str, Any]:
        """Save an update as the first checkpoint of a thread, and return the configuration that names it."""
        plan, thread_id = self.plan, config["thread_id"]
        self.require_node(as_node)
        initial = plan.fields.initial(plan.template)
        meta = {"step": -1, "status": "running", "current_node": START, "thread_id": thread_id}
        before = WorkflowCheckpoint(self.chain(thread_id), graph.signature_hash, state={**initial, META: meta})
        writes = read_return(values, plan.fields, as_node, "update", initial)
        state, messages = await self._edits(before, writes, thread_id, as_node)
        metadata = {**_of_update(thread_id, writes), keys.SOURCE: "update", keys.GRAPH_SIGNATURE: graph.signature}
        first = replace(before, state={**before.state, **state}, messages=messages or {}, metadata=metadata)
        with thread_errors(thread_id):
            await save_at_head(self.storage, first, 0)
        return config_of(plan, thread_id, first.checkpoint_id)

    async def replay(self, checkpoint: WorkflowCheckpoint, thread_id: Any, head_seq: int) -> WorkflowCheckpoint:
        """Save a copy of an earlier checkpoint as the newest one; open questions of nodes are asked again."""
        meta = self._fork_meta(checkpoint)
        state: dict[str, Any] | None = None if self.plan.fields.is_agent_state else {META: meta}
        messages: dict[str, list[Any]] | None = None
        pending = checkpoint.state.get(PENDING) or []
        asking = [(result.writes.node, result.activation) for result in pending if result.interrupts]
        if asking:
            meta = _at(meta, asking)
            state = {PENDING: [result for result in pending if not result.interrupts], RESUME: {}, META: meta}
            messages = _queue_messages(asking)
        return await self._fork(
            checkpoint,
            thread_id,
            head_seq,
            state_updates=state,
            messages=messages,
            requests={} if asking else None,
            metadata={REPLAY_OF: checkpoint.checkpoint_id},
        )

    def _fork_meta(self, checkpoint: WorkflowCheckpoint) -> dict[str, Any]:
        """Return the facts of the execution for a copy; without an `AgentState` it is one step further."""
        meta = dict(checkpoint.state[META])
        meta["step"] += not self.plan.fields.is_agent_state
        return meta

    async def _fork(
        self, checkpoint: WorkflowCheckpoint, thread_id: Any, head_seq: int, **edits: Any
    ) -> WorkflowCheckpoint:
        with thread_errors(thread_id):
            info = await fork_checkpoint(
                self.storage,
                checkpoint.checkpoint_id,
                workflow_name=self.chain(thread_id),
                head_seq=head_seq,
                **edits,
            )
        return await load_checkpoint(self.storage, info.checkpoint_id)

    async def head_seq(self, thread_id: Any) -> int:
        """Return the number of the newest checkpoint of a thread; 0 if there is none."""
        head = await head_of(self.storage, self.chain(thread_id))
        return 0 if head is None else head.seq

    async def fit(
        self, checkpoint: WorkflowCheckpoint, graph: Graph, config: Mapping[str, Any], head_seq: int
    ) -> WorkflowCheckpoint:
        """Return a checkpoint from which the graph can continue: itself, or a copy if the graph has changed.

        Any graph continues from a checkpoint that was written without one, which has no hash.

        Raises:
            GraphMismatchError: The graph changed, and `on_graph_change` is "raise", or a pending node no longer exists.
        """
        mismatch = graph_mismatch(graph, checkpoint)
        if mismatch is None:
            return checkpoint
        due = {message.target_id for queued in checkpoint.messages.values() for message in queued}
        on_change = config["on_graph_change"] if checkpoint.graph_signature_hash else "allow"
        if on_change == "raise" or not due <= {None, *graph.executors}:
            raise mismatch
        if on_change == "warn":
            warn_user(str(mismatch), UserWarning)
        chain = self.chain(config["thread_id"])
        with thread_errors(config["thread_id"]):
            info, _ = await migrate_checkpoint(
                self.storage, checkpoint.checkpoint_id, graph, workflow_name=chain, head_seq=head_seq
            )
        return await load_checkpoint(self.storage, info.checkpoint_id)


@contextmanager
def thread_errors(thread_id: Any) -> Iterator[None]:
    """Convert a conflict with another writer to a `ThreadBusyError` that names the thread."""
    try:
        yield
    except WorkflowBusyError as error:
        message = f"Another writer has saved to thread {thread_id!r} in the meantime, so this was not saved. Try again."
        raise ThreadBusyError(message, thread_id=thread_id) from error


def _chooser(plan: GraphPlan, checkpoint: WorkflowCheckpoint) -> str | None:
    """Return the node whose conditions have chosen the next nodes, unless other nodes wait beside them."""
    queued = [message.data for several in checkpoint.messages.values() for message in several]
    causes = {cause for data in queued if isinstance(data, Activation) for cause in data.via}
    if len(causes) != 1 or checkpoint.state.get(PENDING):
        return None
    cause = causes.pop()  # START, or the id of a task: superstep, node, number
    node = cause if cause == START else cause.partition(":")[2].rpartition(":")[0]
    return node if plan.conditions.get(node) else None


def _of_update(thread_id: Any, writes: TaskWrites) -> dict[str, Any]:
    """Return the metadata of an update."""
    return {"thread_id": thread_id, "changed": {name: [writes.node] for name, _ in writes.writes}}


def _at(meta: dict[str, Any], frontier: Sequence[tuple[str, Activation]]) -> dict[str, Any]:
    """Return the facts of an execution that continues with these activations."""
    for name in ("interrupt_node", "interrupt_reason", "interrupt_when", "interrupt_data", "error_message"):
        meta.pop(name, None)
    meta["current_nodes"] = tuple(node for node, _ in frontier)
    meta["current_node"] = frontier[0][0] if frontier else END
    meta["status"] = "running" if frontier else "completed"
    return meta


def _queue_messages(frontier: Sequence[tuple[str, Activation]]) -> dict[str, list[Any]]:
    messages: dict[str, list[Any]] = {}
    for node, activation in frontier:
        source = internal_source(node)
        messages.setdefault(source, []).append(WorkflowMessage(activation, source, node))
    return messages


def _with_further(checkpoint: WorkflowCheckpoint, frontier: Sequence[tuple[str, Activation]]) -> dict[str, list[Any]]:
    """Return the queued messages of a checkpoint, and those to further nodes, unless a node waits for an answer."""
    pending = checkpoint.state.get(PENDING) or ()
    queued = [message.data for several in checkpoint.messages.values() for message in several]
    asking = {result.writes.node for result in pending if result.interrupts}
    n_before = len(pending) + len(queued)
    further = [
        (node, replace(activation, task_id=f"{activation.task_id}:goto", order=n_before + activation.order))
        for node, activation in frontier
        if activation.arg is not None or node not in asking
    ]
    messages = {source: [*several] for source, several in checkpoint.messages.items()}
    for source, several in _queue_messages(further).items():
        messages[source] = [*messages.get(source, ()), *several]
    return messages
