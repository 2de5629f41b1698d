"""The stepper as a table: what people ask and the engine tells, what it shows, and what can be pressed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import CheckpointInfo, PlannedDelivery, StepReport, WorkflowEvent
from agentbench.exceptions import StepperClosed, StepperStateError
from agentbench.notebook import Edit, StepperStatus
from agentbench.notebook.history.activity import Activity
from agentbench.notebook.stepping.model.break_places import Hit, pause_reason
from agentbench.notebook.stepping.model.commands import COMMANDS
from agentbench.notebook.stepping.model.messages import (
    CancelRun,
    Fork,
    Instruction,
    Restore,
    RunFacts,
    StepEnded,
    TakeStep,
    Wait,
)
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.screen_state import SIGNS, screen_of
from agentbench.stategraph import StreamEmitter

S = StepperStatus


def plan(*targets: str) -> tuple[PlannedDelivery, ...]:
    return tuple(PlannedDelivery("plan", target, "x", 0, ("plan",)) for target in targets)


GOES_ON = plan("review")


def facts(supersteps: int = 3, status: str = "IN_PROGRESS", planned: Any = GOES_ON, **more: Any) -> RunFacts:
    times = "2024-01-01T00:00:00.000000+00:00"
    saved = tuple(CheckpointInfo("flow", f"cp-{number}", number, times) for number in range(supersteps))
    reached = supersteps - 1 if supersteps else None
    return RunFacts(run_id="run-1", status=status, superstep=reached, checkpoints=saved, planned=planned, **more)


NEW = RunFacts(run_id="run-1", planned=plan("plan"))


def model(told: RunFacts | None = None) -> StepperModel:
    made = StepperModel("flow", Activity(["plan", "review"], [("plan", "review")]))
    made.start(told or facts())
    return made


def end_step(made: StepperModel, supersteps: int, status: str = "IN_PROGRESS", **more: Any) -> Any:
    """The last of so many supersteps is over, its checkpoint saved."""
    reached, hits = more.pop("reached", False), more.pop("hits", ())
    told = facts(supersteps, status, **more)
    return made.end_step(StepEnded(StepReport(supersteps - 1, [], None), told, reached, hits))


def request(executor: str = "review") -> Any:
    return WorkflowEvent.request_info("q1", executor, "Publish this draft?", bool)


def edited(made: StepperModel) -> StepperModel:
    where = made.checkpoints.past[made.checkpoints.displayed or 0].info.checkpoint_id
    made.stage_edit(where, Edit("score", 1, 2, ("state", "score")))
    return made


def enabled(items: Any) -> list[str]:
    return [item.name for item in items if item.name and item.enabled]


# --- the table of states ----------------------------------------------------------------------------------------------


def after(status: StepperStatus) -> StepperModel:
    """A stepper in the given state, with two checkpoints where that is possible."""
    made = model(NEW)
    if status is S.READY:
        return made
    made.step()
    end_step(made, 1)
    made.step()
    ends = {S.WAITING: "IDLE_WITH_PENDING_REQUESTS", S.DONE: "IDLE", S.FAILED: "FAILED", S.CANCELLED: "CANCELLED"}
    requests = (request(),) if status is S.WAITING else ()
    end_step(made, 2, ends.get(status, "IN_PROGRESS"), planned=() if status in ends else GOES_ON, requests=requests)
    more: dict[StepperStatus, Callable[[], object]] = {S.STEPPING: made.step, S.RUNNING: made.run, S.CLOSED: made.close}
    if status in more:
        more[status]()
    return made


CALLS = {
    S.READY: ("step", "run"),  # nothing is saved yet to go back to, or to fork from
    S.STEPPING: ("pause", "stop"),
    S.RUNNING: ("pause", "stop"),
    S.PAUSED: ("step", "run", "stop", "back", "fork", "edit", "show_again"),
    S.WAITING: ("stop", "back", "fork", "show_again"),
    S.DONE: ("back", "fork", "show_again"),
    S.FAILED: ("step", "back", "fork", "edit", "show_again"),
    S.CANCELLED: ("back", "fork", "show_again"),
    S.CLOSED: (),
}
Request = Callable[[StepperModel], "Instruction | None"]
REQUESTS: dict[str, Request] = {
    "step": StepperModel.step,
    "run": StepperModel.run,
    "pause": StepperModel.pause,
    "stop": StepperModel.stop,
    "back": StepperModel.go_back,
    "forward": StepperModel.go_forward,
    "fork": StepperModel.branch,
    "edit": lambda model: model.stage_edit("cp-0", Edit("score", 1, 2, ("state", "score"))),
    "show_again": lambda model: model.show_again(2),
}


def go_to_the_first(model: StepperModel) -> None:
    model.go_to("cp-0")


@pytest.mark.parametrize("status", list(S))
def test_exactly_the_calls_of_a_state_are_allowed_and_their_buttons_on(status: StepperStatus) -> None:
    made = after(status)
    assert (made.status, made.allowed) == (status, CALLS[status])
    view = screen_of(made)
    assert set(enabled(view.buttons)) == {button.name for button in view.buttons} & set(CALLS[status])
    if status is S.CLOSED:
        assert (enabled(view.run_menu), enabled(view.more_menu), view.scrubbing) == ([], ["help"], False)
    for call, requested in REQUESTS.items():
        made = after(status)
        if call in made.allowed:
            requested(made)
        else:
            with pytest.raises(StepperClosed if status is S.CLOSED else StepperStateError) as refused:
                requested(made)
            if isinstance(refused.value, StepperStateError):
                assert (refused.value.status, refused.value.allowed) == (status, made.allowed)
            assert made.status is status


@pytest.mark.parametrize(
    ("status", "told", "rests_as"),
    [
        ("IDLE", {"planned": ()}, S.DONE),
        ("IDLE_WITH_PENDING_REQUESTS", {"planned": (), "requests": (request(),)}, S.WAITING),
        ("FAILED", {"planned": ()}, S.FAILED),
        ("CANCELLED", {"planned": ()}, S.CANCELLED),
        ("IN_PROGRESS", {"reached": True}, S.PAUSED),
        ("IN_PROGRESS", {"reached": KeyError("draft")}, S.PAUSED),
    ],
)
def test_a_run_goes_on_until_something_ends_it(status: str, told: dict[str, Any], rests_as: StepperStatus) -> None:
    made = model(NEW)
    assert made.run() == TakeStep()
    assert end_step(made, 1) == TakeStep()
    assert end_step(made, 2, "IN_PROGRESS_PENDING_REQUESTS", requests=(request(),)) == TakeStep()
    assert end_step(made, 3, status, **told) is None
    assert made.status is rests_as


# --- waiting between supersteps ---------------------------------------------------------------------------------------


def test_a_slow_run_waits_between_its_supersteps_and_is_stopped_there() -> None:
    made = model(NEW)
    assert made.run(speed=4) == TakeStep()
    rest = end_step(made, 1)
    assert rest == Wait(0.25)
    assert made.end_wait(rest.number) == TakeStep()
    rest = end_step(made, 2)
    assert made.stop() == CancelRun()
    assert made.end_wait(rest.number) is None
    made.rest(facts(2, "CANCELLED"))
    assert made.end_wait(rest.number) is None
    assert made.status is S.CANCELLED


@pytest.mark.parametrize(
    "requested",
    [
        StepperModel.pause,
        StepperModel.go_back,
        StepperModel.go_forward,
        StepperModel.show_now,
        go_to_the_first,
        StepperModel.close,
    ],
)
def test_any_request_ends_the_replay(requested: Request) -> None:
    made = model(facts(4))
    made.go_back(2)
    rest = made.show_again(2)
    requested(made)
    assert isinstance(rest, Wait)
    assert not made.playing
    viewing = made.checkpoints.viewing
    assert made.end_wait(rest.number) is None
    assert made.checkpoints.viewing == viewing


def test_a_replay_that_is_over_does_not_drive_what_was_requested_meanwhile() -> None:
    made = after(S.PAUSED)
    rest = made.show_again(2)
    assert isinstance(rest, Wait)
    made.show_now()
    assert made.run(speed=2) == TakeStep()
    slow = end_step(made, 3)
    assert made.end_wait(rest.number) is None
    assert made.end_wait(slow.number) == TakeStep()


# --- branches and edits -----------------------------------------------------------------------------------------------


def test_a_branch_that_is_stopped_while_it_is_made_is_stopped() -> None:
    made = after(S.PAUSED)
    fork = made.branch()
    assert made.stop() == CancelRun()
    assert isinstance(fork, Fork)
    assert made.take_fork(fork, RunFacts(run_id="run-2", superstep=1, planned=GOES_ON)) is None
    made.rest(facts(2, "CANCELLED"))
    assert made.status is S.CANCELLED


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_every_status_has_a_sign_of_its_own_or_shares_that_of_being_at_work() -> None:
    assert set(SIGNS) == set(StepperStatus)
    assert len(set(SIGNS.values())) == len(StepperStatus) - 1  # stepping and running


def test_an_error_beside_the_run_leaves_the_run_as_it_was() -> None:
    made = after(S.PAUSED)
    made.step()
    made.rest(facts(2), "OSError: disk full")
    assert (made.status, screen_of(made).banner.text) == (S.PAUSED, "OSError: disk full")


def test_an_answer_during_a_superstep_changes_the_requests_and_nothing_else() -> None:
    made = model(facts(1, "IN_PROGRESS_PENDING_REQUESTS", requests=(request(),)))
    made.step()
    made.see(WorkflowEvent.executor_invoked("review"))
    assert made.take_answer(facts(1)) is None
    assert made.status is S.STEPPING
    assert (screen_of(made).states["review"], screen_of(made).requests) == ("running", ())


def test_the_last_line_of_a_running_tool_is_shown_until_its_executor_ends() -> None:
    made = model()
    made.step()
    made.see(WorkflowEvent("executor_invoked", "x", executor_id="review"))
    emit = StreamEmitter(lambda data: made.see(WorkflowEvent("custom", data, executor_id="review")), "check", "c1")
    emit.progress("1 of 2")
    emit.progress("2 of 2\n\u202e")
    assert screen_of(made).banner.text == r"Superstep 3 is running. check: 2 of 2 \u202e"
    made.see(WorkflowEvent("executor_invoked", "x", executor_id="plan"))
    emit = StreamEmitter(lambda data: made.see(WorkflowEvent("custom", data, executor_id="plan")), "read", "c2")
    emit.progress("3 rows")
    assert screen_of(made).banner.text == r"Superstep 3 is running. read: 3 rows · check: 2 of 2 \u202e"
    made.see(WorkflowEvent("executor_completed", executor_id="review"))
    assert "check" not in screen_of(made).banner.text


def test_what_paused_the_run_is_named_with_what_is_next() -> None:
    for error, told in ((None, "Breakpoint: review. Superstep 2 is next"), (KeyError("x"), "raised KeyError: 'x'")):
        made = model(facts(1))
        hits = (Hit(made.break_at("review"), error),)
        made.run(confirmed=True)
        end_step(made, 2, pause_reason=pause_reason(hits), hits=hits)
        view = screen_of(made)
        assert told in view.banner.text
        assert [(text, reached) for _, text, reached in view.breakpoints] == [("before review", True)]


def test_in_the_past_the_banner_says_where_and_what_a_step_does() -> None:
    made = model()
    made.go_back()
    view = screen_of(made)
    assert (view.banner.tone, "2 of 3 (superstep 1)" in view.banner.text) == ("past", True)
    assert view.banner.actions == (("live", "Back to now"),)
    assert "2 of 3" in view.header.status
    assert [command for command, _ in screen_of(edited(made)).banner.actions] == ["see_edits", "discard_edits", "live"]


def test_a_new_run_is_offered_in_one_line_with_commands_that_are_understood() -> None:
    made = model()
    made.go_back()
    made.step()
    at_now = edited(model())
    at_now.step()
    for asking, words in ((made, "2 of 3"), (at_now, "1 edit")):
        banner = screen_of(asking).banner
        assert (banner.tone, words in banner.text, "run-1" in banner.text) == ("ask", True, True)
        assert [command for command, _ in banner.actions] == ["confirm", "cancel"]
    view = screen_of(at_now)
    shown = {*(button.name for button in view.buttons), *enabled(view.run_menu), *enabled(view.more_menu)}
    on_the_page = {"help", "breakpoints", "ask_steps", "break", "edit", "see_edits", "save"}
    assert {name for name in shown if COMMANDS[name].act is None} == on_the_page


@pytest.mark.parametrize(("supersteps", "way"), [(3, "Back"), (1, "Fork"), (0, "run its cell again")], ids=str)
def test_after_a_stop_only_possible_actions_are_offered(supersteps: int, way: str) -> None:
    view = screen_of(model(facts(supersteps, "CANCELLED", planned=())))
    assert (view.banner.tone, way in view.banner.text) == ("note", True)
    offered = enabled(view.buttons)
    assert ("back" in offered, "fork" in offered) == (supersteps > 1, supersteps > 0)


def test_hostile_names_and_texts_reach_no_text_with_control_characters_and_the_log_is_bounded() -> None:
    evil = "a\u202eb\x00c\nd"
    made = StepperModel(evil, Activity((evil,)))
    made.start(NEW)
    made.step()
    made.see(WorkflowEvent.executor_invoked(evil))
    for number in range(300):
        made.see(WorkflowEvent("log", f"{evil} {number}", executor_id=evil))
    log = screen_of(made).log
    assert (len(log), log[-1].text.endswith(" 299")) == (200, True)
    end_step(made, 1, "IDLE_WITH_PENDING_REQUESTS", planned=(), requests=(request(evil),))
    view = screen_of(made)
    shown = [view.header.line, view.announcement, view.banner.text, *(line.text for line in view.log)]
    assert not any(character in text for text in shown for character in "\u202e\x00\n")


# --- a law ------------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([*REQUESTS.values(), StepperModel.show_now, "IN_PROGRESS", "IDLE", "FAILED"]), max_size=25)
)
def test_in_any_order_of_requests_nothing_breaks_and_only_allowed_calls_change_anything(script: list[Any]) -> None:
    made, told = model(NEW), NEW
    for line in script:
        if isinstance(line, str):
            if made.status in (S.STEPPING, S.RUNNING):
                told = facts(len(told.checkpoints) + 1, line)
                made.end_step(StepEnded(StepReport(len(told.checkpoints), [], None), told, False, ()))
            continue
        before, allowed = made.status, made.allowed
        call = next((name for name, asked in REQUESTS.items() if asked is line), None)
        if call is not None and call not in allowed:
            with pytest.raises(StepperStateError):
                line(made)
            assert (made.status, made.allowed) == (before, allowed)
            continue
        todo = line(made)
        if isinstance(todo, CancelRun):
            made.rest(replace(told, status="CANCELLED"))
        elif isinstance(todo, Restore):
            told = replace(told, status="IN_PROGRESS")
            assert made.take_restore(told) == TakeStep()
        elif isinstance(todo, Fork) and made.status is S.STEPPING:
            told = RunFacts(run_id=f"{told.run_id}'", superstep=1, planned=GOES_ON)
            made.take_fork(todo, told)
        buttons = screen_of(made).buttons
        assert set(enabled(buttons)) == {button.name for button in buttons} & set(made.allowed)
        assert (made.status in (S.STEPPING, S.RUNNING) or made.playing is not None) == ("pause" in made.allowed)
