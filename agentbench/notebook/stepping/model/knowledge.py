"""Pure: what a stepper knows of its run, and which requests are allowed; `StepperModel` decides on top of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from agentbench.checkpoints.editing import Edit, EditDesk
from agentbench.exceptions import StepperClosed, StepperStateError
from agentbench.notebook.history.activity import Activity, ElementStates
from agentbench.notebook.history.log import LogLine
from agentbench.notebook.stepping.model.checkpoint_line import CheckpointLine, Past
from agentbench.notebook.stepping.model.messages import (
    ALLOWED,
    RunFacts,
    RunRequested,
    StepperStatus,
    StepRequested,
    Until,
)
from agentbench.workflows.run.break_places import Breakpoint, BreakpointBoard
from agentbench.workflows.run.report import StepReport

__all__ = ["LOG_LINES", "Goal", "StepperKnowledge"]

_ORDER = ("step", "run", "pause", "stop", "back", "forward", "fork", "edit", "show_again")
_ENDED = {"FAILED": StepperStatus.FAILED, "CANCELLED": StepperStatus.CANCELLED}

LOG_LINES = 200


@dataclass(slots=True)
class Goal:
    """The step or run request that is being carried out, and what is left of it."""

    left: int
    request: StepRequested | RunRequested
    pause_wanted: bool = False

    @property
    def delay_s(self) -> float:
        """Pause for the eye after each superstep."""
        speed = self.request.speed if isinstance(self.request, RunRequested) else None
        return 1.0 / speed if speed else 0.0

    @property
    def through(self) -> bool:
        """Whether it goes on by itself when a person has answered."""
        return isinstance(self.request, RunRequested) and self.request.through

    @property
    def until(self) -> Until | None:
        """When it is reached before the end."""
        return self.request.until if isinstance(self.request, RunRequested) else None


class StepperKnowledge:
    """The state of one stepper.

    Args:
        name: Text of the header.
        activity: The graph whose elements are watched.
    """

    def __init__(self, name: str, activity: Activity) -> None:
        self.name = name
        self.activity = activity
        self.status = StepperStatus.READY
        self.facts = RunFacts(run_id="")
        self.reports: list[StepReport] = []
        self.tokens = 0
        self.elapsed_s = 0.0
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self.log_total = 0
        self.confirming: StepRequested | RunRequested | None = None
        self.note: str | None = None
        self.stop_wanted = False
        self.line = CheckpointLine()
        self.board = BreakpointBoard()
        self._desk = EditDesk()
        self._goal: Goal | None = None
        self._forking = 0  # place of the checkpoint that a new run is being made from
        self._turn = 0
        self._playing_at: float | None = None
        self._last_rest: ElementStates = {}

    # ---- what is allowed -----------------------------------------------------------------------------------------

    @property
    def allowed(self) -> tuple[str, ...]:
        """The requests that are allowed now, in the order of the buttons."""
        names = set(ALLOWED[self.status])
        if self.status is StepperStatus.WAITING and self.facts.planned:
            names |= {"step", "run"}
        if self.viewing is not None:
            names |= {"step", "run", "forward", "edit"}
        if self.playing:
            names.add("pause")
        return tuple(name for name in _ORDER if name in names and not self._lacks_past(name))

    def _lacks_past(self, name: str) -> bool:
        """Whether a request needs a checkpoint that is not there."""
        if name == "back":
            return not self.displayed
        if name == "show_again":
            return len(self.past) <= 1
        return name in ("fork", "edit") and not self.past

    @property
    def going_through(self) -> bool:
        """Whether the run waits for a person now and goes on by itself afterwards."""
        return self.status is StepperStatus.WAITING and self._goal is not None and self._goal.through

    @property
    def pausing(self) -> bool:
        """Whether a pause was requested and the superstep in flight is not over yet."""
        return self._goal is not None and self._goal.pause_wanted

    @property
    def playing(self) -> bool:
        """Whether the stored checkpoints are being replayed, one after the other; nothing is executed."""
        return self._playing_at is not None

    def rests(self, turn: int) -> bool:
        """Whether the pause for the eye with that number is still needed."""
        moves = self._goal is not None and not self._goal.pause_wanted and not self.stop_wanted
        return turn == self._turn and (moves or self.playing)

    @property
    def past(self) -> list[Past]:
        """The checkpoints that lead to now, oldest first."""
        return self.line.past

    @property
    def viewing(self) -> int | None:
        """Index of the earlier checkpoint that is being viewed, `None` in the present."""
        return self.line.viewing

    @property
    def displayed(self) -> int | None:
        """Index of the checkpoint that is displayed, `None` before the first."""
        return self.line.displayed

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Where the run is to pause, in the order in which the breakpoints were set."""
        return self.board.all

    @property
    def hit(self) -> Breakpoint | None:
        """The breakpoint that paused the run, `None` while it moves and after other pauses."""
        return self.board.hit

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The staged edits of the displayed checkpoint, in the order in which they are applied."""
        return self.staged_at(self.line.displayed_id)

    def staged_at(self, checkpoint_id: str | None) -> tuple[Edit, ...]:
        """The staged edits of a checkpoint."""
        return self._desk.of(checkpoint_id)

    @property
    def states(self) -> ElementStates:
        """The states that are displayed: the current ones, or those of the checkpoint being viewed."""
        return self.activity.states() if self.viewing is None else self.past[self.viewing].states

    def require_open(self) -> None:
        """Raise if the stepper is closed.

        Raises:
            StepperClosed: The stepper is closed.
        """
        if self.status is StepperStatus.CLOSED:
            raise StepperClosed

    def require(self, call: str) -> None:
        """Raise unless a request is allowed now.

        Raises:
            StepperStateError: `call` is not among `allowed`; the error names those that are.
            StepperClosed: The stepper is closed.
        """
        self.require_open()
        if call not in self.allowed:
            raise StepperStateError(str(self.status), self.allowed, call)

    def _status_at_rest(self) -> StepperStatus:
        facts = self.facts
        if facts.status in _ENDED:
            return _ENDED[facts.status]
        if facts.requests and (facts.status == "IDLE_WITH_PENDING_REQUESTS" or not facts.planned):
            return StepperStatus.WAITING
        if facts.status.startswith("IDLE") and not facts.planned:
            return StepperStatus.DONE
        is_new = facts.status == "STARTED" and facts.pause_reason is None
        return StepperStatus.READY if is_new else StepperStatus.PAUSED

    def note_down(self, lines: list[LogLine]) -> None:
        """Add lines to the log."""
        self.log.extend(lines)
        self.log_total += len(lines)

    def _learn(self, facts: RunFacts, *, at_rest: bool = True) -> None:
        """Take in the facts of the run, and store the states of a new checkpoint."""
        self.facts = facts
        waiting = [request.source_executor_id for request in facts.requests]
        if at_rest:
            self.activity.rest(facts.planned, waiting)
        else:
            self.activity.wait_for(waiting)
        self.line.learn(facts.checkpoints, self._last_rest)
        if at_rest:
            self._last_rest = self.activity.states()
            self.line.picture(self._last_rest)
