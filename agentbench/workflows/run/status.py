"""The readable state of a run while it is driven: its status, events, and pending work."""

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
    """The read-only part of a run handle."""

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
        """The state of the run; `IN_PROGRESS` while it is paused, and after a restore."""
        if self._log.state is None:
            return WorkflowRunState.STARTED
        return self._log.state if self._execution.begun or self._execution.ended else WorkflowRunState.IN_PROGRESS

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

    def save(self, path: str | Path) -> Path:
        """Write this run to one HTML file, in which anyone can step back and forth through it.

        The file needs no kernel and no network, and need not be trusted. It contains the graph with its states, the
        messages, events, outputs and log after each superstep, and the shared state from the run's checkpoints or else
        from its events. Values under secret names are masked. The run may be over, paused or waiting. A run that began
        at a checkpoint includes the earlier supersteps too: a fork takes them from its original run, other runs from
        the stored checkpoints, which contain no outputs and no logs.

        Args:
            path: The path of the file; an existing file is replaced.

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
