"""Time travel by code: breakpoints, branches, forks and edits of real runs, and nothing old is ever changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentbench import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
)
from agentbench._clock import CountingIds, TickingClock
from agentbench.exceptions import (
    GraphMismatchError,
    InvalidEdit,
    NestedLoopError,
)
from agentbench.notebook import Stepper, stepper
from tests.parts.errors import raises

WAIT_S = 20.0  # only a bound for a test that hangs


@dataclass
class Draft:
    title: str
    score: float = 0.0
    tags: list[str] = field(default_factory=list)


@dataclass
class Question:
    prompt: str


class Plan(Executor):
    @handler
    async def plan(self, topic: str, ctx: WorkflowContext[Draft]) -> None:
        ctx.set_state("topic", topic)
        ctx.set_state("draft", Draft(topic))
        await ctx.send_message(Draft(topic))


class Write(Executor):
    """Fails for one topic."""

    @handler
    async def write(self, draft: Draft, ctx: WorkflowContext[str]) -> None:
        if ctx.get_state("topic") == "bad":
            raise ValueError("no paper")
        ctx.set_state("score", len(draft.title) / 10)
        await ctx.send_message(f"{draft.title} about {ctx.get_state('topic')}")


class Review(Executor):
    @handler
    async def review(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(Question(f"Publish {text}?"), bool)

    @response_handler
    async def answered(self, asked: Question, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{asked.prompt} {ok}")


def flow() -> Workflow:
    plan, write, review = Plan(id="plan"), Write(id="write"), Review(id="review")
    return WorkflowBuilder(start_executor=plan, name="flow").add_chain([plan, write, review]).build()


class Count(Executor):
    @handler
    async def count(self, left: int, ctx: WorkflowContext[int, str]) -> None:
        ctx.set_state("left", left)
        await (ctx.send_message(left - 1) if left else ctx.yield_output("zero"))


def counting() -> Workflow:
    one, other = Count(id="one"), Count(id="other")
    return WorkflowBuilder(start_executor=one, name="counting").add_edge(one, other).add_edge(other, one).build()


def made(workflow: Workflow, message: Any = None, **more: Any) -> Stepper:
    return stepper(workflow, message, clock=TickingClock(), ids=CountingIds(), **more)


def chain(storage: Any, name: str = "flow") -> dict[str, str]:
    """Everything that is stored, to the last detail."""
    ids = run_sync(storage.list_checkpoint_ids(workflow_name=name))
    return {each: repr(run_sync(storage.load(each)).to_dict()) for each in ids}


@pytest.fixture
def panel(storage: InMemoryCheckpointStorage) -> Iterator[Stepper]:
    opened = made(flow(), "cats", storage=storage)
    yield opened
    opened.close()


def note_of(panel: Stepper) -> str | None:
    return panel._session.model.note


# --- breakpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "superstep"),
    [
        ("write", 0),
        ("review", 1),
        ("after:write", 1),
        ("after:review", 2),
        (2, 1),
        (Draft, 0),
        (lambda state: state.get("score", 0) > 0.3, 1),
        ("request", 2),
    ],
)
def test_a_run_pauses_at_each_place_that_can_be_named_and_then_goes_on(
    panel: Stepper, where: Any, superstep: int
) -> None:
    made_here = panel.break_at(where, once=True)
    panel.run()
    assert (panel.superstep, panel.hit) == (superstep, made_here)
    assert panel.breakpoints == []
    if panel.status == "paused":
        assert f"paused (breakpoint: {made_here.text})" in panel.text
        panel.run()
    assert (panel.status, panel.hit if superstep < 2 else None) == ("waiting", None)


@pytest.mark.parametrize("where", ["nobody", "after:nobody", -1, True, None, 1.5])
def test_other_values_than_places_are_refused(panel: Stepper, where: Any) -> None:
    with raises((TypeError, ValueError), repr(where).removeprefix("'after:").strip("'")):
        panel.break_at(where)
    assert panel.breakpoints == []


def test_going_on_from_a_breakpoint_does_not_stop_at_the_same_one_again() -> None:
    panel = made(counting(), 6, breakpoints=["other"])
    stops = [(panel.run(), panel.superstep) for _ in range(2)]
    fork = panel.fork()
    stops += [(each.run(), each.superstep) for each in (fork, panel, panel)]
    assert stops == [("paused", 0), ("paused", 2), ("paused", 4), ("paused", 4), ("done", 6)]
    fork.close()


def test_a_single_step_is_taken_regardless_of_breakpoints_and_tells_what_it_reached(panel: Stepper) -> None:
    panel.break_at("plan")
    write = panel.break_at("write")
    assert panel.step().invoked == ["plan"]
    assert panel.hit == write
    assert panel.step().invoked == ["write"]
    assert panel.hit is None


def test_a_failure_is_a_breakpoint_too(storage: InMemoryCheckpointStorage) -> None:
    panel = made(flow(), "bad", storage=storage, breakpoints=["failure"])
    assert panel.run() == "failed"
    assert panel.hit == panel.breakpoints[0]


def test_a_further_condition_decides(panel: Stepper) -> None:
    panel.break_at("write", when=lambda state: state["topic"] == "dogs")
    panel.break_at("review", when=lambda state: state["score"] < 0.5)
    panel.run()
    assert panel.hit == panel.breakpoints[1]


def test_a_condition_that_raises_pauses_the_run_and_shows_the_error(panel: Stepper) -> None:
    def is_poor(state: Any) -> bool:
        return bool(state["scor"] < 0.5)

    panel.break_at(is_poor)
    assert (panel.run(), panel.superstep) == ("paused", 0)
    assert "is_poor holds raised KeyError: 'scor'" in (note_of(panel) or "")
    assert panel.run() == "paused"
    assert panel.superstep == 1


def test_the_same_breakpoint_is_set_once_and_found_by_place_id_or_itself(panel: Stepper) -> None:
    first = panel.break_at("review")
    assert panel.break_at("before:review") is first
    other = panel.break_at("review", once=True)
    after = panel.break_at("after:review")
    assert [each.id for each in panel.breakpoints] == ["bp-1", "bp-2", "bp-3"]
    panel.clear("review")
    assert panel.breakpoints == [after]
    panel.clear(after.id)
    again = panel.break_at(4)
    panel.clear(again)
    panel.clear(other)
    assert panel.breakpoints == []
    with raises(ValueError, "'reviw'"):
        panel.clear("reviw")


def test_a_breakpoint_can_be_set_while_a_run_is_in_flight() -> None:
    panel = made(counting(), 50)
    panel.on("step", lambda report: report.superstep == 3 and panel.break_at("other"))
    assert (panel.run(), panel.superstep) == ("paused", 4)


# --- until ------------------------------------------------------------------------------------------------------------


async def test_an_awaited_run_to_the_next_request_does_not_wait_for_the_answer() -> None:
    panel = made(flow(), "cats")
    assert await panel.arun(until="request") == "waiting"
    await asyncio.to_thread(panel.respond, panel.pending[0].request_id, True)
    assert panel.status == "paused"


def test_a_run_to_the_next_breakpoint_needs_one(panel: Stepper) -> None:
    with raises(ValueError, "breakpoint"):
        panel.run(until="breakpoint")
    panel.break_at("review")
    assert (panel.run(until="breakpoint"), panel.superstep) == ("paused", 1)


def test_an_end_that_is_over_is_refused_and_nothing_is_executed() -> None:
    panel = made(counting(), 9)
    panel.run(until=3)
    with raises(ValueError, "superstep 3"):
        panel.run(until=3)
    panel.back(2)
    assert (panel.run(until=3), panel.superstep) == ("paused", 3)


# --- show again -------------------------------------------------------------------------------------------------------


def test_showing_again_goes_through_what_is_stored_and_executes_nothing() -> None:
    panel = made(counting(), 4)
    panel.run()
    panel.goto(panel.checkpoints[1])
    shown: list[int | None] = []
    panel._session._on_change = lambda: shown.append(panel._session.model.checkpoints.displayed)
    reports = panel.reports
    panel.show_again(speed=1e6)
    assert list(dict.fromkeys(shown)) == [2, 3, 4, 5]  # 0 is the input
    assert (panel.status, panel.reports, panel.allowed[0]) == ("done", reports, "back")


# --- branch -----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_is_not_on_the_line_is_refused(panel: Stepper) -> None:
    panel.step()
    for call in (panel.branch, panel.fork):
        with raises(LookupError, "'cp-9999'"):
            call("cp-9999")


# --- fork -------------------------------------------------------------------------------------------------------------


def test_a_fork_is_a_stepper_of_its_own_and_both_go_on(panel: Stepper, storage: InMemoryCheckpointStorage) -> None:
    panel.run()
    before = chain(storage)
    other = panel.fork(panel.checkpoints[0].checkpoint_id)
    assert (panel.status, panel.run_id, other.status, other.run_id) == ("waiting", "run-1", "ready", "run-2")
    assert other.name == panel.name
    assert other.run() == "waiting"
    for each, ok in ((other, False), (panel, True)):
        each.respond(each.pending[0].request_id, ok)
        assert each.run() == "done"
    assert [each.result.outputs for each in (panel, other) if each.result] == [
        ["Publish cats about cats? True"],
        ["Publish cats about cats? False"],
    ]
    assert {key: chain(storage)[key] for key in before} == before
    other.close()


def test_a_fork_with_edits_begins_with_a_checkpoint_of_its_own(
    panel: Stepper, storage: InMemoryCheckpointStorage
) -> None:
    panel.step(2)
    before = chain(storage)
    other = panel.fork(edits={"topic": "dogs", "messages[0]": "Birds"})
    assert (panel.state["topic"], other.state["topic"]) == ("cats", "dogs")
    [new] = set(chain(storage)) - set(before)
    assert (other.checkpoints[-1].checkpoint_id, other.checkpoints[-1].source) == (new, "update")
    other.run()
    assert other.pending[0].data == Question("Publish Birds?")
    other.close()


def test_a_fork_takes_the_staged_edits_along_and_leaves_none(panel: Stepper) -> None:
    panel.step()
    panel.edit("topic", "dogs")
    other = panel.fork()
    assert (other.state["topic"], panel.edits(), other.edits()) == ("dogs", [], [])
    other.close()


def test_a_fork_can_get_further_input_and_a_workflow(panel: Stepper) -> None:
    panel.step()
    other_flow = flow()
    other = panel.fork(input="dogs", workflow=other_flow)
    assert other.workflow is other_flow
    assert sorted(other.step().invoked) == ["plan", "write"]
    with pytest.raises(GraphMismatchError):
        panel.fork(workflow=counting())
    assert panel.run() == "waiting"
    other.close()


class Holds(Executor):
    def __init__(self) -> None:
        super().__init__(id="holds")
        self.lock = threading.Lock()

    @handler
    async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("text", text)
        await ctx.yield_output(text)


def test_executors_that_cannot_be_copied_are_shared_by_the_fork() -> None:
    panel = made(WorkflowBuilder(start_executor=Holds(), name="holds").build(), "x")
    panel.run()
    other = panel.fork()
    assert other.workflow.executors["holds"] is panel.workflow.executors["holds"]
    other.close()


async def test_everything_works_on_the_loop_of_the_kernel_too() -> None:
    panel = made(flow(), "cats", loop="kernel")
    await panel.astep(2)
    await asyncio.to_thread(panel.edit, "topic", "dogs")
    other = await asyncio.to_thread(panel.fork)
    assert other.state["topic"] == "dogs"
    other.back()
    with raises(NestedLoopError, "await asyncio.to_thread"):
        _ = other.state
    assert (await asyncio.to_thread(lambda: other.state))["topic"] == "cats"
    other.forward()
    assert await other.arun(until="request") == "waiting"
    other.close()
    panel.close()


# --- edits ------------------------------------------------------------------------------------------------------------


def test_a_new_run_tells_in_its_events_what_was_edited(panel: Stepper) -> None:
    panel.step(2)
    heard: list[Any] = []
    panel.on("state_edited", heard.append)
    panel.edit("score", 0.9)
    panel.step()
    [told] = [event for event in panel.handle.events if event.type == "state_edited"]
    assert told.data == {"state.score": {"before": 0.4, "after": 0.9}}
    assert heard == [told]


def test_a_fork_on_the_steppers_own_instance_takes_it_over(panel: Stepper) -> None:
    panel.step()
    other = panel.fork(workflow=panel.workflow)
    assert (panel.status, other.run()) == ("closed", "waiting")
    other.close()


@pytest.mark.parametrize("go_on", ["step", "run", "branch"])
def test_a_staged_edit_is_applied_in_a_new_run_and_the_old_chain_is_as_it_was(
    panel: Stepper, storage: InMemoryCheckpointStorage, go_on: str
) -> None:
    panel.step(2)
    before, line = chain(storage), panel.checkpoints
    heard: list[Any] = []
    panel.on("edit", heard.append)
    edits = [panel.edit("draft.title", "Dogs"), panel.edit("score", 0.9)]
    getattr(panel, go_on)()
    after = chain(storage)
    assert {key: after[key] for key in before} == before
    copy = panel.checkpoints[2]
    assert panel.checkpoints[:2] == line
    assert (copy.source, copy.forked_from, copy.iteration) == ("update", line[-1].checkpoint_id, 1)
    stored = run_sync(storage.load(copy.checkpoint_id))
    assert (stored.state["draft"], stored.state["score"]) == (Draft("Dogs"), 0.9)
    assert (panel.run_id, panel.edits(), heard) == ("run-2", [], edits)
    log = [line.text for line in panel._session.model.log if line.kind == "edit"]
    assert log == ["edited draft.title: 'cats' -> 'Dogs'", "edited score: 0.4 -> 0.9"]


def test_a_message_that_waits_can_be_edited(panel: Stepper) -> None:
    panel.step()
    panel.edit("messages[0].title", "Birds")
    panel.run()
    assert panel.pending[0].data == Question("Publish Birds about cats?")


def test_edits_belong_to_their_checkpoint(panel: Stepper) -> None:
    panel.run()
    panel.back()
    edit = panel.edit("score", 0.9)
    panel.back()
    assert panel.edits() == []
    panel.forward()
    assert panel.edits() == [edit]
    panel.goto(panel.checkpoints[0].checkpoint_id)
    panel.step()
    assert panel.state["score"] == 0.4  # what was not shown was not applied


def test_the_last_edit_of_a_path_counts_and_edits_can_be_discarded(panel: Stepper) -> None:
    panel.step(2)
    panel.edit("score", 0.5)
    panel.edit("topic", "dogs")
    panel.edit("score", 0.6)
    assert [(edit.path, edit.before, edit.after) for edit in panel.edits()] == [
        ("topic", "cats", "dogs"),
        ("score", 0.4, 0.6),
    ]
    panel.discard_edits("topic")
    assert [edit.path for edit in panel.edits()] == ["score"]
    panel.discard_edits()
    assert panel.edits() == []
    assert panel.step().superstep == 2
    assert panel.run_id == "run-1"


def test_an_edit_that_does_not_fit_stages_nothing(panel: Stepper) -> None:
    panel.step(2)
    with pytest.raises(InvalidEdit) as refused:
        panel.edit("score", "high")
    assert refused.value.path == "score"
    assert "valid number" in refused.value.problem
    assert panel.edits() == []


def test_a_failed_step_can_be_retried_with_an_edit(storage: InMemoryCheckpointStorage) -> None:
    panel = made(flow(), "bad", storage=storage)
    assert panel.run() == "failed"
    before = chain(storage)
    panel.edit("topic", "good")
    assert panel.step().invoked == ["write"]
    assert (panel.status, panel.error, panel.run_id) == ("paused", None, "run-2")
    assert {key: chain(storage)[key] for key in before} == before


# --- another graph ----------------------------------------------------------------------------------------------------


def longer() -> Workflow:
    plan, write, review, holds = Plan(id="plan"), Write(id="write"), Review(id="review"), Holds()
    builder = WorkflowBuilder(start_executor=plan, name="flow").add_chain([plan, write, review])
    return builder.add_edge(write, holds, condition=lambda message: False).build()


def test_a_checkpoint_of_another_graph_is_taken_only_by_force_and_stays_as_it_was(
    panel: Stepper, storage: InMemoryCheckpointStorage
) -> None:
    panel.step(2)
    saved, before = panel.checkpoints[-1], chain(storage)
    with pytest.raises(GraphMismatchError) as refused:
        made(longer(), checkpoint=saved, storage=storage)
    assert any("holds" in difference["path"] for difference in refused.value.differences)
    assert chain(storage) == before
    other = stepper(longer(), checkpoint=saved, storage=storage, force=True)
    assert (other.status, other.superstep, other.state["topic"]) == ("ready", 1, "cats")
    assert other.checkpoints[-1].forked_from == saved.checkpoint_id
    assert {key: chain(storage)[key] for key in before} == before
    assert other.run() == "waiting"
    other.close()


# --- closed, and nothing left over ------------------------------------------------------------------------------------


class Gate(Executor):
    """Does not leave its handler before a test has heard that it was entered."""

    def __init__(self) -> None:
        super().__init__(id="gate")
        self.heard = asyncio.Event()

    @handler
    async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await asyncio.wait_for(self.heard.wait(), WAIT_S)
        await ctx.yield_output(text)


def test_an_event_is_emitted_while_its_superstep_is_in_flight_and_without_any_clock() -> None:
    gate = Gate()
    panel = made(WorkflowBuilder(start_executor=gate, name="gate").build(), "x")
    panel.on("executor_invoked", lambda event: gate.heard.set())
    assert panel.run() == "done"


def test_a_stepper_keeps_its_checkpoints_where_its_workflow_does(tmp_path: Any) -> None:
    storage = FileCheckpointStorage(tmp_path)
    plan, write = Plan(id="plan"), Write(id="write")
    builder = WorkflowBuilder(start_executor=plan, name="kept", checkpoint_storage=storage).add_edge(plan, write)
    panel = stepper(builder.build(), "tea")
    panel.run()
    kept = run_sync(storage.list_checkpoint_ids(workflow_name="kept"))
    assert kept == [info.checkpoint_id for info in panel.checkpoints]
    panel.close()
