"""`Runner`: supersteps driven by hand, over edge groups and executors that no workflow holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.exceptions import WorkflowCheckpointException, WorkflowRunnerException
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.engine.runner import SuperstepRunner, convergence_error
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.graph.graph import Graph

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.state import State
    from agentbench.workflows.graph.boundary import BoundaryHook
    from agentbench.workflows.graph.edge_groups import EdgeGroup
    from agentbench.workflows.pages.runner_context import InProcRunnerContext


class Runner:
    """Runs supersteps over the messages of a context, without a workflow. `workflow.run()` needs none of it.

    Args:
        edge_groups: all edge groups in builder order.
        executors: by id.
        state: shared state.
        ctx: messages, events and requests.
        workflow_name: key of the checkpoints.
        graph_signature_hash: hash of the graph; a checkpoint fits only where it is the same.
        max_iterations: supersteps that `run_until_convergence` may take.
        boundary_hook: drives another dialect of graphs; None for plain workflows.

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
        executors: dict[str, Executor],
        state: State,
        ctx: InProcRunnerContext,
        workflow_name: str,
        graph_signature_hash: str,
        max_iterations: int = 100,
        *,
        boundary_hook: BoundaryHook | None = None,
    ) -> None:
        ctx.state = state
        self.context = ctx
        self.graph = Graph(
            edge_groups,
            executors,
            (),
            name=workflow_name,
            max_iterations=max_iterations,
            boundary_hook=boundary_hook,
        )
        self.graph.signature_hash = graph_signature_hash
        self._is_running = False

    @property
    def iteration(self) -> int:
        """Number of the last superstep."""
        return self.context.superstep

    def reset_iteration_count(self) -> None:
        """Number supersteps from 1 again."""
        self.context.superstep = 0

    async def run_until_convergence(self) -> AsyncIterator[WorkflowEvent[Any]]:
        """Run supersteps until no message is queued, yielding events after each.

        Raises:
            WorkflowRunnerException: it runs already.
            WorkflowConvergenceException: messages are left after `max_iterations` supersteps.
        """
        if self._is_running:
            msg = "This runner runs already; wait for it to end, or use another one."
            raise WorkflowRunnerException(msg)
        self._is_running = True
        context = self.context
        run = ActiveRun(self.graph, context, context.log, RunOptions(), streaming=context.is_streaming())
        if run.output_kinds is None:
            run.output_kinds = context.classify_yielded_output
        runner = SuperstepRunner(run)
        try:
            for event in await context.drain_events():
                yield event
            for _ in range(self.graph.max_iterations):
                await runner.superstep()
                for event in await context.drain_events():
                    yield event
                if not context.messages:
                    return
            if context.messages:
                raise convergence_error(self.graph.name, context, self.graph.max_iterations)
        finally:
            self._is_running = False

    async def restore_from_checkpoint(self, checkpoint_id: str, storage: CheckpointStorage | None = None) -> None:
        """Put context, shared state and executors back to a checkpoint; `storage` is for a context without one.

        Raises:
            GraphMismatchError: it was saved with another graph hash.
            WorkflowCheckpointException: there is no storage, or the id is unknown.
        """
        from agentbench.checkpoints.access import load_checkpoint  # noqa: PLC0415 - most runs load none
        from agentbench.workflows.persist.snapshot import restore_checkpoint  # noqa: PLC0415 - as above

        source = self.context.storage if self.context.has_checkpointing() else storage
        if source is None:
            msg = "There is no storage to restore from. Pass storage=, or a context with a checkpoint storage."
            raise WorkflowCheckpointException(msg)
        await restore_checkpoint(self.graph, self.context, await load_checkpoint(source, checkpoint_id))
