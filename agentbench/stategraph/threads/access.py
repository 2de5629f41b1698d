"""The methods of a compiled graph that read and edit its threads, each with its async counterpart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Generic, cast
from urllib.parse import unquote

from agentbench._bridge import blocking
from agentbench._display import shorten
from agentbench._limits import require_limit
from agentbench.checkpoints.access import (
    delete_chain,
    list_infos,
    list_lineage,
    list_workflow_names,
    load_checkpoint,
)
from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.stategraph.snapshots import StateSnapshot, values_diff
from agentbench.stategraph.state import START, StateT
from agentbench.stategraph.threads.history import StateHistory, readable
from agentbench.stategraph.threads.migration import thread_changes
from agentbench.stategraph.threads.positions import metadata_at, positions
from agentbench.stategraph.threads.thread_call import flat_config, thread_config
from agentbench.stategraph.threads.threads import Threads, thread_errors
from agentbench.workflows.persist.executor_content import Changes
from agentbench.workflows.persist.planned_migration import Migration, plan_migration
from agentbench.workflows.run.workflow import Workflow


class ThreadAccess(Generic[StateT]):
    """The threads of a compiled graph: their state, history and differences; updates, forks and removal.

    Each method exists twice: `aget_state` for `async` code, `get_state` for synchronous code and cells.
    """

    threads: Threads
    workflow: Workflow

    async def aget_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot[StateT]:
        """Return a thread at its newest checkpoint, or at the one named by `checkpoint_id`.

        Args:
            config: Identifies the thread.
            subgraphs: Add the state of a graph in a node to the task of the node, while it waits for an answer.

        Example:
            >>> app.get_state({"thread_id": "inc-7"}, subgraphs=True).tasks[0].state.values
        """
        return await self.threads.snapshot(thread_config(config), subgraphs=subgraphs)

    get_state = blocking(aget_state)

    @readable
    async def aget_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the published signature
        before: str | Mapping[str, Any] | None = None,
        limit: int | None = None,
        branch: str | None = None,
    ) -> StateHistory:
        """Return the checkpoints of a thread, newest first; `async for` reads them without `await`, too.

        Without an `AgentState`, there is one position for each superstep, with the state of its last attempt, and one
        before each input, at which `next` is `("__start__",)`; `invoke(None, config)` there takes the input again.

        Args:
            config: Identifies the thread.
            filter: Only checkpoints whose metadata has these values, such as `{"source": "update"}`.
            before: Only checkpoints before the one with this id, or named by this configuration.
            limit: Maximum number of checkpoints.
            branch: Only the checkpoints that led to the one with this id, including it.
        """
        require_limit("limit", limit, none="all")
        if filter is not None and not isinstance(cast("object", filter), Mapping):
            message = f"filter={shorten(filter)}: expected a mapping of metadata, such as {{'source': 'update'}}."
            raise TypeError(message)
        storage, thread_id = self.threads.storage, thread_config(config)["thread_id"]
        before = flat_config(before)["checkpoint_id"] if isinstance(before, Mapping) else before
        infos = await list_infos(storage, workflow_name=self.threads.chain(thread_id), before=before)
        if branch is not None:
            led_there = {info.checkpoint_id for info in await list_lineage(storage, branch)}
            infos = [info for info in infos if info.checkpoint_id in led_there]
        wanted, plan = (filter or {}).items(), self.threads.plan
        newest_first = [*reversed(infos)] if plan.fields.is_agent_state else positions(infos)
        matches = [
            info for info in newest_first if info.source != "pending" and wanted <= metadata_at(plan, info).items()
        ]
        return StateHistory(self.threads.plan, storage, thread_id, matches if limit is None else matches[:limit])

    get_state_history = blocking(aget_state_history)

    async def adiff(self, config_a: Mapping[str, Any], config_b: Mapping[str, Any] | None = None) -> CheckpointDiff:
        """Return the differences between the values of two checkpoints; for one checkpoint, its changes.

        Example:
            >>> print(app.diff({"thread_id": "inc-7"}))
        """
        checkpoints = [await self.threads.require(thread_config(config_a))]
        if config_b is not None:
            checkpoints.append(await self.threads.require(thread_config(config_b)))
        elif (parent := checkpoints[0].previous_checkpoint_id) is not None:
            checkpoints.insert(0, await load_checkpoint(self.threads.storage, parent))
        else:
            checkpoints.insert(0, replace(checkpoints[0], state={}))
        return values_diff(*checkpoints)

    diff = blocking(adiff)

    async def aupdate_state(self, config: Mapping[str, Any], values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Save a checkpoint with different values, and return the configuration that names it.

        Args:
            config: Identifies the thread, and with `checkpoint_id` an earlier checkpoint, from which a branch begins.
            values: The update, in any form that a node may return; reducers are applied.
            as_node: Without it, only the values change; except that without an `AgentState`, conditions that have
                chosen the next nodes choose again. With it, the thread continues as if this node had returned them:
                the node's successors run next, and open questions are dropped.

        Raises:
            GraphError: The update does not fit the state, or the node does not exist; or, with an `AgentState`, the
                thread does not, which otherwise begins. Nothing is saved.
        """
        config = thread_config(config)
        if not self.threads.plan.fields.is_agent_state and not await self.threads.head_seq(config["thread_id"]):
            return await self.threads.begin(config, values, as_node or START, self.workflow.graph)
        return await self.threads.update(config, values, as_node)

    update_state = blocking(aupdate_state)

    async def afork(
        self,
        config: Mapping[str, Any],
        *,
        thread_id: str | int | None = None,
        values: Any = None,
        as_node: str | None = None,
    ) -> dict[str, Any]:
        """Copy a thread up to a checkpoint into another thread, and return the configuration that names its end.

        Args:
            config: Identifies the thread, and with `checkpoint_id` the checkpoint.
            thread_id: The target thread; by default `<thread>~1` and so on. The same id makes a branch within the
                thread.
            values: An update of the copy.
            as_node: As in `update_state`.
        """
        config = thread_config(config)
        count = 1
        while thread_id is None:
            copy = f"{config['thread_id']}~{count}"
            thread_id = None if await self.threads.head_seq(copy) else copy
            count += 1
        same = str(thread_id) == str(config["thread_id"])
        return await self.threads.update(config, values, as_node, thread_id=None if same else thread_id)

    fork = blocking(afork)

    async def amigrate(
        self,
        config: Mapping[str, Any],
        *,
        renamed: Mapping[str, str] | None = None,
        dropped: Iterable[str] = (),
        functions: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> Migration:
        """Return the preview of a thread of an older graph as one of this graph; its `apply()` saves it.

        It does the same as `Workflow.migrate`, with nodes as executors. In addition, new fields get their defaults, and
        all values are validated against the declared types.

        Args:
            config: Identifies the thread, and with `checkpoint_id` the checkpoint, by default the newest.
            renamed: New names of nodes and fields by old name.
            dropped: Nodes and fields to remove.
            functions: For a field, a function from the old value to the new one; for a node, a function from an
                `ExecutorContent` to one or several of this graph.

        Raises:
            MigrationError: A node that is due does not exist any more, a value does not fit its field, or a name is
                unknown.

        Example:
            >>> migration = app.migrate({"thread_id": "inc-7"}, functions={"severity": int})
            >>> await migration.apply()
        """
        config = thread_config(config)
        checkpoint = await self.threads.require(config)
        changes = thread_changes(
            self.threads.plan, Changes(dict(renamed or {}), frozenset(dropped), dict(functions or {}))
        )
        errors = partial(thread_errors, config["thread_id"])
        return await plan_migration(self.threads.storage, checkpoint, self.workflow.graph, changes, errors)

    migrate = blocking(amigrate)

    async def alist_threads(self) -> list[str]:
        """Return the ids of this graph's threads, sorted."""
        names = await list_workflow_names(self.threads.storage, self.threads.prefix)
        return [unquote(name.removeprefix(self.threads.prefix)) for name in names]

    list_threads = blocking(alist_threads)

    async def adelete_thread(self, config: Mapping[str, Any]) -> int:
        """Delete a thread and return its number of checkpoints."""
        return await delete_chain(self.threads.storage, self.threads.chain(thread_config(config)["thread_id"]))

    delete_thread = blocking(adelete_thread)

    async def aprune(self, config: Mapping[str, Any], keep: int) -> int:
        """Delete old checkpoints of a thread; the newest `keep`, the ends of branches and pauses stay.

        Returns:
            The number of deleted checkpoints.
        """
        chain = self.threads.chain(thread_config(config)["thread_id"])
        require_limit("keep", keep, least=1)
        infos = await list_infos(self.threads.storage, workflow_name=chain)
        parents = {info.previous_checkpoint_id for info in infos}
        gone = [info for info in infos[:-keep] if info.checkpoint_id in parents and not info.n_requests]
        for info in gone:
            await self.threads.storage.delete(info.checkpoint_id)
        return len(gone)

    prune = blocking(aprune)
