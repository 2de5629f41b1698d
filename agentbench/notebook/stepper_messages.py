"""What goes into a stepper's model and what comes out of it: values only.

People ask (`StepAsked`, `BackAsked`, ...), the engine tells (`StepEnded`, `Forked`, ...), and the model answers with an
`Instruction`, or with none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.workflow.boundary import PauseReason
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.report import PlannedDelivery, StepReport

__all__ = [
    "ALLOWED",
    "IN_FLIGHT",
    "AnswerTaken",
    "BackAsked",
    "CloseAsked",
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
]


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
    _S.READY: ("step", "run", "back"),
    _S.STEPPING: ("pause", "stop"),
    _S.RUNNING: ("pause", "stop"),
    _S.PAUSED: ("step", "run", "back", "stop"),
    _S.WAITING: ("back", "stop"),
    _S.DONE: ("back",),
    _S.FAILED: ("step", "back"),
    _S.CANCELLED: ("back",),
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
    """A superstep is over. `reached`: the caller's own condition for an end of the run held, or raised that error."""

    report: StepReport
    facts: RunFacts
    reached: bool | Exception = False


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A superstep, a fork or a restore raised."""

    error: BaseException
    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Rested:
    """The pause for the eye is over, or was cut short."""


@dataclass(frozen=True, slots=True)
class AnswerTaken:
    """The engine took the answer to a request."""

    request_id: str
    facts: RunFacts


@dataclass(frozen=True, slots=True)
class Forked:
    """A new run goes on from a checkpoint."""

    facts: RunFacts


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsked:
    """Supersteps until the end, please.

    Attributes:
        until: Number of the superstep after which to stop.
        limit: Most supersteps.
        speed: Supersteps a second, `None` for as fast as possible.
        through: Whether to go on by itself when a person has answered.
        confirmed: A fork is meant, if it takes one.
    """

    until: int | None = None
    limit: int = 1000
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
class CloseAsked:
    """Release the run; nothing can be asked afterwards."""


Stimulus = (
    Started
    | EventSeen
    | StepEnded
    | StepFailed
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
    | CloseAsked
)


# --- what is to be done -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Let the engine take one superstep, then report `StepEnded` or `StepFailed`."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait for the eye, but not when somebody asks for a pause or a stop meanwhile; then report `Rested`."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Fork:
    """Start a new run from this checkpoint, then report `Forked`."""

    checkpoint: CheckpointInfo


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


Instruction = TakeStep | Rest | Fork | Restore | StopRun | Release
