"""Reading and editing threads: snapshots, history, updates, forks. Each edit is a new checkpoint; none is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from agentbench.checkpoints.access import delete_chain, head_of, list_infos, list_workflow_names, load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.exceptions import GraphError
from agentbench.stategraph.merging.node_state import node_state
from agentbench.stategraph.merging.updates import merge, read_return
from agentbench.stategraph.running.executors import META, PENDING, RESUME, VALUES, WAITING
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.running.routing import Waiting, route
from agentbench.stategraph.snapshots import StateSnapshot, config_of, snapshot_of
from agentbench.stategraph.state import END, START, ExecutionState
from agentbench.workflows.executors.message import WorkflowMessage, internal_source


def chain_of(plan: GraphPlan, thread_id: Any) -> str:
    """Return the name of the chain of checkpoints that holds a thread."""
    return f"{quote(plan.name, safe='')}/{quote(str(thread_id), safe='')}"


class Threads:
    """The threads of one graph in one storage."""

    def __init__(self, plan: GraphPlan, storage: Any) -> None:
        self.plan = plan
        self._storage = storage

    @property
    def storage(self) -> Any:
        """The storage; `GraphError` for a graph that was compiled without one."""
        if self._storage is None:
            message = "This graph saves no threads: it was compiled with checkpointer=False. Leave that out."
            raise GraphError(message)
        return self._storage

    async def load(self, config: Mapping[str, Any]) -> WorkflowCheckpoint | None:
        """Return the checkpoint that a configuration names, by default the newest of its thread."""
        checkpoint_id = config.get("checkpoint_id")
        if checkpoint_id is None:
            head = await head_of(self.storage, chain_of(self.plan, config["thread_id"]))
            checkpoint_id = head and head.checkpoint_id
        return None if checkpoint_id is None else await load_checkpoint(self.storage, checkpoint_id)

    async def snapshot(self, config: Mapping[str, Any]) -> StateSnapshot:
        """Return a thread at its newest checkpoint, or at the one that the configuration names."""
        checkpoint = await self.load(config)
        if checkpoint is None:
            values = self.plan.fields.cls.model_construct(**self.plan.fields.initial(self.plan.template))
            return StateSnapshot(values, config={"thread_id": config["thread_id"]})
        return snapshot_of(self.plan, checkpoint, config["thread_id"])

    async def history(
        self, config: Mapping[str, Any], *, before: str | None = None, limit: int | None = None
    ) -> list[StateSnapshot]:
        """Return the checkpoints of a thread, newest first."""
        chain = chain_of(self.plan, config["thread_id"])
        infos = await list_infos(self.storage, workflow_name=chain, before=before, limit=limit)
        return [
            snapshot_of(self.plan, await load_checkpoint(self.storage, info.checkpoint_id), config["thread_id"])
            for info in reversed(infos)
        ]

    async def update(
        self, config: Mapping[str, Any], values: Any = None, as_node: str | None = None, *, thread_id: Any = None
    ) -> dict[str, Any]:
        """Save an edited copy of a checkpoint, and return the configuration that names it.

        Without `as_node` the values change and everything else stays: what runs next, open questions, pending writes.
        With it the thread is as if that node had just returned the values.
        """
        checkpoint = await self.load(config)
        if checkpoint is None:
            message = f"Thread {config['thread_id']!r} has no checkpoint to update. Invoke the graph on it first."
            raise GraphError(message, thread_id=config["thread_id"])
        plan = self.plan
        stored, meta = checkpoint.state[VALUES], dict(checkpoint.state[META])
        writer = as_node or START
        if as_node not in (None, START, END) and as_node not in plan.nodes:
            message = f"as_node is {as_node!r}, which is no node; the nodes are: {', '.join(plan.nodes)}."
            raise GraphError(message, "GRAPH_004", node=as_node)
        writes = read_return(values, plan.fields, writer, "update", stored)
        merged = merge(plan.fields, stored, [writes])
        state: dict[str, Any] = {VALUES: merged.values}
        messages: dict[str, Sequence[Any]] | None = None
        if as_node is not None:
            waiting: Waiting = checkpoint.state.get(WAITING) or Waiting()
            tasks = [] if as_node == END else [replace(writes, node=as_node)]
            view = node_state(
                plan.fields.cls,
                lambda name: ExecutionState(**meta) if name == "execution_meta" else merged.values[name],
            )
            routed = await route(plan, tasks, waiting, view, config, meta["step"] + 1)
            frontier = routed.frontier
            meta["current_nodes"] = tuple(node for node, _ in frontier)
            meta["current_node"] = frontier[0][0] if frontier else END
            meta["status"] = "running" if frontier else "completed"
            state |= {META: meta, PENDING: [], RESUME: {}, WAITING: routed.waiting}
            messages = {}
            for node, activation in frontier:
                source = internal_source(node)
                messages.setdefault(source, [])
                messages[source] = [*messages[source], WorkflowMessage(activation, source, node)]
        target = config["thread_id"] if thread_id is None else thread_id
        info = await fork_checkpoint(
            self.storage,
            checkpoint.checkpoint_id,
            workflow_name=chain_of(plan, target),
            state_updates=state,
            messages=messages,
            requests=None if as_node is None else {},
            with_history=thread_id is not None,
            metadata={"thread_id": target, "changed": {name: [writer] for name, _ in writes.writes}},
        )
        return config_of(target, info.checkpoint_id)

    async def free_id(self, thread_id: Any) -> str:
        """Return the first id for a copy of a thread that is not taken: `<thread>~1`, `~2`, and so on."""
        taken = set(await self.ids())
        count = 1
        while f"{thread_id}~{count}" in taken:
            count += 1
        return f"{thread_id}~{count}"

    async def ids(self) -> list[str]:
        """Return the ids of the threads, sorted."""
        prefix = f"{quote(self.plan.name, safe='')}/"
        return [unquote(name.removeprefix(prefix)) for name in await list_workflow_names(self.storage, prefix)]

    async def delete(self, config: Mapping[str, Any]) -> int:
        """Delete all checkpoints of a thread; returns how many there were."""
        return await delete_chain(self.storage, chain_of(self.plan, config["thread_id"]))
