"""The stepper as a table: what people ask and the engine tells, what it shows and decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.editing import Edit
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import StepperClosed, StepperStateError
from agentbench.notebook.history.activity import Activity
from agentbench.notebook.stepping.model.messages import (
    CancelRun,
    Fork,
    Instruction,
    Restore,
    RunFacts,
    StepEnded,
    StepperStatus,
    TakeStep,
    Wait,
)
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.screen_state import screen_of
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.run.break_places import Hit
from agentbench.workflows.run.report import PlannedDelivery, StepReport

S = StepperStatus
INVOKED, COMPLETED = WorkflowEvent.executor_invoked, WorkflowEvent.executor_completed


def info(checkpoint_id: str, iteration: int) -> CheckpointInfo:
    return CheckpointInfo("research-flow", checkpoint_id, iteration, "2024-01-01T00:00:00.000000+00:00")


def delivery(source: str, target: str) -> PlannedDelivery:
    return PlannedDelivery(source, target, "x", 0, (source,))


def report(superstep: int, *events: Any) -> StepReport:
    return StepReport(superstep, list(events), None)


def request(executor: str = "review", request_id: str = "q1") -> Any:
    return WorkflowEvent.request_info(request_id, executor, "Publish this draft?", bool)


@dataclass
class Engine:
    """Feeds a model with what the engine would tell in a run of `plan -> review`."""

    model: StepperModel
    facts: RunFacts = field(default_factory=lambda: RunFacts(run_id="run-1", planned=(delivery("", "plan"),)))

    def start(self) -> Engine:
        self.model.start(self.facts)
        return self

    def saw(self, *events: Any) -> None:
        for event in events:
            self.model.see(event)

    def ended(
        self,
        status: str = "IN_PROGRESS",
        *,
        planned: Sequence[PlannedDelivery] = (),
        requests: Sequence[Any] = (),
        events: tuple[Any, ...] = (),
        pause_reason: str | None = None,
        reached: bool | Exception = False,
        hits: Sequence[Hit] = (),
    ) -> Any:
        """One more superstep is over, its checkpoint saved."""
        number = 0 if self.facts.superstep is None else self.facts.superstep + 1
        saved = info(f"cp-{len(self.facts.checkpoints)}-{self.facts.run_id}", number)
        self.facts = replace(
            self.facts,
            status=status,
            superstep=number,
            checkpoints=(*self.facts.checkpoints, saved),
            planned=tuple(planned),
            requests=tuple(requests),
            pause_reason=None if pause_reason is None else PauseReason(pause_reason),
        )
        return self.model.end_step(StepEnded(report(number, *events), self.facts, reached, hits))

    def step(self, status: str = "IN_PROGRESS", **told: Any) -> Any:
        assert self.model.step() == TakeStep()
        return self.ended(status, **told)


def status_of(model: StepperModel) -> StepperStatus:
    return model.status


def viewing_of(model: StepperModel) -> int | None:
    return model.checkpoints.viewing


GOES_ON = (delivery("plan", "review"),)


def new_model() -> StepperModel:
    return StepperModel("research-flow", Activity(("plan", "review"), [("plan", "review")]))


@pytest.fixture
def model() -> StepperModel:
    return new_model()


@pytest.fixture
def engine(model: StepperModel) -> Engine:
    return Engine(model).start()


def after(status: StepperStatus, model: StepperModel) -> Engine:
    """A stepper in the given state, with two checkpoints where that is possible."""
    engine = Engine(model).start()
    if status is S.READY:
        return engine
    engine.step(planned=GOES_ON)
    if status in (S.STEPPING, S.RUNNING):
        engine.step(planned=GOES_ON)
        _ = model.step() if status is S.STEPPING else model.run()
    elif status is S.CLOSED:
        model.close()
    else:
        tails: dict[StepperStatus, tuple[str, dict[str, Any]]] = {
            S.PAUSED: ("IN_PROGRESS", {"planned": GOES_ON}),
            S.WAITING: ("IDLE_WITH_PENDING_REQUESTS", {"requests": [request()]}),
            S.DONE: ("IDLE", {}),
            S.FAILED: ("FAILED", {}),
            S.CANCELLED: ("CANCELLED", {}),
        }
        tail, told = tails[status]
        engine.step(tail, **told)
    return engine


# --- the table of states ----------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("status", list(S))
def test_exactly_the_calls_of_a_state_are_allowed_and_their_buttons_on(
    model: StepperModel, status: StepperStatus
) -> None:
    after(status, model)
    assert (status_of(model), model.allowed) == (status, CALLS[status])
    buttons = screen_of(model).buttons
    assert {button.name for button in buttons if button.enabled} == {b.name for b in buttons} & set(CALLS[status])


Request = Callable[[StepperModel], "Instruction | None"]

REQUESTS: dict[str, Request] = {
    "step": StepperModel.step,
    "run": StepperModel.run,
    "pause": StepperModel.pause,
    "stop": StepperModel.stop,
    "back": StepperModel.go_back,
    "forward": StepperModel.go_forward,
    "fork": StepperModel.branch,
    "edit": lambda model: model.stage_edit("cp-0-run-1", Edit("score", 1, 2, ("state", "score"))),
    "show_again": lambda model: model.show_again(2),
}


def go_to_the_first(model: StepperModel) -> None:
    model.go_to("cp-0-run-1")


@pytest.mark.parametrize("status", [status for status in S if status is not S.CLOSED])
def test_what_has_no_button_now_is_refused_with_what_is_possible(status: StepperStatus) -> None:
    for call, requested in REQUESTS.items():
        model = new_model()
        after(status, model)
        if call in model.allowed:
            requested(model)
            continue
        with pytest.raises(StepperStateError) as refused:
            requested(model)
        assert (refused.value.status, refused.value.allowed) == (status, model.allowed)
        assert status_of(model) is status


def test_a_closed_stepper_takes_no_more_calls(model: StepperModel) -> None:
    after(S.CLOSED, model)
    for requested in [*REQUESTS.values(), go_to_the_first, StepperModel.show_now]:
        with pytest.raises(StepperClosed):
            requested(model)


# --- stepping and running ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "told", "rests_as"),
    [
        ("IDLE", {}, S.DONE),
        ("IDLE_WITH_PENDING_REQUESTS", {"requests": [request()]}, S.WAITING),
        ("FAILED", {}, S.FAILED),
        ("CANCELLED", {}, S.CANCELLED),
        ("IN_PROGRESS", {"planned": GOES_ON, "pause_reason": "breakpoint: review"}, S.PAUSED),
        ("IN_PROGRESS", {"planned": GOES_ON, "reached": True}, S.PAUSED),
        ("IN_PROGRESS", {"planned": GOES_ON, "reached": KeyError("draft")}, S.PAUSED),
    ],
)
def test_a_run_goes_on_until_something_ends_it(
    engine: Engine, status: str, told: dict[str, Any], rests_as: StepperStatus
) -> None:
    assert engine.model.run() == TakeStep()
    assert engine.ended(planned=GOES_ON) == TakeStep()
    assert engine.ended("IN_PROGRESS_PENDING_REQUESTS", planned=GOES_ON, requests=[request()]) == TakeStep()
    assert engine.ended(status, **told) is None
    assert engine.model.status is rests_as


def test_a_slow_run_waits_between_its_supersteps(engine: Engine) -> None:
    assert engine.model.run(speed=4) == TakeStep()
    rest = engine.ended(planned=GOES_ON)
    assert rest == Wait(0.25)
    assert engine.model.end_wait(rest.number) == TakeStep()


def test_a_stop_between_two_supersteps_of_a_slow_run_takes_no_further_one(engine: Engine) -> None:
    engine.model.run(speed=4)
    rest = engine.ended(planned=GOES_ON)
    assert engine.model.stop() == CancelRun()
    assert engine.model.end_wait(rest.number) is None
    engine.model.rest(replace(engine.facts, status="CANCELLED"))
    assert engine.model.end_wait(rest.number) is None
    assert status_of(engine.model) is S.CANCELLED


def test_an_error_beside_the_run_leaves_the_run_as_it_was(engine: Engine) -> None:
    engine.step(planned=GOES_ON)
    engine.model.step()
    engine.model.rest(engine.facts, "OSError: disk full")
    assert status_of(engine.model) is S.PAUSED
    assert screen_of(engine.model).banner.text == "OSError: disk full"


# --- people in the loop -----------------------------------------------------------------------------------------------


def test_an_answer_during_a_superstep_changes_the_requests_and_nothing_else(engine: Engine) -> None:
    engine.step("IN_PROGRESS_PENDING_REQUESTS", planned=GOES_ON, requests=[request()])
    engine.model.step()
    engine.saw(INVOKED("review"))
    assert engine.model.take_answer(replace(engine.facts, requests=())) is None
    assert status_of(engine.model) is S.STEPPING
    assert screen_of(engine.model).states["review"] == "running"
    assert screen_of(engine.model).requests == ()


# --- looking back, and going on from there ----------------------------------------------------------------------------


def looked_back(model: StepperModel, steps: int = 4, back: int = 2) -> Engine:
    engine = Engine(model).start()
    for _ in range(steps):
        engine.step(planned=GOES_ON)
    model.go_back(back)
    return engine


# --- branches and edits -----------------------------------------------------------------------------------------------

EDIT = Edit("score", 1, 2, ("state", "score"))


def test_a_branch_that_is_stopped_while_it_is_made_is_stopped(model: StepperModel) -> None:
    engine = after(S.PAUSED, model)
    fork = model.branch()
    assert model.stop() == CancelRun()
    assert isinstance(fork, Fork)
    assert model.take_fork(fork, RunFacts(run_id="run-2", superstep=1, planned=GOES_ON)) is None
    model.rest(replace(engine.facts, status="CANCELLED"))
    assert status_of(model) is S.CANCELLED


@pytest.mark.parametrize(("call", "status"), [("step", S.STEPPING), ("run", S.RUNNING)])
def test_staged_edits_make_a_new_run_after_one_question(model: StepperModel, call: str, status: StepperStatus) -> None:
    engine = after(S.PAUSED, model)
    last = engine.facts.checkpoints[-1]
    model.stage_edit(last.checkpoint_id, EDIT)
    assert list(model.edits) == [EDIT]
    assert REQUESTS[call](model) is None
    fork = Fork(last, (EDIT,))
    assert model.confirm() == fork
    assert status_of(model) is status
    copy = info("cp-copy", 1)
    assert model.take_fork(fork, RunFacts(run_id="run-2", superstep=1, planned=GOES_ON), copy) == TakeStep()
    assert list(model.edits) == []
    assert model.log[-1].text == "edited score: 1 -> 2"


# --- showing again ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        StepperModel.pause,
        StepperModel.go_back,
        StepperModel.go_forward,
        StepperModel.show_now,
        go_to_the_first,
        StepperModel.close,
    ],
)
def test_any_request_ends_the_replay(model: StepperModel, request_: Request) -> None:
    looked_back(model)
    rest = model.show_again(2)
    request_(model)
    assert isinstance(rest, Wait)
    assert not model.playing
    assert not model.still_waits(rest.number)
    viewing = viewing_of(model)
    assert model.end_wait(rest.number) is None
    assert viewing_of(model) == viewing


def test_a_pause_for_the_eye_that_is_over_does_not_drive_what_was_requested_meanwhile(model: StepperModel) -> None:
    engine = after(S.PAUSED, model)
    rest = model.show_again(2)
    assert isinstance(rest, Wait)
    model.show_now()
    assert model.run(speed=2) == TakeStep()
    slow = engine.ended(planned=GOES_ON)
    assert model.end_wait(rest.number) is None
    assert model.end_wait(slow.number) == TakeStep()


# --- breakpoints ------------------------------------------------------------------------------------------------------


# --- failure ----------------------------------------------------------------------------------------------------------


def failed(model: StepperModel) -> Engine:
    engine = Engine(model).start()
    engine.step(planned=GOES_ON)
    model.step()
    details = WorkflowErrorDetails("ValueError", "too short", "Traceback (most recent call last): ...")
    event = WorkflowEvent.executor_failed("review", details)
    engine.saw(INVOKED("review"), event)
    engine.facts = replace(engine.facts, status="FAILED", error=ValueError("too short"), planned=())
    model.end_step(StepEnded(report(1, event), engine.facts))
    return engine


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_hostile_names_and_texts_reach_no_text_with_control_characters() -> None:
    evil = "a\u202eb\x00c\nd"
    engine = Engine(StepperModel(evil, Activity((evil,)))).start()
    engine.model.step()
    engine.saw(INVOKED(evil), WorkflowEvent("log", evil, executor_id=evil))
    engine.ended("IDLE_WITH_PENDING_REQUESTS", requests=[request(evil)])
    view = screen_of(engine.model)
    shown = [view.header.line, view.announcement, view.banner.text, *(line.text for line in view.log)]
    assert not any(character in text for text in shown for character in "\u202e\x00\n")


def test_the_log_keeps_its_last_two_hundred_lines(engine: Engine) -> None:
    engine.saw(*(WorkflowEvent("log", f"line {i}", executor_id="plan") for i in range(300)))
    log = screen_of(engine.model).log
    assert (len(log), log[0].text, log[-1].text) == (200, "plan: line 100", "plan: line 299")


# --- a law ------------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.sampled_from([*REQUESTS.values(), StepperModel.show_now, "step ends", "run ends", "run fails"]), max_size=25
    )
)
def test_in_any_order_of_requests_nothing_breaks_and_only_allowed_calls_change_anything(
    script: list[Any],
) -> None:
    model = StepperModel("flow", Activity(("plan", "review"), [("plan", "review")]))
    engine = Engine(model).start()
    for line in script:
        in_flight = model.status in (S.STEPPING, S.RUNNING)
        if isinstance(line, str):
            if in_flight:
                engine.facts = replace(engine.facts, error=None)
                engine.ended({"step ends": "IN_PROGRESS", "run ends": "IDLE", "run fails": "FAILED"}[line])
            continue
        before, allowed = model.status, model.allowed
        call = next((name for name, asked in REQUESTS.items() if asked is line), None)
        if call is not None and call not in allowed:
            with pytest.raises(StepperStateError):
                line(model)
            assert (model.status, model.allowed) == (before, allowed)
            continue
        todo = line(model)
        if isinstance(todo, CancelRun):
            model.rest(replace(engine.facts, status="CANCELLED"))
        elif isinstance(todo, Restore):
            engine.facts = replace(engine.facts, status="IN_PROGRESS", planned=GOES_ON)
            assert model.take_restore(engine.facts) == TakeStep()
        elif isinstance(todo, Fork) and model.status is S.STEPPING:
            engine.facts = RunFacts(run_id=f"{engine.facts.run_id}'", superstep=1, planned=GOES_ON)
            model.take_fork(todo, engine.facts)
        buttons = screen_of(model).buttons
        assert {button.name for button in buttons if button.enabled} == {b.name for b in buttons} & set(model.allowed)
        assert (model.status in (S.STEPPING, S.RUNNING) or model.playing is not None) == ("pause" in model.allowed)
