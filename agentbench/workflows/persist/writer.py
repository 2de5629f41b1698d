"""From a running workflow to its checkpoint storage: what goes into a checkpoint, and how the chain goes on."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from agentbench._clock import Clock, IdSource, iso_utc
from agentbench._copying import isolate_or_same
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import checkpoint_error, head_of, save_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import SupportsCheckpointInfos
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.run_kwargs import RUN_KWARGS

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.state import State
    from agentbench.workflows.run.workflow import Workflow

# Reserved keys of shared state.
EXECUTOR_STATE = "_executor_state"
FAN_IN_BUFFERS = "_fan_in_buffers"


class CheckpointWriter:
    """Saves the checkpoints of one run, linked to each other.

    Several runs may write one chain at once, unless one of them checks the head: they are branches, each linked to its
    own last checkpoint, and where their numbers are the same, time decides the order.

    Args:
        workflow: whose graph the checkpoints belong to.
        storage: where they go.
        chain: their `workflow_name`.
        run_id: written into their metadata.
        clock: gives their timestamps.
        ids: gives their ids.
        metadata: the caller's, merged into each.
        strict: a failed save is raised; else it becomes a `warning` event, the first one of the run a `RuntimeWarning`
            too, and the run goes on.
        check_head: a chain that somebody else has moved on ends the run.
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
        check_head: bool = False,
    ) -> None:
        self._workflow = workflow
        self._storage = storage
        self._chain = chain
        self._run_id = run_id
        self._clock = clock
        self._ids = ids
        self._metadata = isolate_or_same(dict(metadata))
        self._strict = strict
        self._check_head = check_head
        self._keepers = [e for e in workflow.executors.values() if e.keeps_state]
        # Sequence number of the chain's newest checkpoint, as far as is known here.
        self._head_seq: int | None = None
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
            WorkflowBusyError: somebody else has moved the chain on, and the run checks that.
        """
        log = self._workflow.runner.context.log  # this run's: the storage may outlive it
        try:
            checkpoint = await self._compose(iteration, source, writers, duration_s, metadata)
            await self._put(checkpoint)
        except Exception as error:
            self._head_seq = None  # it may have arrived all the same
            what = f"The checkpoint of superstep {iteration} was not saved"
            if self._check_head and isinstance(error, WorkflowBusyError):
                raise
            if self._strict and isinstance(error, WorkflowCheckpointException):
                raise
            if self._strict:
                raise checkpoint_error(error, what) from error
            text = f"{_reason(error, what)} The run goes on without it; strict_checkpoints=True makes this an error."
            log.append(WorkflowEvent.warning(text))
            if not log.told_of_unsaved:  # few people look for events of a run that seems to have gone well
                log.told_of_unsaved = True
                warnings.warn(text, RuntimeWarning, stacklevel=_callers_level())
            return None
        self.previous_id = checkpoint.checkpoint_id
        self._head_seq = checkpoint.metadata[keys.SEQ]
        info = CheckpointInfo.of(checkpoint, own_metadata=True)
        log.checkpoints.append(info)
        if log.observed:
            log.append(WorkflowEvent("checkpoint_saved", info))
        return info

    async def look_at_head(self) -> None:
        """Note where the chain ends now, for a run that checks that nobody else moves it on."""
        if self._check_head:
            self._head_seq = await self._find_head()

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
        facts = self._metadata.copy()
        if metadata:
            facts.update(isolate_or_same(metadata))
        head_seq = await self._find_head() if self._head_seq is None else self._head_seq
        facts[keys.SEQ] = head_seq + 1
        facts[keys.SOURCE] = source
        facts[keys.RUN_ID] = self._run_id
        facts[keys.WRITERS] = list(writers)
        facts[keys.SIZES] = {"messages": sum(map(len, bus.messages.values())), "requests": len(bus.requests)}
        facts[keys.GRAPH_SIGNATURE] = workflow.graph_signature
        if duration_s is not None:
            facts[keys.DURATION_S] = duration_s
        return WorkflowCheckpoint(
            self._chain,
            workflow.graph_signature_hash,
            self._ids.new_id("cp"),
            self.previous_id,
            iso_utc(self._clock.time_ns()),
            {source_id: list(queued) for source_id, queued in bus.messages.items()},
            await self._export(),
            dict(bus.requests),
            iteration,
            facts,
        )

    async def _export(self) -> dict[str, Any]:
        """Committed state, the executors' own state and the fan-in buffers."""
        workflow = self._workflow
        state = workflow.state.export_state()
        if not workflow.settings.checkpoint_run_kwargs:
            state.pop(RUN_KWARGS, None)
        state[EXECUTOR_STATE] = {executor.id: await _saved_by(executor) for executor in self._keepers}
        buffers = workflow.runner.context.get_buffers()
        if buffers:
            state[FAN_IN_BUFFERS] = buffers
        return state

    async def _put(self, checkpoint: WorkflowCheckpoint) -> None:
        expected_seq = checkpoint.metadata[keys.SEQ] - 1 if self._check_head else None
        await save_checkpoint(self._storage, checkpoint, expected_seq)

    async def _find_head(self) -> int:
        """Sequence number of the chain's newest checkpoint; 0 for an empty chain."""
        try:
            head = await head_of(self._storage, self._chain)
        except Exception as error:
            if self._check_head or isinstance(self._storage, SupportsCheckpointInfos):
                raise
            # A neighbour that cannot be read any more is no reason to lose this run's checkpoints too.
            count = len(await self._storage.list_checkpoint_ids(workflow_name=self._chain))
            what = f"The latest checkpoint of chain {self._chain!r} cannot be read"
            text = f"{_reason(error, what)} The numbers of this run's checkpoints go on from how many there are."
            self._workflow.runner.context.log.append(WorkflowEvent.warning(text))
            return count
        return 0 if head is None else head.seq


async def _saved_by(executor: Executor) -> dict[str, Any]:
    try:
        own: Any = await executor.on_checkpoint_save()
    except Exception as error:
        msg = f"on_checkpoint_save of executor {executor.id!r} raised {type(error).__name__}: {str(error).rstrip('.')}."
        raise WorkflowCheckpointException(msg, error) from error
    if not isinstance(own, dict) or not all(isinstance(key, str) for key in own):
        msg = (
            f"on_checkpoint_save of executor {executor.id!r} returned {own!r}; "
            "expected a dict with text keys, as on_checkpoint_restore gets it back."
        )
        raise WorkflowCheckpointException(msg)
    return dict(own)


def _callers_level() -> int:
    """`stacklevel`, for a warning of the caller of this, that names the nearest code that is not the library's."""
    level = 1
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - what warnings itself goes by
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("agentbench."):
        level, frame = level + 1, frame.f_back
    return level


def _reason(error: Exception, what: str) -> str:
    """What could not be done and why, as sentences."""
    text = str(checkpoint_error(error, what))
    return text if text.startswith(what) else f"{what}: {text}"


def committed_state(state: State) -> dict[str, Any]:
    """What a view shows of shared state: everything committed but the engine's own keys."""
    return {key: value for key, value in state.export_state().items() if not key.startswith("_")}
