"""What a run says of itself while it is driven: its status, its events, and what waits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbench._display import Displayable, call_view
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.event_log import EventLog
    from agentbench.workflows.engine.run_state import RunState
    from agentbench.workflows.executors.message import WorkflowMessage
    from agentbench.workflows.graph.boundary import PauseReason
    from agentbench.workflows.run.execution import Execution
    from agentbench.workflows.run.report import StepReport
    from agentbench.workflows.run.workflow import Workflow


class RunStatus(Displayable):
    """The part of a run handle that only reads."""

    run_id: str
    workflow: Workflow
    _execution: Execution
    _log: EventLog
    _state: RunState
    _storage: CheckpointStorage | None
    _inbox: list[WorkflowMessage]
    _responses: dict[str, Any]
    _superstep: int
    _pause_requested: bool
    _pause_reason: PauseReason | None
    _read_only: bool
    _last_report: StepReport | None

    @property
    def status(self) -> WorkflowRunState:
        """State of the run; `IN_PROGRESS` while it is paused, and after a restore."""
        if self._log.state is None:
            return WorkflowRunState.STARTED
        return self._log.state if self._execution.begun or self._execution.ended else WorkflowRunState.IN_PROGRESS

    @property
    def error(self) -> BaseException | None:
        """What made the run fail."""
        return self._execution.error

    @property
    def superstep(self) -> int:
        """The last finished superstep."""
        return self._superstep

    @property
    def last_report(self) -> StepReport | None:
        """The report of the last superstep, of one that failed too; None before the first."""
        return self._last_report

    @property
    def events(self) -> list[WorkflowEvent[Any]]:
        """Every event of this run."""
        return self._log.events()

    @property
    def event_count(self) -> int:
        """How many events there are."""
        return len(self._log)

    def events_since(self, count: int) -> list[WorkflowEvent[Any]]:
        """Return the events after the first `count`; in a long run much cheaper than `events[count:]`."""
        return self._log.events_from(count)

    @property
    def checkpoints(self) -> list[CheckpointInfo]:
        """Infos of the checkpoints in the order of creation, without those after one that was restored."""
        return list(self._log.checkpoints)

    @property
    def last_checkpoint(self) -> CheckpointInfo | None:
        """Info of the latest checkpoint."""
        return self._log.checkpoints[-1] if self._log.checkpoints else None

    @property
    def storage(self) -> CheckpointStorage | None:
        """Where this run's checkpoints go; None when it saves none."""
        return self._storage

    @property
    def pending_messages(self) -> list[WorkflowMessage]:
        """Messages that are queued for the next superstep."""
        return self._state.queued_messages() + self._inbox

    @property
    def pending_requests(self) -> list[WorkflowEvent[Any]]:
        """Open requests."""
        return [event for request_id, event in self._state.requests.items() if request_id not in self._responses]

    @property
    def state(self) -> dict[str, Any]:
        """Committed shared state, without the engine's own keys."""
        return {k: v for k, v in self._state.state.export_state().items() if not k.startswith("_")}

    @property
    def outputs(self) -> list[Any]:
        """Values yielded as output."""
        return [e.data for e in self._log.outputs]

    @property
    def paused(self) -> bool:
        """Paused at a boundary, or about to pause at the next one."""
        return self._pause_requested or self._pause_reason is not None

    @property
    def pause_reason(self) -> PauseReason | None:
        """Why the run paused."""
        return self._pause_reason

    @property
    def is_over(self) -> bool:
        """Ended, with no request open and nothing queued that could continue it."""
        if self._read_only:
            return True
        waits = self._inbox or self._responses or self.status is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
        return self._execution.ended and not waits

    def save(self, path: str | Path) -> Path:
        """Write this run into one HTML file, in which anybody steps back and forth through what happened.

        The file needs no kernel, no network and no trust. It has the graph with its states, the messages, events,
        outputs and the log after each superstep, and the shared state as the run's checkpoints have it, else its
        events. Secrets are masked: values under names that say so. The run may be over, paused or waiting. A run that
        began at a checkpoint has the supersteps before it too: of a fork as the run that it was forked from had them,
        else as far as the stored checkpoints tell, which hold no outputs and no logs.

        Args:
            path: Of the file; one that is there is replaced.

        Returns:
            The path.

        Raises:
            MissingExtraError: The notebook extra is not installed.

        Example:
            >>> run = workflow.start("a report on rain", checkpoint_storage=InMemoryCheckpointStorage())
            >>> await run.result()
            >>> run.save("run.html")  # open it in a browser, or send it
            PosixPath('run.html')
        """
        written: Path = call_view("agentbench.notebook.stepping.saved_run:save_run", self, path)
        return written

    def __repr__(self) -> str:
        pause = f", paused: {self._pause_reason}" if self._pause_reason is not None else ""
        return f"WorkflowRun({self.workflow.name!r}, {self.run_id}, superstep {self.superstep}, {self.status}{pause})"
