"""What goes into a stepper's model and what comes out of it: values only.

People ask (`StepAsked`, `BackAsked`, ...), the engine tells (`StepEnded`, `Forked`, ...), and the model answers with an
`Instruction`, or with none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.breakpoints import Breakpoint, Hit
from agentbench.notebook.stepper_edits import Edit
from agentbench.workflows.engine.boundary import PauseReason
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.report import PlannedDelivery, StepReport

__all__ = [
    "ALLOWED",
    "IN_FLIGHT",
    "USUAL_LIMIT",
    "AnswerTaken",
    "AskBreakpoints",
    "BackAsked",
    "BranchAsked",
    "BreakpointSet",
    "BreakpointsAsked",
    "BreakpointsCleared",
    "CloseAsked",
    "EditStaged",
    "EditsDiscarded",
    "EventSeen",
    "Fork",
    "Forked",
    "ForwardAsked",
    "GotoAsked",
    "Instruction",
    "Interrupted",
    "LiveAsked",
    "PauseAsked",
    "Release",
    "Rest",
    "Rested",
    "Restore",
    "Restored",
    "RunAsked",
    "RunFacts",
    "ShowAgainAsked",
    "Started",
    "StepAsked",
    "StepEnded",
    "StepFailed",
    "StepperStatus",
    "Stimulus",
    "StopAsked",
    "StopRun",
    "Stopped",
    "TakeStep",
    "Until",
]

#: When a run ends early: number of the superstep after which, `request` (a person is asked), `breakpoint`, or a
#: function of a report that says when.
Until = int | Literal["request", "breakpoint"] | Callable[[StepReport], object]


class StepperStatus(str, Enum):
    """What a stepper is doing; see `ALLOWED` for what can be asked of it."""

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

#: What can be asked in which state. Exceptions, by what the run holds: `StepperModel.allowed`.
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


# --- what the engine tells --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run between two supersteps, as its handle tells it.

    Attributes:
        run_id: Id of the run.
        status: Value of its `WorkflowRunState`; `STARTED` until something was executed.
        superstep: Last finished one, `None` before the first.
        checkpoints: Infos of what the run saved, in order.
        requests: Open `request_info` events.
        planned: Deliveries of the next superstep.
        error: What made the run fail.
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
class EventSeen:
    """One event of a superstep in flight."""

    event: WorkflowEvent[Any]


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A superstep is over.

    Attributes:
        report: What it did.
        facts: How the run stands.
        reached: The caller's own condition for an end of the run held, or raised that error.
        hits: Breakpoints that were reached.
    """

    report: StepReport
    facts: RunFacts
    reached: bool | Exception = False
    hits: Sequence[Hit] = ()


@dataclass(frozen=True, slots=True)
class BreakpointsAsked:
    """What breakpoints say of where the run stands; `hits` were reached."""

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
    """The run stands at its last good checkpoint again."""

    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run was stopped, as asked."""

    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Whoever drove the run was interrupted (the stop button of the notebook)."""

    facts: RunFacts


# --- what people ask --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepAsked:
    """`count` supersteps, please. `confirmed`: a fork is meant, if it takes one."""

    count: int = 1
    confirmed: bool = False


#: A guard against runs without an end, where nobody chose another one.
USUAL_LIMIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsked:
    """Supersteps until the end, please.

    Attributes:
        until: When to stop before the end.
        limit: Most supersteps.
        speed: Supersteps a second, `None` for as fast as possible.
        through: Whether to go on by itself when a person has answered.
        confirmed: A fork is meant, if it takes one.
    """

    until: Until | None = None
    limit: int = USUAL_LIMIT
    speed: float | None = None
    through: bool = False
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Stop after the superstep in flight; the run stays alive."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """End the run."""


@dataclass(frozen=True, slots=True)
class BackAsked:
    """Show an earlier checkpoint."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class ForwardAsked:
    """Show a later checkpoint."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class GotoAsked:
    """Show this checkpoint."""

    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class LiveAsked:
    """Show the present again."""


@dataclass(frozen=True, slots=True)
class ShowAgainAsked:
    """Show what is stored, one checkpoint after the other up to the present; nothing is executed.

    Attributes:
        speed: Checkpoints a second.
    """

    speed: float = 2.0


@dataclass(frozen=True, slots=True)
class BranchAsked:
    """Go on as a new run from a checkpoint, `None` for the one that is shown; nothing is executed yet."""

    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class BreakpointSet:
    """A breakpoint is there from now on."""

    breakpoint: Breakpoint


@dataclass(frozen=True, slots=True)
class BreakpointsCleared:
    """The breakpoints with these ids are gone."""

    ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class EditStaged:
    """An edit of a checkpoint waits for somebody to go on from there; it takes the place of one of the same path."""

    checkpoint_id: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class EditsDiscarded:
    """Edits of a checkpoint are gone: that of one path, or all; `None` for the checkpoint that is shown."""

    path: str | None = None
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class CloseAsked:
    """Release the run; nothing can be asked afterwards."""


Stimulus = (
    Started
    | EventSeen
    | StepEnded
    | StepFailed
    | BreakpointsAsked
    | Rested
    | AnswerTaken
    | Forked
    | Restored
    | Stopped
    | Interrupted
    | StepAsked
    | RunAsked
    | PauseAsked
    | StopAsked
    | BackAsked
    | ForwardAsked
    | GotoAsked
    | LiveAsked
    | ShowAgainAsked
    | BranchAsked
    | BreakpointSet
    | BreakpointsCleared
    | EditStaged
    | EditsDiscarded
    | CloseAsked
)


# --- what is to be done -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Let the engine take one superstep, then report `StepEnded` or `StepFailed`.

    Attributes:
        until: The caller's own condition, asked of the report.
    """

    until: Callable[[StepReport], object] | None = None


@dataclass(frozen=True, slots=True)
class AskBreakpoints:
    """Look whether the run is to pause where it stands, then report `BreakpointsAsked`."""

    breakpoints: Sequence[Breakpoint]


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for the eye, but not when somebody asks for something meanwhile; then report `Rested` with that turn."""

    delay_s: float
    turn: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Fork:
    """Start a new run from this checkpoint, with these edits, then report `Forked`."""

    checkpoint: CheckpointInfo
    edits: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """Put the same run back to this checkpoint, then report `Restored`."""

    checkpoint: CheckpointInfo


@dataclass(frozen=True, slots=True)
class StopRun:
    """End the run, the superstep in flight included, then report `Stopped`."""


@dataclass(frozen=True, slots=True)
class Release:
    """Let go of the run and take the widgets off the page."""


Instruction = TakeStep | AskBreakpoints | Rest | Fork | Restore | StopRun | Release
