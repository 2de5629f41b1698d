"""Starts runs by function instead of by method, with a checkpoint manager beside the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench.workflows.run.run import WorkflowRun

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.run.workflow import Workflow


class InProcessExecution:
    """Starts and resumes runs inside this process; each run has its own state.

    Example:
        >>> manager = CheckpointManager.create_in_memory()
        >>> run = await InProcessExecution.run_streaming(workflow, "to be", manager)
        >>> async for event in run.watch_stream():
        ...     print(event.type)
    """

    @staticmethod
    async def run_streaming(
        workflow: Workflow,
        input: Any,  # noqa: A002 - the published name
        checkpoint_manager: CheckpointManager | CheckpointStorage | None = None,
    ) -> WorkflowRun:
        """Return a handle on a new run; nothing runs until it is driven."""
        return workflow.start(input, checkpoint_storage=checkpoint_manager)

    @staticmethod
    async def run(
        workflow: Workflow,
        input: Any,  # noqa: A002 - as above
        checkpoint_manager: CheckpointManager | CheckpointStorage | None = None,
    ) -> WorkflowRun:
        """Drive a new run until it is idle, and return its handle."""
        handle = workflow.start(input, checkpoint_storage=checkpoint_manager)
        await handle.result()
        return handle

    @staticmethod
    async def resume_streaming(
        workflow: Workflow,
        checkpoint_info: CheckpointInfo | str,
        checkpoint_manager: CheckpointManager | CheckpointStorage,
    ) -> WorkflowRun:
        """Return a handle on a run that continues from a checkpoint, possibly of another instance of the same graph.

        WorkflowCheckpointException: it cannot be loaded, or belongs to another graph (`GraphMismatchError`).
        """
        handle = workflow.start(resume_from=checkpoint_info, checkpoint_storage=checkpoint_manager)
        try:
            await handle.plan()
        except BaseException:
            await handle.cancel()
            raise
        return handle
