"""The input and output of a stepper's model: values only.

People send requests (`StepRequested`, `BackRequested`, ...), the engine sends reports (`StepEnded`, `Forked`, ...), and
the model returns an `Instruction`, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from agentbench.checkpoints.editing import Edit
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.run.break_places import Breakpoint, Hit
from agentbench.workflows.run.report import PlannedDelivery, StepReport

__all__ = [
    "ALLOWED",
    "IN_FLIGHT",
    "USUAL_LIMIT",
    "AnswerTaken",
    "BackRequested",
    "BranchRequested",
    "BreakpointSet",
    "BreakpointsChecked",
    "BreakpointsCleared",
    "CheckBreakpoints",
    "CloseRequested",
    "EditStaged",
    "EditsDiscarded",
    "EventEmitted",
    "Fork",
    "Forked",
    "ForwardRequested",
    "GotoRequested",
    "Instruction",
    "Interrupted",
    "LiveRequested",
    "PauseRequested",
    "Release",
    "Rest",
    "Rested",
    "Restore",
    "Restored",
    "RunFacts",
    "RunRequested",
    "ShowAgainRequested",
    "Started",
    "StepEnded",
    "StepFailed",
    "StepRequested",
    "StepperStatus",
    "Stimulus",
    "StopRequested",
    "StopRun",
    "Stopped",
    "TakeStep",
    "Until",
]

#: When a run ends early: number of the superstep after which, `request` (a person has to answer), `breakpoint`, or a
#: predicate on a report.
Until = int | Literal["request", "breakpoint"] | Callable[[StepReport], object]


class StepperStatus(str, Enum):
    """What a stepper is doing: the value of `Stepper.status`, equal to its plain text.

    `ready` (nothing executed yet), `stepping` and `running` (a superstep is in flight), `paused`, `waiting` (for a
    person's answer), `done`, `failed`, `cancelled` and `closed`.

    Example:
        panel = stepper(workflow, "hello")
        assert panel.status == "ready" and panel.status is StepperStatus.READY
    """

    READY = "ready"
    STEPPING = "stepping"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CLOSED = "closed"

    def __str__(self) -> str:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


_S = StepperStatus
IN_FLIGHT = frozenset({_S.STEPPING, _S.RUNNING})

#: Requests that are allowed in each status. Exceptions, by what the run holds: `StepperModel.allowed`.
ALLOWED: dict[StepperStatus, tuple[str, ...]] = {
    _S.READY: ("step", "run", "back", "fork", "edit", "show_again"),
    _S.STEPPING: ("pause", "stop"),
    _S.RUNNING: ("pause", "stop"),
    _S.PAUSED: ("step", "run", "back", "stop", "fork", "edit", "show_again"),
    _S.WAITING: ("back", "stop", "fork", "show_again"),
    _S.DONE: ("back", "fork", "show_again"),
    _S.FAILED: ("step", "back", "fork", "edit", "show_again"),
    _S.CANCELLED: ("back", "fork", "show_again"),
    _S.CLOSED: (),
}


# --- reports of the engine --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run between two supersteps, read from its handle.

    Attributes:
        run_id: Id of the run.
        status: Value of its `WorkflowRunState`; `STARTED` until something was executed.
        superstep: Last finished one, `None` before the first.
        checkpoints: Infos of what the run saved, in order.
        requests: Pending `request_info` events.
        planned: Deliveries of the next superstep.
        error: The exception that made the run fail.
        pause_reason: Why the run paused itself, if it did.
    """

    run_id: str
    status: str = "STARTED"
    superstep: int | None = None
    checkpoints: Sequence[CheckpointInfo] = ()
    requests: Sequence[WorkflowEvent[Any]] = ()
    planned: Sequence[PlannedDelivery] = ()
    error: BaseException | None = None
    pause_reason: PauseReason | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The run was started or resumed; nothing was executed. `line`: the checkpoints that lead to it, oldest first."""

    facts: RunFacts
    line: Sequence[CheckpointInfo] = ()


@dataclass(frozen=True, slots=True)
class EventEmitted:
    """One event of a superstep in flight."""

    event: WorkflowEvent[Any]


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A superstep is over.

    Attributes:
        report: Its report.
        facts: The run after the superstep.
        reached: Whether the caller's own `until` condition was true, or the error that it raised.
        hits: Breakpoints that were reached.
    """

    report: StepReport
    facts: RunFacts
    reached: bool | Exception = False
    hits: Sequence[Hit] = ()


@dataclass(frozen=True, slots=True)
class BreakpointsChecked:
    """The breakpoints were checked at the current boundary; `hits` were reached."""

    hits: Sequence[Hit] = ()


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A superstep, a fork or a restore raised."""

    error: BaseException
    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Rested:
    """The pause for the eye is over, or was cut short; `turn` is that of its `Rest`."""

    turn: int


@dataclass(frozen=True, slots=True)
class AnswerTaken:
    """The engine took the answer to a request."""

    request_id: str
    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Forked:
    """A new run goes on from a checkpoint; `copy` is the one that was saved for it, with the edits."""

    facts: RunFacts
    copy: CheckpointInfo | None = None


@dataclass(frozen=True, slots=True)
class Restored:
    """The run is back at its last good checkpoint."""

    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run was stopped on request."""

    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The cell that drove the run was interrupted (the stop button of the notebook)."""

    facts: RunFacts


# --- requests of people -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepRequested:
    """Take `count` supersteps. `confirmed`: the person agrees to a fork, if it takes one."""

    count: int = 1
    confirmed: bool = False


#: The default of `max_supersteps`: a guard against runs without an end.
USUAL_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequested:
    """Take supersteps until the end.

    Attributes:
        until: When to stop before the end.
        limit: Most supersteps.
        speed: Supersteps a second, `None` for as fast as possible.
        through: Whether to go on by itself when a person has answered.
        confirmed: The person agrees to a fork, if it takes one.
    """

    until: Until | None = None
    limit: int = USUAL_LIMIT
    speed: float | None = None
    through: bool = False
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class PauseRequested:
    """Stop after the superstep in flight; the run stays alive."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """End the run."""


@dataclass(frozen=True, slots=True)
class BackRequested:
    """Show an earlier checkpoint."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class ForwardRequested:
    """Show a later checkpoint."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class GotoRequested:
    """Show this checkpoint."""

    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class LiveRequested:
    """Show the present again."""


@dataclass(frozen=True, slots=True)
class ShowAgainRequested:
    """Show what is stored, one checkpoint after the other up to the present; nothing is executed.

    Attributes:
        speed: Checkpoints a second.
    """

    speed: float = 2.0


@dataclass(frozen=True, slots=True)
class BranchRequested:
    """Go on as a new run from a checkpoint, `None` for the displayed one; nothing is executed yet."""

    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class BreakpointSet:
    """A breakpoint was added."""

    breakpoint: Breakpoint


@dataclass(frozen=True, slots=True)
class BreakpointsCleared:
    """The breakpoints with these ids were removed."""

    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class EditStaged:
    """An edit of a checkpoint is staged for a fork from there; it replaces a staged edit of the same path."""

    checkpoint_id: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class EditsDiscarded:
    """Staged edits of a checkpoint were dropped: the one of `path`, or all; `None` for the displayed checkpoint."""

    path: str | None = None
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """Release the run; no request is allowed afterwards."""


Stimulus = (
    Started
    | EventEmitted
    | StepEnded
    | StepFailed
    | BreakpointsChecked
    | Rested
    | AnswerTaken
    | Forked
    | Restored
    | Stopped
    | Interrupted
    | StepRequested
    | RunRequested
    | PauseRequested
    | StopRequested
    | BackRequested
    | ForwardRequested
    | GotoRequested
    | LiveRequested
    | ShowAgainRequested
    | BranchRequested
    | BreakpointSet
    | BreakpointsCleared
    | EditStaged
    | EditsDiscarded
    | CloseRequested
)


# --- instructions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Let the engine take one superstep, then report `StepEnded` or `StepFailed`.

    Attributes:
        until: The caller's own condition, called with the report.
    """

    until: Callable[[StepReport], object] | None = None


@dataclass(frozen=True, slots=True)
class CheckBreakpoints:
    """Check breakpoints at the current boundary, then report `BreakpointsChecked`."""

    breakpoints: Sequence[Breakpoint]


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for the eye, or until the next request comes; then report `Rested` with that turn."""

    delay_s: float
    turn: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Fork:
    """Start a new run from this checkpoint, with these edits, then report `Forked`."""

    checkpoint: CheckpointInfo
    edits: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """Put the same run back to this checkpoint, `None` for its input, then report `Restored`."""

    checkpoint: CheckpointInfo | None


@dataclass(frozen=True, slots=True)
class StopRun:
    """End the run, the superstep in flight included, then report `Stopped`."""


@dataclass(frozen=True, slots=True)
class Release:
    """Release the run and take the widgets off the page."""


Instruction = TakeStep | CheckBreakpoints | Rest | Fork | Restore | StopRun | Release
