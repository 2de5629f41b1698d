"""`Runner`: supersteps driven by hand, over edge groups and executors without a workflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agentbench._limits import require_limit
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException, WorkflowRunnerException
from agentbench.workflows.by_hand.calls import ContextWriter, HandRun
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.engine.runner import SuperstepRunner, convergence_error
from agentbench.workflows.executors.message import MessageType
from agentbench.workflows.graph.graph import Graph

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.host import RunnerContext
    from agentbench.workflows.executors.state import State
    from agentbench.workflows.graph.boundary import BoundaryHook
    from agentbench.workflows.graph.edge_groups import EdgeGroup


class Runner:
    """Runs supersteps over the messages of a context, without a workflow. `workflow.run()` does not use this class.

    Args:
        edge_groups: all edge groups in builder order.
        executors: executors by id.
        state: shared state.
        ctx: holds messages, events, requests and checkpoints; any `RunnerContext`.
        workflow_name: key of the checkpoints.
        graph_signature_hash: hash of the graph; a checkpoint fits only if it has the same hash.
        max_iterations: maximum number of supersteps of `run_until_convergence`.
        boundary_hook: drives another kind of graph; None for plain workflows.

    Example:
        >>> context = InProcRunnerContext()
        >>> runner = Runner(workflow.edge_groups, workflow.executors, State(), context, "by hand", "hash")
        >>> await context.send_message(WorkflowMessage("to be", source_id="split"))
        >>> async for event in runner.run_until_convergence():
        ...     print(event.type)
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: Mapping[str, Executor],
        state: State,
        ctx: RunnerContext,
        workflow_name: str,
        graph_signature_hash: str,
        max_iterations: int = 100,
        *,
        boundary_hook: BoundaryHook | None = None,
    ) -> None:
        require_limit("max_iterations", max_iterations)
        self.context = ctx
        self.graph = Graph(
            edge_groups,
            executors,
            (),
            name=workflow_name,
            max_iterations=max_iterations,
            boundary_hook=boundary_hook,
            fixed_hash=graph_signature_hash,
        )
        self._run_state = RunState(state)
        self._is_running = False
        self._n_restored = 0

    @property
    def iteration(self) -> int:
        """Number of the last superstep."""
        return self._run_state.superstep

    def reset_iteration_count(self) -> None:
        """Number supersteps from 1 again; the next checkpoint has no predecessor."""
        self._run_state.superstep = 0
        self._run_state.last_checkpoint_id = None

    async def run_until_convergence(self) -> AsyncIterator[WorkflowEvent[Any]]:
        """Run supersteps until no message is queued, yielding events as they are emitted.

        If the context has a checkpoint storage, the initial messages and each superstep are saved.

        Raises:
            WorkflowRunnerException: the runner is already running.
            WorkflowConvergenceException: messages are left after `max_iterations` supersteps.
            Exception: any error that a handler raised, unchanged, after all events up to then.
        """
        if self._is_running:
            msg = "This runner is already running; wait for it to end, or use another one."
            raise WorkflowRunnerException(msg)
        self._is_running = True
        context = self.context
        try:
            await asyncio.sleep(0)  # so that runs started together collide even if no handler waits
            run = HandRun(context, self._run_state.state, self.graph, self._run_state)
            await run.receive()
            runner = SuperstepRunner(run)
            if context.has_checkpointing():
                runner.writer = ContextWriter(run)
                await self._save_input(run, runner.writer)
            for event in await context.drain_events():
                yield event
            for _ in range(self.graph.max_iterations):
                async with aclosing(run.follow(_superstep(run, runner))) as turns:
                    async for _ in turns:
                        for event in await context.drain_events():
                            yield event
                await run.receive()
                if not self._run_state.messages:
                    return
            if self._run_state.messages:
                await run.hand_over()
                raise convergence_error(self.graph.name, self._run_state, self.graph.max_iterations)
        finally:
            self._is_running = False

    async def _save_input(self, run: HandRun, writer: ContextWriter) -> None:
        """Save the initial messages of the first superstep, unless they were restored."""
        n_restored, self._n_restored = self._n_restored, 0
        messages = self._run_state.queued_messages()
        if len(messages) > n_restored:
            is_answer = any(message.type is MessageType.RESPONSE for message in messages)
            info = await writer.save("answer" if is_answer else "input")
            if info is not None:
                self._run_state.last_checkpoint_id = info.checkpoint_id
            await run.receive()

    async def restore_from_checkpoint(self, checkpoint_id: str, storage: CheckpointStorage | None = None) -> None:
        """Restore context, shared state and executors from a checkpoint; `storage` is for a context without one.

        WorkflowCheckpointException: it belongs to another graph (`GraphMismatchError`), is unknown, or cannot be
            restored.
        """
        from agentbench.checkpoints.access import checkpoint_error, load_checkpoint  # noqa: PLC0415 - most runs load none
        from agentbench.workflows.persist.snapshot import restore_checkpoint  # noqa: PLC0415 - as above

        context = self.context
        try:
            if context.has_checkpointing():
                checkpoint = await context.load_checkpoint(checkpoint_id)
            elif storage is not None:
                checkpoint = await load_checkpoint(storage, checkpoint_id)
            else:
                msg = "There is no storage to restore from. Pass storage=, or a context with a checkpoint storage."
                raise WorkflowCheckpointException(msg)
            if checkpoint is None:
                raise CheckpointNotFoundError(checkpoint_id)
            await restore_checkpoint(self.graph, self._run_state, checkpoint)
            await context.apply_checkpoint(checkpoint)
        except WorkflowCheckpointException:
            raise
        except Exception as error:
            raise checkpoint_error(error, f"Checkpoint {checkpoint_id!r} cannot be restored") from error
        self._n_restored = len(self._run_state.queued_messages())


async def _superstep(run: HandRun, runner: SuperstepRunner) -> None:
    try:
        await runner.superstep()
    except Exception:
        await run.reopen_requests()
        raise
    if runner.writer is None:
        await run.hand_over()
