"""The inputs and outputs of a stepper's model: facts about the run, and instructions to the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from agentbench._limits import require_limit
from agentbench.checkpoints.editing import Edit
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.stepping.model.break_places import Breakpoint, Hit
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.run.result import PlannedDelivery, StepReport

Until = int | Literal["request", "breakpoint"] | Callable[[StepReport], object]
"""Where a run ends early: after the superstep of this number, at a `request` to a person, at a `breakpoint`, or when a
predicate on a report is true.
"""


class StepperStatus(StrEnum):
    """The value of `Stepper.status`, equal to its plain text.

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


def check_count(count: Any, name: str) -> int:
    """Return the count `name` as an `int`; raise `TypeError` or `ValueError` if it is not a whole number above 0."""
    require_limit(name, count, least=1)
    return int(count)


def check_speed(speed: float, what: str) -> float:
    """Return a speed; raise `ValueError` if it is not above 0."""
    if not speed > 0:
        msg = f"speed={speed!r} is not possible. Expected {what} per second, above 0."
        raise ValueError(msg)
    return speed


def check_until(until: Any) -> Any:
    """Return the `until` argument of a run; raise `ValueError` if `Stepper.run` does not accept it."""
    is_number = type(until) is int and until >= 0
    if until is None or is_number or until in ("request", "breakpoint") or callable(until):
        return until
    msg = (
        f"until={until!r} is not possible. Expected the number of a superstep, 'request', 'breakpoint', a "
        "function of a report, or None."
    )
    raise ValueError(msg)


IN_FLIGHT = frozenset({StepperStatus.STEPPING, StepperStatus.RUNNING})


@dataclass(slots=True)
class Goal:
    """A requested step or run, and the remainder of it."""

    left: int = 1
    """Remaining supersteps."""
    inside: bool = False
    """Also stop after each superstep of a sub-workflow."""
    runs: bool = False
    """Run to the end instead of a number of steps."""
    until: Until | None = None
    speed: float | None = None
    """Supersteps per second, `None` for as fast as possible."""
    through: bool = False
    """Continues automatically after an answer."""
    pausing: bool = False
    """A pause was requested while a superstep is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts about a run between two supersteps, read from its handle."""

    run_id: str
    status: str = "STARTED"
    """Value of its `WorkflowRunState`; `STARTED` before the first execution."""
    superstep: int | None = None
    """Number of the last finished superstep."""
    checkpoints: Sequence[CheckpointInfo] = ()
    """Checkpoints that the run saved, in order."""
    requests: Sequence[WorkflowEvent[Any]] = ()
    planned: Sequence[PlannedDelivery] = ()
    """Deliveries of the next superstep."""
    error: BaseException | None = None
    pause_reason: PauseReason | None = None


@dataclass(frozen=True, slots=True)
class StepEnded:
    """The result of a superstep. `reached`: whether the caller's own `until` was true, or the error that it raised."""

    report: StepReport
    facts: RunFacts
    reached: bool | Exception = False
    hits: Sequence[Hit] = ()


# Instructions.


@dataclass(frozen=True, slots=True)
class TakeStep:
    """Execute one superstep; `until` is the caller's own end condition, called with the report.

    With `inside`, also stop after a superstep of a sub-workflow.
    """

    until: Callable[[StepReport], object] | None = None
    inside: bool = False


@dataclass(frozen=True, slots=True)
class CheckBreakpoints:
    """Check breakpoints at the current boundary."""

    breakpoints: Sequence[Breakpoint]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for this time, or until the next command; then call `StepperModel.end_wait` with this number."""

    delay_s: float
    number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Fork:
    """Start a new run from this checkpoint, with these edits."""

    checkpoint: CheckpointInfo
    edits: Sequence[Edit] = ()


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore the same run to this checkpoint; `None` restores it to its input."""

    checkpoint: CheckpointInfo | None


@dataclass(frozen=True, slots=True)
class CancelRun:
    """End the run after the superstep in flight; `at_once` cancels that superstep, because the stepper is closed."""

    at_once: bool = False


Instruction = TakeStep | CheckBreakpoints | Wait | Fork | Restore | CancelRun
