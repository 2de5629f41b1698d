"""Where a run pauses: what a person may say, and what is reached at a boundary."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.notebook.breakpoints import (
    Boundary,
    Breakpoint,
    BreakpointBoard,
    Hit,
    breakpoint_at,
    find_hits,
    pause_reason,
)
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent
from agentbench.workflows.run.report import PlannedDelivery, StepReport

EXECUTORS = ("plan", "review", "failure")


class Draft:
    pass


class LongDraft(Draft):
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
    ("where", "kind", "place", "text"),
    [
        ("review", "before", "review", "review"),
        ("before:review", "before", "review", "review"),
        ("after:review", "after", "review", "after review"),
        ("before:failure", "before", "failure", "failure"),
        ("failure", "failure", None, "a failure"),
        ("request", "request", None, "a request"),
        (0, "superstep", 0, "superstep 0"),
        (4, "superstep", 4, "superstep 4"),
        (Draft, "message", "Draft", "a message of type Draft"),
        (is_poor, "state", "is_poor", "is_poor holds"),
        (lambda state: True, "state", "a condition of the state", "a condition of the state holds"),
    ],
)
def test_a_place_becomes_a_breakpoint_with_a_text(where: Any, kind: str, place: Any, text: str) -> None:
    made = at(where)
    assert (made.kind, made.where, made.text) == (kind, place, text)
    assert repr(made) == f"Breakpoint('bp-1', {text!r})"


def test_a_further_condition_and_once_are_in_the_text() -> None:
    made = at("review", when=is_poor, once=True)
    assert repr(made) == "Breakpoint('bp-1', 'review if is_poor', once)"


@pytest.mark.parametrize(
    ("where", "error", "told"),
    [
        ("nobody", ValueError, "no executor 'nobody'.*failure, plan, review"),
        ("after:nobody", ValueError, "no executor 'nobody'"),
        (-1, ValueError, "no superstep -1"),
        (True, TypeError, "cannot pause at True"),
        (None, TypeError, "cannot pause at None"),
        (1.5, TypeError, "cannot pause at 1.5"),
    ],
)
def test_other_values_than_places_are_refused_with_what_is_expected(
    where: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        at(where)


def test_a_condition_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="when='score' cannot be called"):
        at("review", when="score")


def test_a_name_with_control_characters_reaches_no_text() -> None:
    evil = "a\u202eb\x00"
    assert not set("\u202e\x00") & set(breakpoint_at("bp-1", evil, executors=[evil]).text)


# --- at a boundary ----------------------------------------------------------------------------------------------------

INVOKED = WorkflowEvent.executor_invoked("review")
ASKED = WorkflowEvent.request_info("q1", "review", "ok?", bool)
FAILED = WorkflowEvent.executor_failed("review", WorkflowErrorDetails("ValueError", "no", None))


@pytest.mark.parametrize(
    ("where", "reached", "not_reached"),
    [
        ("review", boundary(plan=[delivery("plan"), delivery("review")]), boundary(plan=[delivery("plan")])),
        ("after:review", boundary(told=report(INVOKED)), boundary(told=None)),
        ("after:review", boundary(told=report(INVOKED)), boundary(told=report(FAILED))),
        (4, boundary(), boundary(upcoming=3)),
        (4, boundary(), boundary(upcoming=None)),
        (Draft, boundary(plan=[delivery("review", LongDraft())]), boundary(plan=[delivery("review", "x")])),
        (
            Draft,
            boundary(plan=[delivery("review", ["x", Draft()], ("plan", "failure"))]),
            boundary(plan=[delivery("review", ["x", "y"], ("plan", "failure"))]),
        ),
        (Draft, boundary(plan=[delivery("review", Draft())]), boundary(plan=[delivery("review", [Draft()])])),
        (is_poor, boundary(told=report(), state={"score": 0.4}), boundary(told=report(), state={"score": 0.6})),
        (is_poor, boundary(told=report(), state={"score": 0.4}), boundary(told=None, state={"score": 0.4})),
        ("failure", boundary(told=report(FAILED)), boundary(told=report(INVOKED))),
        ("request", boundary(told=report(ASKED)), boundary(told=report(INVOKED))),
    ],
)
def test_a_place_is_reached_or_it_is_not(where: Any, reached: Boundary, not_reached: Boundary) -> None:
    made = at(where)
    assert find_hits([made], reached) == (Hit(made),)
    assert find_hits([made], not_reached) == ()


def test_a_further_condition_must_hold_too() -> None:
    made = at("review", when=is_poor)
    plan = [delivery("review")]
    assert find_hits([made], boundary(plan=plan, state={"score": 0.4}))
    assert not find_hits([made], boundary(plan=plan, state={"score": 0.6}))


def test_a_further_condition_is_checked_only_if_the_place_is_reached() -> None:
    def broken(state: Any) -> bool:
        raise AssertionError

    assert find_hits([at("review", when=broken)], boundary(plan=[delivery("plan")])) == ()


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


def test_several_that_are_reached_at_once_are_one_pause() -> None:
    hits = find_hits([at("review"), at(4)], boundary(plan=[delivery("review")]))
    assert str(pause_reason(hits)) == "breakpoint: review; superstep 4"
    assert pause_reason([]) is None


# --- those of one stepper ---------------------------------------------------------------------------------------------


def test_a_breakpoint_is_checked_once_per_boundary() -> None:
    board = BreakpointBoard()
    board.add(at("review"))
    assert board.unchecked == board.all
    board.take([Hit(board.all[0])])
    assert (board.hit, board.unchecked) == (board.all[0], ())
    board.move_on(checked=False)
    assert (board.hit, board.unchecked) == (None, board.all)


def test_one_that_is_meant_once_goes_when_it_is_reached_but_not_when_it_raises() -> None:
    board = BreakpointBoard()
    board.add(at(is_poor, once=True))
    once = board.all[0]
    board.take([Hit(once, KeyError("score"))])
    assert list(board.all) == [once]
    board.take([Hit(once)])
    assert list(board.all) == []
    assert board.hit == once


def test_ids_are_never_used_again() -> None:
    board = BreakpointBoard()
    for _ in range(2):
        board.add(breakpoint_at(board.next_id, "review", executors=EXECUTORS))
        board.remove([board.all[-1].id])
    assert board.next_id == "bp-3"


def test_inherited_breakpoints_do_not_pause_at_the_current_boundary() -> None:
    board = BreakpointBoard()
    board.inherit([at("review"), at("plan")])
    assert [each.id for each in board.all] == ["bp-1", "bp-2"]
    assert board.unchecked == ()
