"""Where a run pauses: what a person may say, and what is reached at a boundary."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import PlannedDelivery, StepReport, WorkflowErrorDetails, WorkflowEvent
from agentbench.notebook import Breakpoint
from agentbench.workflows.run.break_places import (
    Boundary,
    Hit,
    StepperBreakpoints,
    breakpoint_at,
    find_hits,
    pause_reason,
)
from tests.parts.errors import raises

EXECUTORS = ("plan", "review", "failure")


class Draft:
    pass


def is_poor(state: Any) -> bool:
    return bool(state["score"] < 0.5)


def at(where: Any, **more: Any) -> Breakpoint:
    return breakpoint_at("bp-1", where, executors=EXECUTORS, **more)


def report(*events: Any) -> StepReport:
    return StepReport(3, list(events), None)


def boundary(
    *, told: StepReport | None = None, upcoming: int | None = 4, plan: Any = (), state: dict[str, Any] | None = None
) -> Boundary:
    return Boundary(told, upcoming, plan, {} if state is None else state)


def delivery(target: str, message: Any = "x", sources: tuple[str, ...] = ("plan",)) -> PlannedDelivery:
    return PlannedDelivery(", ".join(sources), target, message, 0, sources)


# --- what a person may say --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "error", "facts"),
    [
        ("nobody", ValueError, ("'nobody'", "failure, plan, review")),
        ("after:nobody", ValueError, ("'nobody'",)),
        (-1, ValueError, ("-1",)),
        (True, TypeError, ("True",)),
        (None, TypeError, ("None",)),
        (1.5, TypeError, ("1.5",)),
    ],
)
def test_other_values_than_places_are_refused_with_what_is_expected(
    where: Any, error: type[Exception], facts: tuple[str, ...]
) -> None:
    with raises(error, *facts):
        at(where)


def test_a_condition_that_cannot_be_called_is_refused() -> None:
    with raises(TypeError, "when='score'"):
        at("review", when="score")


# --- at a boundary ----------------------------------------------------------------------------------------------------

INVOKED = WorkflowEvent.executor_invoked("review")
ASKED = WorkflowEvent.request_info("q1", "review", "ok?", bool)
FAILED = WorkflowEvent.executor_failed("review", WorkflowErrorDetails("ValueError", "no", None))


def test_an_error_of_a_condition_pauses_the_run_and_is_the_reason() -> None:
    [hit] = find_hits([at(is_poor)], boundary(told=report()))
    assert isinstance(hit.error, KeyError)
    reason = pause_reason([hit])
    assert reason is not None
    assert (reason.text, reason.kind, reason.error) == (
        "breakpoint: is_poor holds raised KeyError: 'score'",
        "error",
        hit.error,
    )


# --- those of one stepper ---------------------------------------------------------------------------------------------


def test_a_breakpoint_is_checked_once_per_boundary() -> None:
    breakpoints = StepperBreakpoints()
    breakpoints.add(at("review"))
    assert breakpoints.unchecked == breakpoints.all
    breakpoints.record_hits([Hit(breakpoints.all[0])])
    assert (breakpoints.hit, breakpoints.unchecked) == (breakpoints.all[0], ())
    breakpoints.enter_boundary(checked=False)
    assert (breakpoints.hit, breakpoints.unchecked) == (None, breakpoints.all)


def test_inherited_breakpoints_do_not_pause_at_the_current_boundary() -> None:
    breakpoints = StepperBreakpoints()
    breakpoints.inherit([at("review"), at("plan")])
    assert [each.id for each in breakpoints.all] == ["bp-1", "bp-2"]
    assert breakpoints.unchecked == ()
