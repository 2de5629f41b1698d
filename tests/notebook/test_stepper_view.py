"""What a stepper shows, as a table: words, signs, and what can be pressed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.activity import Activity
from agentbench.notebook.breakpoints import Hit, breakpoint_at, pause_reason
from agentbench.notebook.stepper_commands import TAB_COMMANDS, stimulus_of
from agentbench.notebook.stepper_edits import Edit
from agentbench.notebook.stepper_messages import (
    BackRequested,
    BreakpointsCleared,
    BreakpointSet,
    CloseRequested,
    EditsDiscarded,
    EditStaged,
    GotoRequested,
    RunFacts,
    RunRequested,
    ShowAgainRequested,
    Started,
    StepEnded,
    StepperStatus,
    StepRequested,
)
from agentbench.notebook.stepper_model import StepperModel
from agentbench.notebook.stepper_view import SIGNS, StepperView, view_of
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.report import PlannedDelivery, StepReport


def info(number: int) -> CheckpointInfo:
    return CheckpointInfo("flow", f"cp-{number}", number, "2024-01-01T00:00:00.000000+00:00")


def plan(*targets: str) -> tuple[PlannedDelivery, ...]:
    return tuple(PlannedDelivery("plan", target, "x", 0, ("plan",)) for target in targets)


def facts(supersteps: int = 3, status: str = "IN_PROGRESS", planned: tuple[Any, ...] = (), **more: Any) -> RunFacts:
    saved = tuple(info(number) for number in range(supersteps))
    return RunFacts(run_id="run-1", status=status, superstep=supersteps - 1, checkpoints=saved, planned=planned, **more)


def model(told: RunFacts | None = None) -> StepperModel:
    made = StepperModel("flow", Activity(["plan", "review"], [("plan", "review")]))
    made.handle(Started(told or facts(planned=plan("review"))))
    return made


def edited(made: StepperModel, *paths: str) -> StepperModel:
    for path in paths or ("score",):
        where = made.past[made.displayed or 0].info.checkpoint_id
        made.handle(EditStaged(where, Edit(path, 1, 2, ("state", path))))
    return made


def labels(view: StepperView) -> dict[str, str]:
    return {button.name: button.label for button in view.buttons}


def enabled(items: Any) -> list[str]:
    return [item.command for item in items if item.command and item.enabled]


# --- header and banner ------------------------------------------------------------------------------------------------


def test_every_status_has_a_sign_of_its_own_or_shares_that_of_being_at_work() -> None:
    assert set(SIGNS) == set(StepperStatus)
    assert len(set(SIGNS.values())) == len(StepperStatus) - 1  # stepping and running


def test_a_run_at_rest_says_what_is_next() -> None:
    assert view_of(model()).banner.text == "Superstep 3 is next: review gets 1 message."


def test_many_receivers_still_make_one_line() -> None:
    told = facts(planned=plan("a", "b", "c", "d", "e", "e"))
    assert view_of(model(told)).banner.text == "Superstep 3 is next: a, b, c and 2 more get 6 messages."


def test_a_breakpoint_that_paused_the_run_is_named_with_what_is_next() -> None:
    made = model(facts(1, planned=plan("review")))
    point = breakpoint_at("bp-1", "review", executors=("review",))
    made.handle(BreakpointSet(point))
    made.handle(RunRequested(confirmed=True))
    hits = (Hit(point),)
    told = facts(2, planned=plan("review"), pause_reason=pause_reason(hits))
    made.handle(StepEnded(StepReport(1, [], None), told, hits=hits))
    view = view_of(made)
    assert view.header.status == "paused (breakpoint: review)"
    assert view.banner.text == "Breakpoint: review. Superstep 2 is next: review gets 1 message."
    assert [(each.text, each.reached) for each in view.breakpoints] == [("before review", True)]


def test_a_condition_that_raised_is_told() -> None:
    made = model(facts(1, planned=plan("review")))
    point = breakpoint_at("bp-1", lambda state: state["x"], executors=("review",))
    made.handle(BreakpointSet(point))
    made.handle(RunRequested(confirmed=True))
    hits = (Hit(point, KeyError("x")),)
    told = facts(2, planned=plan("review"), pause_reason=pause_reason(hits))
    made.handle(StepEnded(StepReport(1, [], None), told, hits=hits))
    assert "raised KeyError: 'x'" in view_of(made).banner.text


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("before:review", "before review"),
        ("after:review", "after review"),
        (4, "before superstep 4"),
        (str, "before a message of type str is delivered"),
        ("failure", "at a failure"),
        ("request", "at a request"),
    ],
)
def test_breakpoints_are_listed_in_words(where: Any, words: str) -> None:
    made = model()
    made.handle(BreakpointSet(breakpoint_at("bp-1", where, once=True, executors=("review",))))
    assert view_of(made).breakpoints[0].text == f"{words}, once"


@pytest.mark.parametrize(("paths", "words"), [(("a",), "1 edit staged"), (("a", "b"), "2 edits staged")])
def test_staged_edits_are_told_with_what_applies_them(paths: tuple[str, ...], words: str) -> None:
    banner = view_of(edited(model(), *paths)).banner
    assert banner.text.startswith(f"{words}: Step, Run or Fork applies ")
    assert [command for command, _ in banner.actions] == ["see_edits", "discard_edits"]


def test_in_the_past_the_banner_says_where_and_what_a_step_does() -> None:
    made = model()
    made.handle(BackRequested())
    banner = view_of(made).banner
    assert banner.text == "Viewing 2 of 3 (superstep 1). Nothing is executed; Step goes on from here as a new run."
    assert banner.actions == (("live", "Show the present"),)
    assert "2 of 3" in view_of(made).header.status
    assert [command for command, _ in view_of(edited(made)).banner.actions] == ["see_edits", "discard_edits", "live"]


def test_a_new_run_is_asked_for_in_one_line() -> None:
    made = model()
    made.handle(BackRequested())
    made.handle(StepRequested())
    banner = view_of(made).banner
    assert banner.text == "Going on from checkpoint 2 of 3 starts a new run; run-1 stays as it is."
    assert banner.actions == (("confirm", "Start a new run here"), ("cancel", "Keep looking"))
    at_now = edited(model())
    at_now.handle(StepRequested())
    banner = view_of(at_now).banner
    assert banner.text == "Going on from here with 1 edit starts a new run; run-1 stays as it is."


def test_while_it_shows_again_nothing_else_is_said() -> None:
    made = model()
    made.handle(ShowAgainRequested())
    assert view_of(made).banner.text == "Showing again: 1 of 3. Nothing is executed."
    assert view_of(made).banner.actions == (("live", "Stop"),)


def test_an_open_question_says_who_asks() -> None:
    asks = WorkflowEvent.request_info("q1", "review", "Publish?", bool)
    view = view_of(model(facts(status="IDLE_WITH_PENDING_REQUESTS", requests=(asks,))))
    assert view.banner.text == "review asks for an answer, below. After it Step or Run goes on."
    assert view.requests_title == "1 request"


@pytest.mark.parametrize(
    ("supersteps", "words"),
    [
        (3, "Back shows its checkpoints; Step goes on from one as a new run."),
        (1, "Fork goes on from its checkpoint as a new run."),
        (0, "It has no checkpoint; run its cell again to begin anew."),
    ],
)
def test_after_a_stop_only_what_can_be_done_is_offered(supersteps: int, words: str) -> None:
    view = view_of(model(facts(supersteps, status="CANCELLED")))
    assert view.banner.text == f"The run was stopped. {words}"
    offered = {button.name for button in view.buttons if button.enabled}
    assert ("back" in offered, "fork" in offered) == (supersteps > 1, supersteps > 0)


def test_staged_edits_can_be_seen_and_discarded() -> None:
    assert view_of(edited(model())).banner.actions == (("see_edits", "See it"), ("discard_edits", "Discard"))
    assert view_of(edited(model(), "score", "title")).banner.actions[0] == ("see_edits", "See them")


# --- buttons and menus ------------------------------------------------------------------------------------------------


def test_in_the_past_step_says_that_it_goes_on_from_there() -> None:
    made = model()
    assert labels(view_of(made))["step"] == "Step"
    made.handle(BackRequested())
    view = view_of(made)
    assert labels(view)["step"] == "Step from here"
    assert view.run_menu[0].label == "Run again from here to the end"


def test_after_a_failure_step_is_a_retry() -> None:
    assert labels(view_of(model(facts(status="FAILED"))))["step"] == "Retry step"


def test_ways_to_run_are_there_when_run_is() -> None:
    made = model()
    assert enabled(view_of(made).run_menu) == ["run", "run_request", "ask_steps", "run_slow"]
    made.handle(BreakpointSet(breakpoint_at("bp-1", "failure", executors=())))
    assert "run_breakpoint" in enabled(view_of(made).run_menu)
    assert enabled(view_of(model(facts(status="CANCELLED"))).run_menu) == []


def test_the_other_menu_offers_what_there_is() -> None:
    made = model()
    assert enabled(view_of(made).more_menu) == ["show_again", "breakpoints", "break", "see_edits", "help"]
    made.handle(BackRequested())
    made.handle(BreakpointSet(breakpoint_at("bp-1", "failure", executors=())))
    edited(made)
    more = enabled(view_of(made).more_menu)
    assert {"live", "clear_breakpoints", "discard_edits"} <= set(more)


def test_a_closed_stepper_offers_nothing_but_the_keys() -> None:
    made = model()
    made.handle(CloseRequested())
    view = view_of(made)
    assert [button.name for button in view.buttons if button.enabled] == []
    assert enabled(view.run_menu) == []
    assert enabled(view.more_menu) == ["help"]
    assert not view.scrubber.enabled


# --- what the controls ask --------------------------------------------------------------------------------------------


def test_every_command_that_is_shown_is_one_that_is_understood() -> None:
    made = model()
    made.handle(BackRequested())
    edited(made)
    made.handle(StepRequested())
    view = view_of(made)
    shown = {
        *labels(view),
        *enabled(view.run_menu),
        *enabled(view.more_menu),
        *(name for name, _ in view.banner.actions),
    }
    on_the_page = {"help", "breakpoints", "ask_steps", "break"}
    for name in shown - on_the_page - set(TAB_COMMANDS):
        assert stimulus_of(name, made, limit=9) is not None, name


@pytest.mark.parametrize(
    ("name", "value", "stimulus"),
    [
        ("step", None, StepRequested()),
        ("run", None, RunRequested(limit=9, through=True)),
        ("run_request", None, RunRequested(limit=9, until="request")),
        ("run_breakpoint", None, RunRequested(limit=9, until="breakpoint", through=True)),
        ("run_steps", 3, StepRequested(3)),
        ("run_steps", 0, None),
        ("run_steps", True, None),
        ("run_steps", "3", None),
        ("confirm", None, None),
        ("cancel", None, None),
        ("nonsense", None, None),
        ("discard_edits", None, EditsDiscarded()),
        ("clear_breakpoints", None, BreakpointsCleared(frozenset())),
    ],
)
def test_a_command_asks_one_thing(name: str, value: object, stimulus: object) -> None:
    assert stimulus_of(name, model(), limit=9, value=value) == stimulus


def test_a_question_is_confirmed_or_taken_away() -> None:
    made = model()
    made.handle(BackRequested())
    made.handle(StepRequested(2))
    assert stimulus_of("confirm", made, limit=9) == replace(StepRequested(2), confirmed=True)
    cancel: Any = stimulus_of("cancel", made, limit=9)
    assert cancel == GotoRequested("cp-1")
    made.handle(cancel)
    assert made.confirming is None
    assert made.viewing == 1
