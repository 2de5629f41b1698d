"""What a stepper shows, as a table: words, signs, and what can be pressed."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.checkpoints.editing import Edit
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.history.activity import Activity
from agentbench.notebook.stepping.model.commands import COMMANDS
from agentbench.notebook.stepping.model.messages import RunFacts, StepEnded, StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.screen_state import SIGNS, ScreenState, screen_of
from agentbench.workflows.run.break_places import Hit, pause_reason
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
    made.start(told or facts(planned=plan("review")))
    return made


def edited(made: StepperModel, *paths: str) -> StepperModel:
    for path in paths or ("score",):
        where = made.checkpoints.past[made.checkpoints.displayed or 0].info.checkpoint_id
        made.stage_edit(where, Edit(path, 1, 2, ("state", path)))
    return made


def labels(view: ScreenState) -> dict[str, str]:
    return {button.name: button.label for button in view.buttons}


def enabled(items: Any) -> list[str]:
    return [item.name for item in items if item.name and item.enabled]


# --- header and banner ------------------------------------------------------------------------------------------------


def test_every_status_has_a_sign_of_its_own_or_shares_that_of_being_at_work() -> None:
    assert set(SIGNS) == set(StepperStatus)
    assert len(set(SIGNS.values())) == len(StepperStatus) - 1  # stepping and running


def test_a_breakpoint_that_paused_the_run_is_named_with_what_is_next() -> None:
    made = model(facts(1, planned=plan("review")))
    point = made.break_at("review")
    made.run(confirmed=True)
    hits = (Hit(point),)
    told = facts(2, planned=plan("review"), pause_reason=pause_reason(hits))
    made.end_step(StepEnded(StepReport(1, [], None), told, hits=hits))
    view = screen_of(made)
    assert view.header.status == "paused (breakpoint: review)"
    assert view.banner.text == "Breakpoint: review. Superstep 2 is next: review gets 1 message."
    assert [(text, reached) for _, text, reached in view.breakpoints] == [("before review", True)]


def test_a_condition_that_raised_is_reported() -> None:
    made = model(facts(1, planned=plan("review")))
    point = made.break_at(lambda state: state["x"])
    made.run(confirmed=True)
    hits = (Hit(point, KeyError("x")),)
    told = facts(2, planned=plan("review"), pause_reason=pause_reason(hits))
    made.end_step(StepEnded(StepReport(1, [], None), told, hits=hits))
    assert "raised KeyError: 'x'" in screen_of(made).banner.text


def test_in_the_past_the_banner_says_where_and_what_a_step_does() -> None:
    made = model()
    made.go_back()
    banner = screen_of(made).banner
    assert (banner.tone, "2 of 3 (superstep 1)" in banner.text) == ("past", True)
    assert banner.actions == (("live", "Back to now"),)
    assert "2 of 3" in screen_of(made).header.status
    assert [command for command, _ in screen_of(edited(made)).banner.actions] == ["see_edits", "discard_edits", "live"]


def test_a_new_run_is_offered_in_one_line() -> None:
    made = model()
    made.go_back()
    made.step()
    banner = screen_of(made).banner
    assert (banner.tone, "2 of 3" in banner.text, "run-1" in banner.text) == ("ask", True, True)
    assert [command for command, _ in banner.actions] == ["confirm", "cancel"]
    at_now = edited(model())
    at_now.step()
    banner = screen_of(at_now).banner
    assert (banner.tone, "1 edit" in banner.text, "run-1" in banner.text) == ("ask", True, True)


@pytest.mark.parametrize(("supersteps", "way"), [(3, "Back"), (1, "Fork"), (0, "run its cell again")], ids=str)
def test_after_a_stop_only_possible_actions_are_offered(supersteps: int, way: str) -> None:
    view = screen_of(model(facts(supersteps, status="CANCELLED")))
    assert (view.banner.tone, way in view.banner.text) == ("note", True)
    offered = {button.name for button in view.buttons if button.enabled}
    assert ("back" in offered, "fork" in offered) == (supersteps > 1, supersteps > 0)


# --- buttons and menus ------------------------------------------------------------------------------------------------


def test_a_closed_stepper_offers_nothing_but_the_keys() -> None:
    made = model()
    made.close()
    view = screen_of(made)
    assert [button.name for button in view.buttons if button.enabled] == []
    assert enabled(view.run_menu) == []
    assert enabled(view.more_menu) == ["help"]
    assert not view.scrubbing


# --- what the controls ask --------------------------------------------------------------------------------------------


def test_every_command_that_is_shown_is_one_that_is_understood() -> None:
    made = model()
    made.go_back()
    edited(made)
    made.step()
    view = screen_of(made)
    shown = {
        *labels(view),
        *enabled(view.run_menu),
        *enabled(view.more_menu),
        *(name for name, _ in view.banner.actions),
    }
    on_the_page = {"help", "breakpoints", "ask_steps", "break", "edit", "see_edits", "save"}
    assert {name for name in shown if COMMANDS[name].act is None} == on_the_page
