"""What goes in and out of a stepper's model: facts about the run, its checkpoints, and instructions to the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

from agentbench._limits import require_limit
from agentbench.checkpoints.editing import Edit
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.history.activity import ElementStates, course_of
from agentbench.notebook.stepping.model.break_places import Breakpoint, Hit
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport

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


INPUT: Final = "input"
"""The id of the position before the first checkpoint: the input of the run, with which a new run may start."""

INPUT_POSITION: Final = CheckpointInfo("", INPUT, -1, "", source="input", n_messages=1)
"""The input among the checkpoints; a run with `save_input` has a checkpoint of its own there instead."""


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
    new_call: Any = None
    """The model request that waits to be allowed, a `NewCall`."""


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
class Redo:
    """Start a new run that does supersteps again with changed code; `WorkflowRun.redo` explains the fields."""

    since: int | None
    workflow: Any
    new_calls: Any


@dataclass(frozen=True, slots=True)
class AllowCalls:
    """Let the model request that waits be sent, `all`: also those that follow."""

    which: Literal["this", "all"]


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore the same run to this checkpoint; `None` restores it to its input."""

    checkpoint: CheckpointInfo | None


@dataclass(frozen=True, slots=True)
class CancelRun:
    """End the run after the superstep in flight; `at_once` cancels that superstep, because the stepper is closed."""

    at_once: bool = False


# ---- checkpoints


Instruction = TakeStep | CheckBreakpoints | Wait | Fork | Redo | AllowCalls | Restore | CancelRun


@dataclass(slots=True)
class Past:
    """A checkpoint that led to the current state, and the states of all graph elements when it was saved."""

    info: CheckpointInfo
    states: ElementStates
    label: str = field(init=False)
    """Its superstep and origin."""
    stop: tuple[str, str] = field(init=False)
    """Label and id of the checkpoint, for the page."""

    def __post_init__(self) -> None:
        """Set the label once, because the page reads all labels at each update."""
        origin = {"answer": ", answered", "fork": ", forked", "update": ", edited"}.get(self.info.source, "")
        place = INPUT if self.info.iteration < 0 else f"superstep {self.info.iteration}"
        self.label = f"{place}{origin}"
        self.stop = (self.label, self.info.checkpoint_id)


class StepperCheckpoints:
    """The checkpoints that lead to a stepper's current state; a fork drops those after its origin."""

    def __init__(self) -> None:
        self.past: list[Past] = []  # oldest first
        self.viewing: int | None = None  # index of the earlier checkpoint that is displayed
        self._inherited = 0  # checkpoints of earlier runs that the current run descends from

    def begin(self, infos: Sequence[CheckpointInfo]) -> None:
        """Start with the checkpoints of a run that resumes from the last one."""
        self.past = []
        for info in infos:
            self._add(info, dict.fromkeys(info.writers, "done"))
        self._inherited = len(self.past)

    def branch(self, origin: CheckpointInfo, copy: CheckpointInfo | None) -> None:
        """Drop the checkpoints after `origin`, for a run that starts from it or from its (edited) copy."""
        del self.past[self.index_of(origin.checkpoint_id) + 1 :]
        if copy is not None:
            self.past.append(Past(copy, self.past[-1].states))
        self._inherited = len(self.past)
        self.look_at(None)

    def begin_again(self) -> None:
        """Drop all checkpoints, for a run that starts from the input; the position of the input itself remains."""
        self.past = [past for past in self.past[:1] if past.info == INPUT_POSITION]
        self._inherited = len(self.past)
        self.look_at(None)

    def add_missing(self, saved: Sequence[CheckpointInfo], before: ElementStates, now: ElementStates) -> None:
        """Add the checkpoints that are missing here; `saved` holds all checkpoints of the current run.

        The newest one gets the graph states `now`. A superstep that processes an answer saves twice; its first
        checkpoint gets the states `before` it.
        """
        if saved and saved[0].iteration < 0 and self.past[:1] and self.past[0].info == INPUT_POSITION:
            del self.past[0]  # the run has saved its input
            self._inherited -= 1
        # A run that was restored to its start also lists that checkpoint as its own.
        begun = bool(saved and self._inherited and saved[0] == self.past[self._inherited - 1].info)
        first = self._inherited - begun  # index of the first one that it saved
        n_known = len(self.past) - first
        if len(self.past) > self._inherited and self.past[-1].info not in saved[n_known - 1 : n_known]:
            del self.past[self._inherited :]  # the run was restored to an earlier checkpoint
        for info in saved[len(self.past) - first :]:
            self._add(info, now if info is saved[-1] else before)

    def _add(self, info: CheckpointInfo, states: ElementStates) -> None:
        self.past.append(Past(info, course_of((past.states for past in self.past[-1:]), states)))

    @property
    def viewed(self) -> CheckpointInfo | None:
        """The earlier checkpoint that is displayed, `None` for the current state."""
        return None if self.viewing is None else self.past[self.viewing].info

    @property
    def displayed(self) -> int | None:
        """Index of the checkpoint that is displayed, `None` before the first."""
        if self.viewing is not None:
            return self.viewing
        return len(self.past) - 1 if self.past else None

    @property
    def displayed_id(self) -> str | None:
        """Id of the checkpoint that is displayed, `None` before the first."""
        return None if self.displayed is None else self.past[self.displayed].info.checkpoint_id

    @property
    def first(self) -> int:
        """Index of the first checkpoint after the input."""
        return next((at for at, past in enumerate(self.past) if past.info.iteration >= 0), len(self.past))

    @property
    def saved(self) -> list[CheckpointInfo]:
        """The checkpoints in the storage, oldest first."""
        return [past.info for past in self.past if past.info != INPUT_POSITION]

    @property
    def at_input(self) -> bool:
        """Whether the input is displayed."""
        return self.displayed is not None and self.displayed < self.first

    @property
    def place(self) -> str:
        """The displayed position, such as `checkpoint 3 of 7`."""
        if self.at_input:
            return "the input"
        return f"checkpoint {(self.displayed or 0) - self.first + 1} of {len(self.past) - self.first}"

    @property
    def compared_ids(self) -> list[str]:
        """Ids of the previous and the displayed checkpoint; empty at the first one."""
        at = self.displayed or 0
        return [past.info.checkpoint_id for past in self.past[at - 1 : at + 1]] if at > self.first else []

    def look_at(self, index: int | None) -> None:
        """Display a checkpoint; the last index displays the current state."""
        self.viewing = None if index is None or index >= len(self.past) - 1 else index

    def index_of(self, checkpoint_id: str) -> int:
        """Return the index of a checkpoint.

        Raises:
            LookupError: The checkpoint does not lead to the current state.
        """
        if checkpoint_id == INPUT and self.first:
            return self.first - 1
        for index, past in enumerate(self.past):
            if past.info.checkpoint_id == checkpoint_id:
                return index
        ids = ", ".join(past.info.checkpoint_id for past in self.past) or "none yet"
        msg = f"Checkpoint {checkpoint_id!r} does not lead to the current state. The checkpoints that do: {ids}."
        raise LookupError(msg)
