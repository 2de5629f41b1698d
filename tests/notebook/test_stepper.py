"""The stepper by code: real workflows, the real engine, no page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
    run_sync,
)
from agentbench._clock import CountingIds, TickingClock
from agentbench.exceptions import (
    NestedLoopError,
    RequestAlreadyAnswered,
    StepperClosed,
    StepperStateError,
)
from agentbench.notebook import Stepper, stepper, timeline
from agentbench.notebook.history.log import lines_of_report
from tests.parts.errors import raises

WAIT_S = 20.0  # only a bound for a test that hangs


@dataclass
class Draft:
    prompt: str


class Plan(Executor):
    @handler
    async def plan(self, topic: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("topic", topic)
        await ctx.send_message(f"plan for {topic}")


class Write(Executor):
    def __init__(self) -> None:
        super().__init__(id="write")
        self.calls = 0
        self.fail: Exception | None = None

    @handler
    async def write(self, plan: str, ctx: WorkflowContext[str]) -> None:
        self.calls += 1
        if self.fail is not None:
            error, self.fail = self.fail, None
            raise error
        ctx.set_state("draft", f"draft {self.calls}")
        await ctx.send_message(f"draft of {plan}")


class Review(Executor):
    @handler
    async def review(self, draft: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(Draft(f"Publish {draft}?"), bool)

    @response_handler
    async def answered(self, asked: Draft, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output("published" if ok else "rejected")


def review_flow(write: Write | None = None) -> Workflow:
    plan, write, review = Plan(id="plan"), write or Write(), Review(id="review")
    return WorkflowBuilder(start_executor=plan, name="review-flow").add_chain([plan, write, review]).build()


class Count(Executor):
    """Counts up to a number, one superstep each."""

    @handler
    async def count(self, left: int, ctx: WorkflowContext[int, str]) -> None:
        ctx.set_state("left", left)
        if left:
            await ctx.send_message(left - 1)
        else:
            await ctx.yield_output("zero")


def counting() -> Workflow:
    one, other = Count(id="one"), Count(id="other")
    return WorkflowBuilder(start_executor=one, name="counting").add_edge(one, other).add_edge(other, one).build()


class Hold(Executor):
    """Stays in its handler until it is released or cancelled."""

    def __init__(self) -> None:
        super().__init__(id="hold")
        self.entered = threading.Event()
        self.cancelled = False
        self._leave: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self.open = False

    @handler
    async def hold(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        gate = asyncio.Event()
        self._leave = (asyncio.get_running_loop(), gate)
        self.entered.set()
        try:
            if not self.open:
                await gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        await ctx.yield_output(text)

    def release(self) -> None:
        assert self._leave is not None
        loop, gate = self._leave
        loop.call_soon_threadsafe(gate.set)


def holding() -> tuple[Workflow, Hold]:
    plan, hold = Plan(id="plan"), Hold()
    return WorkflowBuilder(start_executor=plan, name="holding").add_edge(plan, hold).build(), hold


def reproducible(workflow: Workflow, message: Any, **more: Any) -> Stepper:
    return stepper(workflow, message, clock=TickingClock(), ids=CountingIds(), **more)


@pytest.fixture
def panel() -> Iterator[Stepper]:
    made = reproducible(review_flow(), "cats")
    yield made
    made.close()


# --- stepping and running ---------------------------------------------------------------------------------------------


def test_nothing_is_executed_before_the_first_step(panel: Stepper) -> None:
    assert (panel.status, panel.superstep, panel.reports, panel.checkpoint_id) == ("ready", None, [], "input")
    assert repr(panel) == "Stepper(review-flow, no superstep yet, ready)"


def test_a_step_takes_one_superstep_and_reports_it(panel: Stepper) -> None:
    report = panel.step()
    assert (report.superstep, report.invoked) == (0, ["plan"])
    assert (panel.status, panel.superstep, panel.state) == ("paused", 0, {"topic": "cats"})
    assert repr(panel) == "Stepper(review-flow, superstep 0, paused)"


def test_a_run_in_a_cell_never_waits_for_a_person(panel: Stepper) -> None:
    assert panel.run() == "waiting"
    assert [request.source_executor_id for request in panel.pending] == ["review"]
    with pytest.raises(StepperStateError) as refused:
        panel.step()
    assert (refused.value.status, refused.value.allowed) == ("waiting", ("stop", "back", "fork", "show_again"))


def test_an_answer_is_taken_up_by_the_next_superstep(panel: Stepper) -> None:
    panel.run()
    panel.respond(panel.pending[0].request_id, True)
    assert (panel.status, panel.pending) == ("paused", [])
    assert panel.run() == "done"
    assert panel.result is not None
    assert panel.result.outputs == ["published"]
    assert panel.result.final_state == "IDLE"


def test_an_answer_of_the_wrong_type_leaves_the_request_open(panel: Stepper) -> None:
    panel.run()
    with raises(ValueError, "stays open"):
        panel.respond(panel.pending[0].request_id, "maybe")
    assert panel.status == "waiting"


def test_a_second_answer_names_the_first(panel: Stepper) -> None:
    panel.run()
    request_id = panel.pending[0].request_id
    panel.respond(request_id, True)
    with pytest.raises(RequestAlreadyAnswered) as refused:
        panel.respond(request_id, False)
    assert refused.value.answered_at is not None


def test_a_withdrawn_request_leaves_the_run_to_go_on_without_an_answer(panel: Stepper) -> None:
    panel.run()
    request_id = panel.pending[0].request_id
    panel.withdraw(request_id)
    assert (panel.status, panel.pending) == ("paused", [])
    with pytest.raises(RequestAlreadyAnswered):
        panel.respond(request_id, True)
    assert panel.run() == "done"
    assert panel.result is not None
    assert (panel.result.outputs, panel.result.final_state) == ([], "IDLE")
    assert lines_of_report(panel.reports[-1])[0].text.endswith("; 1 request withdrawn")


def test_a_run_pauses_at_its_limit_and_can_be_resumed() -> None:
    panel = stepper(counting(), 9, max_supersteps=4)
    assert [panel.run(), panel.superstep] == ["paused", 3]
    assert [panel.run(), panel.superstep] == ["paused", 7]


# --- await ------------------------------------------------------------------------------------------------------------


async def test_an_awaited_run_waits_for_the_person_and_goes_on() -> None:
    panel = reproducible(review_flow(), "cats")
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    panel.on("status", lambda status: status == "waiting" and loop.call_soon_threadsafe(asked.set))
    running = asyncio.ensure_future(panel.arun())
    await asyncio.wait_for(asked.wait(), WAIT_S)
    assert not running.done()
    await asyncio.to_thread(panel.respond, panel.pending[0].request_id, False)
    assert await running == "done"
    assert panel.result is not None
    assert panel.result.outputs == ["rejected"]


async def test_an_interrupt_while_a_person_has_to_answer_leaves_the_question_open() -> None:
    panel = reproducible(review_flow(), "cats")
    await panel.astep(3)
    running = asyncio.ensure_future(panel.arun())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert panel.status == "waiting"
    await asyncio.to_thread(panel.respond, panel.pending[0].request_id, True)
    assert panel.status == "paused"  # and does not go on by itself
    assert await panel.arun() == "done"


async def test_an_interrupted_superstep_is_abandoned_and_can_be_taken_again() -> None:
    workflow, hold = holding()
    panel = reproducible(workflow, "cats")
    await panel.astep()
    running = asyncio.ensure_future(panel.arun())
    await asyncio.to_thread(hold.entered.wait, WAIT_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert hold.cancelled
    assert (panel.status, panel.superstep, panel.state) == ("ready", 0, {"topic": "cats"})
    hold.open = True
    assert await panel.arun() == "done"


async def test_a_pause_lets_the_superstep_in_flight_end() -> None:
    workflow, hold = holding()
    panel = reproducible(workflow, "cats")
    await panel.astep()
    running = asyncio.ensure_future(panel.astep(5))
    await asyncio.to_thread(hold.entered.wait, WAIT_S)
    panel.pause()
    hold.release()
    assert (await running).superstep == 1


async def test_the_kernels_own_loop_can_be_used_for_objects_that_are_bound_to_it() -> None:
    loops: list[Any] = []

    class Where(Executor):
        @handler
        async def where(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            loops.append(asyncio.get_running_loop())
            await ctx.yield_output(text)

    panel = stepper(WorkflowBuilder(start_executor=Where(id="where")).build(), "x", loop="kernel")
    with raises(NestedLoopError, "await stepper.astep"):
        panel.step()
    await panel.astep()
    assert loops == [asyncio.get_running_loop()]
    panel.close()


# --- back, and on from there ------------------------------------------------------------------------------------------


def test_looking_back_executes_nothing_and_shows_what_was() -> None:
    write = Write()
    panel = reproducible(review_flow(write), "cats")
    panel.run()
    before = [info.checkpoint_id for info in panel.checkpoints]
    panel.back(2)
    assert panel.state == {"topic": "cats"}
    assert panel.checkpoint_id == before[0]
    panel.forward()
    assert panel.state == {"topic": "cats", "draft": "draft 1"}
    panel.goto(before[0])
    panel.goto(before[-1])
    assert (panel.checkpoint_id, write.calls) == (before[-1], 1)
    assert [info.checkpoint_id for info in panel.checkpoints] == before


# --- failure ----------------------------------------------------------------------------------------------------------


def test_a_failure_stays_and_its_superstep_can_be_taken_again() -> None:
    write = Write()
    write.fail = ValueError("no paper")
    panel = reproducible(review_flow(write), "cats")
    assert panel.run() == "failed"
    assert isinstance(panel.error, ValueError)
    assert [details.message for details in panel.reports[-1].failures] == ["no paper"]
    assert panel.reports[-1].superstep == 1
    assert panel.step().invoked == ["write"]
    assert panel.run() == "waiting"
    assert panel.reports[-1].failures == []


def test_a_failed_superstep_is_named_and_the_executors_before_it_stay_marked() -> None:
    plan, write, review = Plan(id="plan"), Write(), Write()
    review.id, review.fail = "review", ValueError("no paper")
    panel = stepper(WorkflowBuilder(start_executor=plan).add_chain([plan, write, review]).build(), "cats")
    assert panel.run() == "failed"
    words = panel.text.splitlines()
    assert "superstep 2  ✗ failed" in words[0]
    assert repr(panel) == "Stepper(workflow, superstep 2, failed)"
    assert words[2:5] == ["plan (start) [ran] -> write", "write [ran] -> review", "review [failed]"]
    panel.back()
    assert panel.text.splitlines()[2:4] == ["plan (start) [done] -> write", "write [queued] -> review"]
    panel.goto(panel.checkpoints[-1])
    panel.step()
    assert panel.text.splitlines()[3:5] == ["write [ran] -> review", "review [done]"]


def test_supersteps_have_the_engines_numbers_everywhere() -> None:
    class Silent(Executor):
        @handler
        async def ask(self, topic: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info(Draft(topic), bool)

        @response_handler
        async def answered(self, asked: Draft, ok: bool, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(asked.prompt)

    silent, write = Silent(id="silent"), Write()
    built = WorkflowBuilder(start_executor=silent).add_edge(silent, write, condition=lambda _: False).build()
    panel = stepper(built, "cats")
    assert (panel.run(), panel.superstep) == ("waiting", 1)
    panel.respond(panel.pending[0], True)
    assert (panel.run(), panel.superstep) == ("done", 3)  # the message of `silent` is dropped in the last one
    assert [line.text for line in panel._screen.state.log if line.kind == "step"] == [
        "superstep 0: silent got 1 message; 1 request opened; superstep 1: nothing was delivered",
        "superstep 2: silent got 1 message",
        "superstep 3: nothing was delivered",
    ]
    assert "superstep 3" in panel.text.splitlines()[0]
    title, *lines = timeline(panel.handle, by="step").text.splitlines()
    assert "supersteps 0 to 3" in title
    assert [line.split(":")[0] for line in lines] == [f"superstep {number}" for number in range(4)]
    assert list(panel.frames().checkpoints()["superstep"]) == [-1, 1, 1, 2, 3]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
def test_a_failure_of_the_first_executor_is_retried_from_the_input() -> None:
    write = Write()
    write.fail = ValueError("no paper")
    panel = reproducible(WorkflowBuilder(start_executor=write).build(), "cats")
    assert panel.run() == "failed"
    assert "step" in panel.allowed
    assert panel.step().invoked == ["write"]
    assert panel.error is None
    assert panel.run() == "done"


# --- resume -----------------------------------------------------------------------------------------------------------


def test_a_stepper_goes_on_from_a_checkpoint_with_the_line_that_led_to_it() -> None:
    storage = InMemoryCheckpointStorage()
    first = reproducible(review_flow(), "cats", storage=storage)
    first.step(2)
    saved = first.checkpoints
    first.close()
    second = stepper(review_flow(), checkpoint=saved[-1], storage=storage)
    assert (second.status, second.superstep, second.checkpoints) == ("ready", 1, saved)
    assert second.step().invoked == ["review"]
    second.back(2)
    assert second.state == {"topic": "cats"}


# --- one at a time ----------------------------------------------------------------------------------------------------


def test_a_cell_that_is_run_again_closes_its_old_stepper() -> None:
    old = stepper(review_flow(), "cats", name="mine")
    new = stepper(review_flow(), "cats", name="mine")
    assert (old.status, new.status, new.name) == ("closed", "ready", "mine")


def test_a_workflow_that_is_stepped_anew_is_taken_from_its_old_stepper() -> None:
    workflow = review_flow()
    old = stepper(workflow, "cats")
    old.step()
    new = stepper(workflow, "dogs")
    assert (old.status, new.step().invoked) == ("closed", ["plan"])


def test_a_closed_stepper_lets_go_of_its_workflow_and_takes_no_more_calls(panel: Stepper) -> None:
    panel.step()
    panel.close()
    panel.close()
    for call in (panel.step, panel.run, panel.pause, panel.stop, panel.back):
        with pytest.raises(StepperClosed):
            call()
    with pytest.raises(StepperClosed):
        panel.respond("x", True)
    assert run_sync(panel.workflow.run("dogs")).final_state == "IDLE_WITH_PENDING_REQUESTS"


# --- listening --------------------------------------------------------------------------------------------------------


def test_listeners_hear_of_status_steps_events_and_answers(panel: Stepper) -> None:
    heard: list[Any] = []
    panel.on("status", lambda status: heard.append(str(status)))
    panel.on("step", lambda report: heard.append(report.superstep))
    panel.on("executor_invoked", lambda event: heard.append(event.executor_id))
    stop = panel.on("event", lambda event: heard.append("event"))
    stop()
    stop()
    panel.step()
    assert heard == ["stepping", "plan", 0, "paused"]


def test_a_listener_that_raises_disturbs_nothing_and_is_logged(panel: Stepper) -> None:
    def broken(report: Any) -> None:
        raise RuntimeError("oh no")

    panel.on("step", broken)
    panel.step()
    assert panel.status == "paused"
    assert any("on('step') raised RuntimeError: oh no" in line.text for line in panel._screen.state.log)


def test_a_listener_that_waits_for_the_stepper_gets_the_await_form(panel: Stepper) -> None:
    refused: list[Exception] = []

    def wait_here(report: Any) -> None:
        try:
            panel.step()
        except NestedLoopError as error:
            refused.append(error)

    panel.on("step", wait_here)
    panel.step()
    assert "await stepper.astep" in str(refused[0])


# --- without a page ---------------------------------------------------------------------------------------------------


def test_without_a_notebook_the_panel_is_printed(panel: Stepper, capsys: pytest.CaptureFixture[str]) -> None:
    panel.run()
    panel.show()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("review-flow  run-1  superstep 2  ‖ waiting for an answer")
    assert lines[1] == "review-flow: 3 nodes, 2 edges"
    assert "[waiting]" in "\n".join(lines)


def test_unknown_layouts_loops_and_arguments_are_refused() -> None:
    with raises(ValueError, "layout='tall'"):
        stepper(counting(), 1, layout="tall")  # type: ignore[arg-type]
    with raises(ValueError, "loop='other'"):
        stepper(counting(), 1, loop="other")  # type: ignore[arg-type]
    with raises(TypeError, "workflow"):
        stepper("no workflow", 1)


def test_a_workflow_makes_its_own_stepper() -> None:
    panel = counting().stepper(2, name="own")
    assert isinstance(panel, Stepper)
    assert (panel.name, panel.run()) == ("own", "done")


def test_a_run_can_be_had_as_tables(panel: Stepper) -> None:
    panel.run()
    assert list(panel.frames().checkpoints()["superstep"]) == [-1, 0, 1, 2]  # -1 is the input


def test_the_end_of_a_run_says_what_it_warned_of():
    class Asks(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info("Really?", bool)

        @response_handler
        async def answered(self, request: str, answer: bool, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output("taken")

    inner = WorkflowBuilder(start_executor=Asks(id="asks")).build()
    outer = WorkflowBuilder(start_executor=WorkflowExecutor(inner, id="inner", propagate_request=False)).build()
    panel = stepper(outer, "hi")
    panel.run()
    assert "Finished, 1 question unanswered" in panel.text
    assert "(the last of 2): 1 question unanswered, from inside 'inner'" in panel.text
