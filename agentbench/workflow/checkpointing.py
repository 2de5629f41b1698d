"""Between a running workflow and its checkpoint storage: what goes into a checkpoint, and back out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._clock import Clock, IdSource, iso_utc
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import head_of
from agentbench.exceptions import CheckpointNotFoundError, GraphMismatchError, WorkflowCheckpointException
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.graph import signature_differences
from agentbench.workflow.run_kwargs import RUN_KWARGS

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflow.executor import Executor
    from agentbench.workflow.runner_context import InProcRunnerContext
    from agentbench.workflow.state import State
    from agentbench.workflow.workflow import Workflow

# Reserved keys of shared state.
EXECUTOR_STATE = "_executor_state"
FAN_IN_BUFFERS = "_fan_in_buffers"


class CheckpointWriter:
    """Saves the checkpoints of one run, linked to each other.

    Args:
        workflow: whose graph the checkpoints belong to.
        storage: where they go.
        chain: their `workflow_name`.
        run_id: written into their metadata.
        clock: gives their timestamps.
        ids: gives their ids.
        metadata: the caller's, merged into each.
        strict: a failed save is raised; else it becomes a `warning` event and the run goes on.
    """

    def __init__(  # noqa: PLR0913 - facts of a run, all by name
        self,
        workflow: Workflow,
        storage: CheckpointStorage,
        *,
        chain: str,
        run_id: str,
        clock: Clock,
        ids: IdSource,
        metadata: Mapping[str, Any],
        strict: bool,
    ) -> None:
        self._workflow = workflow
        self._storage = storage
        self._chain = chain
        self._run_id = run_id
        self._clock = clock
        self._ids = ids
        self._metadata = metadata
        self._strict = strict
        self._seq: int | None = None
        #: Id of the checkpoint that the next one follows.
        self.previous_id: str | None = None

    async def save(
        self,
        iteration: int,
        source: str,
        *,
        writers: Sequence[str] = (),
        duration_s: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CheckpointInfo | None:
        """Save what stands at this boundary; None when that failed and the run is not strict.

        Raises:
            WorkflowCheckpointException: the save failed and the run is strict.
        """
        log = self._workflow.runner.context.log  # this run's: the storage may outlive it
        try:
            checkpoint = await self._compose(iteration, source, writers, duration_s, metadata)
            await self._storage.save(checkpoint)
        except Exception as error:
            if self._strict:
                raise _as_checkpoint_error(error, f"The checkpoint of superstep {iteration} was not saved") from error
            log.append(
                WorkflowEvent.warning(
                    f"The checkpoint of superstep {iteration} was not saved: {error} The run goes on without it; "
                    "strict_checkpoints=True makes this an error."
                )
            )
            return None
        self.previous_id = checkpoint.checkpoint_id
        self._seq = checkpoint.metadata["seq"]
        info = CheckpointInfo.of(checkpoint)
        log.checkpoints.append(info)
        if log.observed:
            log.append(WorkflowEvent("checkpoint_saved", info))
        return info

    async def _compose(
        self,
        iteration: int,
        source: str,
        writers: Sequence[str],
        duration_s: float | None,
        metadata: Mapping[str, Any] | None,
    ) -> WorkflowCheckpoint:
        workflow = self._workflow
        bus = workflow.runner.context
        facts: dict[str, Any] = {
            **self._metadata,
            **(metadata or {}),
            "seq": await self._next_seq(),
            "source": source,
            "run_id": self._run_id,
            "writers": list(writers),
            "sizes": {"messages": sum(map(len, bus.messages.values())), "requests": len(bus.requests)},
            "graph_signature": workflow.graph_signature,
        }
        if duration_s is not None:
            facts["duration_s"] = duration_s
        return WorkflowCheckpoint(
            self._chain,
            workflow.graph_signature_hash,
            checkpoint_id=self._ids.new_id("cp"),
            previous_checkpoint_id=self.previous_id,
            timestamp=iso_utc(self._clock.time_ns()),
            messages={source_id: list(queued) for source_id, queued in bus.messages.items()},
            state=await _export(workflow, bus),
            pending_request_info_events=dict(bus.requests),
            iteration_count=iteration,
            metadata=facts,
        )

    async def _next_seq(self) -> int:
        if self._seq is None:
            head = await head_of(self._storage, self._chain)
            self._seq = 0 if head is None else head.seq
        return self._seq + 1


async def _export(workflow: Workflow, bus: InProcRunnerContext) -> dict[str, Any]:
    """Committed state, the executors' own state and the fan-in buffers."""
    state = workflow.state.export_state()
    if not workflow.settings.checkpoint_run_kwargs:
        state.pop(RUN_KWARGS, None)
    state[EXECUTOR_STATE] = {e.id: await _saved_by(e) for e in workflow.executors.values() if e.keeps_state}
    if bus.get_buffers():
        state[FAN_IN_BUFFERS] = bus.get_buffers()
    return state


async def _saved_by(executor: Executor) -> dict[str, Any]:
    try:
        own: Any = await executor.on_checkpoint_save()
    except Exception as error:
        msg = f"on_checkpoint_save of executor {executor.id!r} raised {type(error).__name__}: {error}."
        raise WorkflowCheckpointException(msg, error) from error
    if not isinstance(own, dict) or not all(isinstance(key, str) for key in own):
        msg = (
            f"on_checkpoint_save of executor {executor.id!r} returned {own!r}; "
            "expected a dict with text keys, as on_checkpoint_restore gets it back."
        )
        raise WorkflowCheckpointException(msg)
    return dict(own)


async def load(storage: CheckpointStorage, checkpoint_id: str) -> WorkflowCheckpoint:
    """Load a checkpoint; every failure is a `WorkflowCheckpointException`."""
    try:
        checkpoint = await storage.load(checkpoint_id)
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        msg = f"Checkpoint {checkpoint_id!r} cannot be loaded"
        raise _as_checkpoint_error(error, msg) from error
    if checkpoint is None:  # a third-party storage may say it this way
        raise CheckpointNotFoundError(checkpoint_id)
    return checkpoint


async def restore(workflow: Workflow, checkpoint: WorkflowCheckpoint) -> None:
    """Put a workflow instance back to where a checkpoint was taken. Requests are not re-emitted here.

    Raises:
        GraphMismatchError: the checkpoint belongs to another graph.
        WorkflowCheckpointException: an executor is unknown or refuses its state.
    """
    require_same_graph(workflow, checkpoint)
    state = dict(checkpoint.state)
    own = state.pop(EXECUTOR_STATE, {})
    buffers = state.pop(FAN_IN_BUFFERS, {})
    bus = workflow.runner.context
    workflow.state.clear()
    workflow.state.import_state(state)
    await _restore_executors(workflow.executors, own, checkpoint.checkpoint_id)
    bus.set_buffers(buffers)
    await bus.apply_checkpoint(checkpoint)
    workflow.runner.iteration = checkpoint.iteration_count


def require_same_graph(workflow: Workflow, checkpoint: WorkflowCheckpoint) -> None:
    """Raise GraphMismatchError if the checkpoint belongs to another graph."""
    if checkpoint.graph_signature_hash != workflow.graph_signature_hash:
        stored = checkpoint.metadata.get("graph_signature")
        differences = signature_differences(stored, workflow.graph_signature) if isinstance(stored, dict) else []
        raise GraphMismatchError(_mismatch(workflow, checkpoint, differences), differences=differences)


def _mismatch(workflow: Workflow, checkpoint: WorkflowCheckpoint, differences: Sequence[Mapping[str, Any]]) -> str:
    changed = ", ".join(f"{d['path']} {_change(d)}" for d in differences[:8])
    return (
        f"Checkpoint {checkpoint.checkpoint_id!r} was made by another graph than that of workflow {workflow.name!r}. "
        + (f"Since then: {changed}{', ...' if len(differences) > 8 else ''}. " if changed else "")
        + "Rebuild the graph as it was, or start a new run."
    )


def _change(difference: Mapping[str, Any]) -> str:
    if difference["before"] is None:
        return "was added"
    return "was removed" if difference["after"] is None else "was changed"


async def _restore_executors(executors: Mapping[str, Executor], own: Any, checkpoint_id: str) -> None:
    if not isinstance(own, dict):
        msg = f"Checkpoint {checkpoint_id!r} holds no dict under {EXECUTOR_STATE!r}; it was not written by an engine."
        raise WorkflowCheckpointException(msg)
    for executor_id, saved in own.items():
        executor = executors.get(executor_id)
        if executor is None:
            msg = f"Checkpoint {checkpoint_id!r} holds state of executor {executor_id!r}, which this workflow lacks."
            raise WorkflowCheckpointException(msg)
        if not isinstance(saved, dict) or not all(isinstance(key, str) for key in saved):
            msg = f"Checkpoint {checkpoint_id!r}: the state of executor {executor_id!r} is not a dict with text keys."
            raise WorkflowCheckpointException(msg)
        try:
            await executor.on_checkpoint_restore(saved)
        except Exception as error:
            msg = f"Executor {executor_id!r} cannot restore its state from checkpoint {checkpoint_id!r}"
            raise _as_checkpoint_error(error, msg) from error


def _as_checkpoint_error(error: Exception, what: str) -> WorkflowCheckpointException:
    if isinstance(error, WorkflowCheckpointException):
        return error
    return WorkflowCheckpointException(f"{what}: {type(error).__name__}: {error}", error)


def committed_state(state: State) -> dict[str, Any]:
    """What a view shows of shared state: everything committed but the engine's own keys."""
    return {key: value for key, value in state.export_state().items() if not key.startswith("_")}
