"""Pure functions: where a stepper's run should pause, and whether it does at a boundary between two supersteps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agentbench._plain_text import plain_line
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport

BreakpointKind = Literal["before", "after", "superstep", "message", "state", "failure", "request"]
StatePredicate = Callable[[Mapping[str, Any]], object]
Where = str | int | type | StatePredicate


@dataclass(frozen=True, slots=True, repr=False)
class Breakpoint:
    """A place where a stepper pauses its run: always between two supersteps, never within one.

    `Stepper.break_at` sets breakpoints and returns them, `Stepper.breakpoints` lists them, `Stepper.clear_breakpoints`
    removes them.

    Attributes:
        id: An id within the stepper, such as `bp-1`.
        kind: `before`, `after`, `superstep`, `message`, `state`, `failure` or `request`.
        where: The executor id, the superstep number, or the name of the type or function; `None` for failures and
            requests.
        text: The place in words, such as `after review`.
        once: Whether it is removed once it has been reached.
        when: A further condition, called with the shared state; the run pauses only if it returns a true value.
        target: The message type, or the function of the state.

    Example:
        panel = stepper(workflow, "Bergen")
        panel.break_at("after:plan", when=lambda state: state["score"] < 0.5, once=True)
    """

    id: str
    kind: BreakpointKind
    where: str | int | None
    text: str
    once: bool = False
    when: StatePredicate | None = None
    target: Any = field(default=None)

    def __repr__(self) -> str:
        return f"Breakpoint({self.id!r}, {self.text!r}{', once' if self.once else ''})"

    def is_same_place(self, other: Breakpoint) -> bool:
        """Whether both pause at the same place, ignoring further conditions."""
        return (self.kind, self.where, self.target) == (other.kind, other.where, other.target)


def breakpoint_at(
    breakpoint_id: str,
    where: Where,
    *,
    when: StatePredicate | None = None,
    once: bool = False,
    executors: Collection[str],
) -> Breakpoint:
    """Create a breakpoint at a place.

    Args:
        breakpoint_id: The id of the breakpoint.
        where: An executor id or `before:ID`, `after:ID`; a superstep number, counted from 0; a message type; a
            function of the state; `failure`; `request`. For an executor named `failure`, write `before:failure`.
        when: A further condition.
        once: Whether it is removed once it has been reached.
        executors: The ids of all executors.

    Raises:
        ValueError: The executor does not exist, or the number is negative.
        TypeError: `where` is not a place, or `when` cannot be called.
    """
    condition: object = when
    if condition is not None and not callable(condition):
        msg = f"when={when!r} cannot be called. Expected a function of the shared state, or None."
        raise TypeError(msg)
    kind, place, text, target = _read(where, executors)
    if when is not None:
        text = f"{text} if {_name_of(when)}"
    return Breakpoint(breakpoint_id, kind, place, text, once, when, target)


_Place = tuple[BreakpointKind, "str | int | None", str, Any]


def _read(where: object, executors: Collection[str]) -> _Place:
    if isinstance(where, str):
        return _read_text(where, executors)
    if isinstance(where, int) and not isinstance(where, bool):
        if where < 0:
            msg = f"Superstep {where} does not exist. Expected the number of the superstep to pause before, from 0."
            raise ValueError(msg)
        return "superstep", where, f"superstep {where}", None
    if isinstance(where, type):
        return (
            "message",
            where.__qualname__,
            f"a message of type {plain_line(where.__qualname__, 60)}",
            where,
        )
    if callable(where):
        name = _name_of(where)
        return "state", name, f"{name} holds", where
    msg = (
        f"A run cannot pause at {where!r}. Expected an executor id, 'before:ID', 'after:ID', a superstep number, "
        "a message type, a function of the state, 'failure' or 'request'."
    )
    raise TypeError(msg)


def _read_text(where: str, executors: Collection[str]) -> _Place:
    if where == "failure":
        return "failure", None, "a failure", None
    if where == "request":
        return "request", None, "a request", None
    before, _, executor = where.partition(":")
    if where in executors or before not in ("before", "after"):
        before, executor = "before", where
    if executor not in executors:
        ids = ", ".join(sorted(executors))
        msg = (
            f"There is no executor {executor!r} to pause at. Expected one of {ids}, with or without 'before:' or "
            "'after:'; or 'failure', or 'request'."
        )
        raise ValueError(msg)
    name = plain_line(executor, 60)
    return ("before", executor, name, None) if before == "before" else ("after", executor, f"after {name}", None)


_UNNAMED = "a condition of the state"


def _name_of(function: object) -> str:
    name = str(getattr(function, "__name__", type(function).__name__))
    return _UNNAMED if name == "<lambda>" else plain_line(name, 60)


# --- at a boundary ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Boundary:
    """The state of a run between two supersteps.

    Attributes:
        report: The report of the last superstep, `None` before the first.
        upcoming: The number of the next superstep, `None` if the run needs an answer first.
        plan: Deliveries of the next superstep.
        state: The shared state.
    """

    report: StepReport | None
    upcoming: int | None
    plan: Sequence[PlannedDelivery]
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    """A breakpoint that was reached, or one whose condition raised `error`, which pauses too."""

    breakpoint: Breakpoint
    error: Exception | None = None


def find_hits(breakpoints: Iterable[Breakpoint], at: Boundary) -> tuple[Hit, ...]:
    """Return the breakpoints reached at a boundary, in the order in which they were set."""
    hits = (_hit(point, at) for point in breakpoints)
    return tuple(hit for hit in hits if hit is not None)


def _hit(point: Breakpoint, at: Boundary) -> Hit | None:
    try:
        reached = _is_reached(point, at) and (point.when is None or point.when(at.state))
        return Hit(point) if reached else None
    except Exception as error:  # noqa: BLE001 - user code; its error pauses the run and is displayed
        return Hit(point, error)


def pause_reason(hits: Sequence[Hit]) -> PauseReason | None:
    """Return the reason why a run pauses, `None` if it does not."""
    if not hits:
        return None
    error = next((hit.error for hit in hits if hit.error is not None), None)
    return PauseReason(
        f"breakpoint: {'; '.join(map(_hit_text, hits))}", "breakpoint" if error is None else "error", error
    )


def _hit_text(hit: Hit) -> str:
    if hit.error is None:
        return hit.breakpoint.text
    return plain_line(f"{hit.breakpoint.text} raised {type(hit.error).__name__}: {hit.error}", 300)


def _is_reached(point: Breakpoint, at: Boundary) -> object:
    if point.kind == "superstep":
        return at.upcoming == point.where
    if point.kind == "before":
        return any(delivery.target == point.where for delivery in at.plan)
    if point.kind == "message":
        return any(_carries(delivery, point.target) for delivery in at.plan)
    if at.report is None:
        return False
    if point.kind == "state":  # before the first superstep the state is empty
        return point.target(at.state)
    if point.kind == "after":
        return point.where in at.report.invoked
    return bool(at.report.failures if point.kind == "failure" else at.report.requests)


def _carries(delivery: PlannedDelivery, wanted: type) -> bool:
    """Whether a delivery brings a message of a type; a fan-in brings a list of messages."""
    if isinstance(delivery.message, wanted):
        return True
    gathered = len(delivery.sources) > 1 and isinstance(delivery.message, list)
    return gathered and any(isinstance(message, wanted) for message in delivery.message)


# --- the breakpoints of one stepper -----------------------------------------------------------------------------------


class StepperBreakpoints:
    """The breakpoints of one stepper, and which of them has paused it.

    Each breakpoint is checked once per boundary, so that a run that resumes from one does not pause there again.

    Attributes:
        all: All breakpoints, in the order in which they were set.
        hit: The one that paused the run; `None` while the run moves and after other pauses.
    """

    def __init__(self) -> None:
        self.all: tuple[Breakpoint, ...] = ()
        self.hit: Breakpoint | None = None
        self._checked: set[str] = set()
        self._made = 0

    @property
    def next_id(self) -> str:
        """Return an id that no breakpoint of this stepper has had."""
        return f"bp-{self._made + 1}"

    def add(self, added: Breakpoint) -> None:
        """Add a breakpoint, which is also checked at the current boundary."""
        self._made += 1
        self.all = (*self.all, added)

    def remove(self, ids: Collection[str]) -> None:
        """Remove the breakpoints with these ids."""
        self.all = tuple(point for point in self.all if point.id not in ids)

    def inherit(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Add breakpoints of another stepper under new ids; they do not pause the run at the current boundary."""
        for point in breakpoints:
            self.add(replace(point, id=self.next_id))
        self._checked = {point.id for point in self.all}

    @property
    def unchecked(self) -> tuple[Breakpoint, ...]:
        """Return the breakpoints that have not been checked at the current boundary."""
        return tuple(point for point in self.all if point.id not in self._checked)

    def enter_boundary(self, *, checked: bool) -> None:
        """Enter another boundary; with `checked`, the current breakpoints do not pause the run there."""
        self.hit = None
        self._checked = {point.id for point in self.all} if checked else set()

    def record_hits(self, hits: Sequence[Hit]) -> None:
        """Record that all breakpoints were checked and which of them were reached."""
        self._checked.update(point.id for point in self.all)
        self.hit = hits[0].breakpoint if hits else None
        self.remove({hit.breakpoint.id for hit in hits if hit.breakpoint.once and hit.error is None})
