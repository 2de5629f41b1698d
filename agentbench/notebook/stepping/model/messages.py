"""The values that a stepper's model works with: what it knows of the run, and the instructions that it gives."""

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
    "IN_FLIGHT",
    "USUAL_LIMIT",
    "CheckBreakpoints",
    "Fork",
    "Goal",
    "Instruction",
    "Release",
    "Rest",
    "Restore",
    "RunFacts",
    "StepEnded",
    "StepFailed",
    "StepperStatus",
    "StopRun",
    "TakeStep",
    "Until",
]

#: The default of `max_supersteps`: a guard against runs without an end.
USUAL_LIMIT = 1000

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


IN_FLIGHT = frozenset({StepperStatus.STEPPING, StepperStatus.RUNNING})


@dataclass(slots=True)
class Goal:
    """A step or a run that a person has requested, and what is left of it.

    Attributes:
        left: Supersteps that may still be taken.
        runs: Whether it is a run, that ends by itself, and no counted number of steps.
        until: When to stop before the end.
        speed: Supersteps a second, `None` for as fast as possible.
        through: Whether to go on by itself when a person has answered.
        pausing: Whether a pause was requested while a superstep is in flight.
    """

    left: int = 1
    runs: bool = False
    until: Until | None = None
    speed: float | None = None
    through: bool = False
    pausing: bool = False


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
class StepFailed:
    """A superstep, a fork or a restore raised, and the run itself has not failed."""

    error: BaseException
    facts: RunFacts


# --- instructions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Let the engine take one superstep.

    Attributes:
        until: The caller's own condition, called with the report.
    """

    until: Callable[[StepReport], object] | None = None


@dataclass(frozen=True, slots=True)
class CheckBreakpoints:
    """Check breakpoints at the current boundary."""

    breakpoints: Sequence[Breakpoint]


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait, or until the next request comes; then `StepperModel.wake` with that turn."""

    delay_s: float
    turn: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Fork:
    """Start a new run from this checkpoint, with these edits."""

    checkpoint: CheckpointInfo
    edits: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """Put the same run back to this checkpoint, `None` for its input."""

    checkpoint: CheckpointInfo | None


@dataclass(frozen=True, slots=True)
class StopRun:
    """End the run, the superstep in flight included."""


@dataclass(frozen=True, slots=True)
class Release:
    """Release the run."""


Instruction = TakeStep | CheckBreakpoints | Rest | Fork | Restore | StopRun | Release
