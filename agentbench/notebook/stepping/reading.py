"""The properties of a stepper: everything that can be read, and nothing that changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from agentbench import _bridge
from agentbench._bridge import EngineFuture
from agentbench.checkpoints.editing import StagedEdits
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import NestedLoopError
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.model.messages import StepperStatus
from agentbench.notebook.stepping.screen import StepperScreen
from agentbench.notebook.stepping.session import StepperSession
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.break_places import Breakpoint
from agentbench.workflows.run.report import StepReport
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.run import WorkflowRun

__all__ = ["StepperReading"]

T = TypeVar("T")


class StepperReading:
    """The properties of `Stepper`."""

    _session: StepperSession
    _screen: StepperScreen

    @property
    def handle(self) -> WorkflowRun:
        """The run being driven. Its coroutines belong on the loop of the stepper: `run_sync(stepper.handle.plan())`."""
        if self._session.handle is None:
            msg = "The run is not open yet. With loop='kernel' it opens at the first await: await stepper.astep()."
            raise RuntimeError(msg)
        return self._session.handle

    @property
    def status(self) -> StepperStatus:
        """The status of the stepper; equal to its plain text, such as `"paused"`."""
        return self._session.model.status

    @property
    def allowed(self) -> tuple[str, ...]:
        """The calls that are possible now, in the order of the buttons; any other raises `StepperStateError`."""
        with self._session.reading() as model:
            return model.allowed

    @property
    def superstep(self) -> int | None:
        """The last finished superstep, `None` before the first."""
        return self._session.model.facts.superstep

    @property
    def run_id(self) -> str:
        """Id of the run; another one after a fork."""
        return self._session.model.facts.run_id

    @property
    def checkpoint_id(self) -> str | None:
        """Id of the displayed checkpoint: the last one, or an earlier one after `back()`."""
        with self._session.reading() as model:
            return model.line.displayed_id

    @property
    def checkpoints(self) -> list[CheckpointInfo]:
        """The checkpoints that lead to now, oldest first, those of earlier runs before a fork included."""
        with self._session.reading() as model:
            return [past.info for past in model.past]

    @property
    def state(self) -> dict[str, Any]:
        """The displayed shared state: the current one, or that of the checkpoint being viewed.

        Raises:
            NestedLoopError: On the loop of the runs, with an earlier checkpoint; use `await stepper.astate()`.
        """
        viewed = self._viewed_id()
        if viewed is None:
            return self.handle.state
        return self._wait("stepper.astate", lambda: self._session.start(self._session.state_at(viewed)))

    async def astate(self) -> dict[str, Any]:
        """As `state`, for cells that await."""
        viewed = self._viewed_id()
        return self.handle.state if viewed is None else await wait(self._session.start(self._session.state_at(viewed)))

    def _viewed_id(self) -> str | None:
        with self._session.reading() as model:
            return None if model.viewing is None else model.line.displayed_id

    @property
    def pending(self) -> list[WorkflowEvent[Any]]:
        """The requests that wait for an answer, oldest first; `respond` answers them."""
        return list(self._session.model.facts.requests)

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """The breakpoints, in the order in which they were set."""
        return list(self._session.model.breakpoints)

    @property
    def hit(self) -> Breakpoint | None:
        """The breakpoint that paused the run, `None` while it moves and after other pauses."""
        return self._session.model.hit

    @property
    def reports(self) -> list[StepReport]:
        """The reports of all supersteps taken here, those before a fork included."""
        return list(self._session.model.reports)

    @property
    def result(self) -> WorkflowRunResult | None:
        """The result of the run once it is done; `None` before."""
        if self.status is not StepperStatus.DONE:
            return None
        events = self.handle.events
        result = WorkflowRunResult(
            (event for event in events if event.type not in ("started", "status")),
            [event for event in events if event.type == "status"],
        )
        result.checkpoints = self.handle.checkpoints
        return result

    @property
    def error(self) -> BaseException | None:
        """The exception that made the run fail, `None` if it did not."""
        return self._session.model.facts.error

    def edits(self) -> StagedEdits:
        """The staged edits of the displayed checkpoint, in the order in which they are applied; a cell shows a diff."""
        with self._session.reading() as model:
            return StagedEdits(model.edits)

    def frames(self) -> Any:
        """The run as tables: checkpoints, messages, state, events and so on."""
        from agentbench.notebook.frames.frames import Frames

        return Frames(self.handle)

    @property
    def text(self) -> str:
        """The panel in words: one header line, the graph with its states, and the pending requests."""
        return self._screen.text

    def _wait(self, call: str, begin: Callable[[], EngineFuture[T]]) -> T:
        """Wait for the future that `begin` returns; an interrupt ends both, wherever it comes."""
        self._require_blocking(call)
        with _bridge.cancelled_with_caller():
            return _bridge.wait_sync(begin())

    def _require_blocking(self, call: str) -> None:
        """Raise where waiting would never end; `call` is the form to await."""
        if self._screen.on_own_loop:
            raise NestedLoopError(call, "the stepper runs on the loop of this very thread")
        _bridge.require_blocking(call)
