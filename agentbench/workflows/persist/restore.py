"""From a checkpoint back into a workflow instance: all of it is looked at before anything of the instance changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench.checkpoints.access import checkpoint_error
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.persist.graph_changes import graph_mismatch
from agentbench.workflows.persist.writer import EXECUTOR_STATE, FAN_IN_BUFFERS

if TYPE_CHECKING:
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.pages.runner_context import Buffers
    from agentbench.workflows.run.workflow import Workflow


class _Content(NamedTuple):
    state: dict[str, Any]
    own: dict[str, dict[str, Any]]
    buffers: Buffers


async def restore(workflow: Workflow, checkpoint: WorkflowCheckpoint) -> None:
    """Put a workflow instance back to where a checkpoint was taken. Requests are not re-emitted here.

    Where that fails, shared state, messages and requests of the instance are as they were.

    Raises:
        GraphMismatchError: the checkpoint belongs to another graph.
        WorkflowCheckpointException: the checkpoint is damaged, or an executor is unknown or refuses its state.
    """
    require_fitting(workflow, checkpoint)
    try:
        content = _looked_through(checkpoint, workflow.executors)
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        raise checkpoint_error(error, f"Checkpoint {checkpoint.checkpoint_id!r} cannot be restored") from error
    before = workflow.state.export_state()
    workflow.state.clear()
    workflow.state.import_state(content.state)
    try:
        for executor_id, saved in content.own.items():
            await _give_back(workflow.executors[executor_id], saved, checkpoint.checkpoint_id)
    except BaseException:
        workflow.state.clear()
        workflow.state.import_state(before)
        raise
    bus = workflow.runner.context
    bus.set_buffers(content.buffers)
    await bus.apply_checkpoint(checkpoint)
    workflow.runner.iteration = checkpoint.iteration_count


def require_fitting(workflow: Workflow, checkpoint: WorkflowCheckpoint) -> None:
    """Refuse a checkpoint that this workflow cannot go on from, whatever it holds.

    Raises:
        WorkflowCheckpointException: it has a format that is not known here.
        GraphMismatchError: it belongs to another graph.
    """
    checkpoint.require_known_version()
    mismatch = graph_mismatch(workflow, checkpoint)
    if mismatch is not None:
        raise mismatch


async def _give_back(executor: Executor, saved: dict[str, Any], checkpoint_id: str) -> None:
    try:
        await executor.on_checkpoint_restore(saved)
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        msg = f"Executor {executor.id!r} cannot restore its state from checkpoint {checkpoint_id!r}"
        raise checkpoint_error(error, msg) from error


# ---- looking through -----------------------------------------------------------------------------


def _looked_through(checkpoint: WorkflowCheckpoint, executors: Mapping[str, Executor]) -> _Content:
    where = f"Checkpoint {checkpoint.checkpoint_id!r}"
    _require_messages(checkpoint.messages, where)
    requests: Mapping[str, object] = checkpoint.pending_request_info_events
    for request_id, event in requests.items():
        if not isinstance(event, WorkflowEvent) or event.type != "request_info":
            raise WorkflowCheckpointException(_not_restorable(where, f"the request {request_id!r}", event))
    state = dict(checkpoint.state)
    own = state.pop(EXECUTOR_STATE, {})
    _require_own(own, executors, where)
    buffers = state.pop(FAN_IN_BUFFERS, {})
    for key, waiting in buffers.items():
        _require_messages(waiting, f"{where}, fan-in {key!r}")
    return _Content(state, own, buffers)


def _require_messages(messages: Mapping[str, object], where: str) -> None:
    for source, queued in messages.items():
        if not isinstance(queued, list):
            msg = f"{where} holds a {type(queued).__name__} as the messages of {source!r}; expected a list."
            raise WorkflowCheckpointException(msg)
        for place, message in enumerate(queued):
            if not isinstance(message, WorkflowMessage):
                raise WorkflowCheckpointException(_not_restorable(where, f"message {place} of {source!r}", message))


def _not_restorable(where: str, what: str, found: object) -> str:
    return (
        f"{where} cannot be restored: {what} came back from the storage as a {type(found).__name__}. "
        "A storage that writes text has to write what checkpoint.to_json() returns, and to load it with "
        "WorkflowCheckpoint.from_json()."
    )


def _require_own(own: Any, executors: Mapping[str, Executor], where: str) -> None:
    if not isinstance(own, dict):
        msg = f"{where} holds no dict under {EXECUTOR_STATE!r}; it was not written by an engine."
        raise WorkflowCheckpointException(msg)
    for executor_id, saved in own.items():
        if executor_id not in executors:
            msg = f"{where} holds state of executor {executor_id!r}, which this workflow lacks."
            raise WorkflowCheckpointException(msg)
        if not isinstance(saved, dict) or not all(isinstance(key, str) for key in saved):
            msg = f"{where}: the state of executor {executor_id!r} is not a dict with text keys."
            raise WorkflowCheckpointException(msg)
