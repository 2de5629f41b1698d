"""What a run has done so far, to be read at any time."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from agentbench._bridge import run_sync
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.run.execution import ABSENT
from agentbench.workflows.run.first_input import find_input
from agentbench.workflows.run.revisions import RunRevisions

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.active_run import RunState
    from agentbench.workflows.engine.event_log import EventLog
    from agentbench.workflows.executors.message import WorkflowMessage
    from agentbench.workflows.graph.boundary import PauseReason
    from agentbench.workflows.run.execution import Execution
    from agentbench.workflows.run.run import WorkflowRun
    from agentbench.workflows.run.step_report import StepReport


class ReadableRun(RunRevisions):
    """The properties of `WorkflowRun` that only read."""

    started_from: str | None
    _execution: Execution
    _found_input: Any
    _inbox: list[WorkflowMessage]
    _last_report: StepReport | None
    _log: EventLog
    _origin: weakref.ref[WorkflowRun] | None
    _pause_reason: PauseReason | None
    _pause_requested: bool
    _read_only: bool
    _responses: dict[str, Any]
    _state: RunState
    _storage: CheckpointStorage | None
    _superstep: int

    @property
    def status(self) -> WorkflowRunState:
        """The state of the run; `IN_PROGRESS` while it is paused, and after a restore."""
        if self._log.state is None:
            return WorkflowRunState.STARTED
        return self._log.state if self._execution.begun or self._execution.ended else WorkflowRunState.IN_PROGRESS

    @property
    def input(self) -> Any:
        """The input with which this run, or the run that it continues, was started; None if that is not known."""
        if self._found_input is ABSENT and self._storage is not None and self.started_from is not None:
            run_sync(self._find_input())
        return None if self._found_input is ABSENT else self._found_input

    async def _find_input(self) -> Any:
        if self._found_input is ABSENT and self._storage is not None and self.started_from is not None:
            self._found_input = await find_input(self._storage, self.started_from)
        return self._found_input

    @property
    def error(self) -> BaseException | None:
        """The error that made the run fail."""
        return self._execution.error

    @property
    def superstep(self) -> int:
        """The number of the last finished superstep, counted from 0; also 0 before the first one."""
        return self._superstep

    @property
    def last_report(self) -> StepReport | None:
        """The report of the last superstep, even if it failed; None before the first."""
        return self._last_report

    @property
    def events(self) -> list[WorkflowEvent[Any]]:
        """All events of this run."""
        return self._log.events()

    @property
    def event_count(self) -> int:
        """The number of events."""
        return len(self._log)

    def events_since(self, count: int) -> list[WorkflowEvent[Any]]:
        """Return the events after the first `count`; in a long run much cheaper than `events[count:]`."""
        return self._log.events_from(count)

    @property
    def checkpoints(self) -> list[CheckpointInfo]:
        """Infos of the checkpoints in the order of creation, without those after a restored one."""
        return list(self._log.checkpoints)

    @property
    def last_checkpoint(self) -> CheckpointInfo | None:
        """The info of the latest checkpoint."""
        return self._log.checkpoints[-1] if self._log.checkpoints else None

    @property
    def storage(self) -> CheckpointStorage | None:
        """The storage for this run's checkpoints; None if it saves none."""
        return self._storage

    @property
    def pending_messages(self) -> list[WorkflowMessage]:
        """The messages queued for the next superstep."""
        return self._state.queued_messages() + self._inbox

    @property
    def pending_requests(self) -> list[WorkflowEvent[Any]]:
        """The open requests."""
        return [event for request_id, event in self._state.requests.items() if request_id not in self._responses]

    @property
    def state(self) -> dict[str, Any]:
        """The committed shared state, without the engine's own keys."""
        return {k: v for k, v in self._state.state.export_state().items() if not k.startswith("_")}

    @property
    def outputs(self) -> list[Any]:
        """The values yielded as output."""
        return [e.data for e in self._log.outputs]

    @property
    def paused(self) -> bool:
        """Whether the run is paused at a boundary, or about to pause at the next one."""
        return self._pause_requested or self._pause_reason is not None

    @property
    def pause_reason(self) -> PauseReason | None:
        """The reason why the run paused."""
        return self._pause_reason

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, with no open request and nothing queued that could continue it."""
        if self._read_only:
            return True
        waits = self._inbox or self._responses or self.status is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
        return self._execution.ended and not waits

    @property
    def origin(self) -> WorkflowRun | None:
        """The run from which this one was forked; None if it is not a fork, or that run is no longer used elsewhere."""
        return None if self._origin is None else self._origin()
