"""The run handle: driving, stepping, pausing, stopping, going back, forking."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from agentbench import (
    CheckpointManager,
    Executor,
    InMemoryCheckpointStorage,
    InProcessExecution,
    PauseReason,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowMessage,
    WorkflowRunnerException,
    WorkflowRunState,
    handler,
    response_handler,
)
from agentbench.exceptions import GraphMismatchError, WorkflowBusyError
from agentbench.workflows.executors.message import WORKFLOW_SOURCE
from tests.parts.errors import raises
from tests.parts.executors import Again, Fail, Join, Pass, Show, Wait, brief, chain


def three(**settings: Any) -> Workflow:
    return chain(Pass("e0"), Pass("e1"), Show("e2"), name="three", **settings)


def diamond(**settings: Any) -> Workflow:
    source, left, right, join = Pass("s"), Pass("l"), Pass("r"), Join("j")
    builder = WorkflowBuilder(start_executor=source, name="diamond", **settings)
    return builder.add_fan_out_edges(source, [left, right]).add_fan_in_edges([left, right], join).build()


def cycle(**settings: Any) -> Workflow:
    ping, pong = Again("ping"), Again("pong")
    builder = WorkflowBuilder(start_executor=ping, name="cycle", **settings)
    return builder.add_edge(ping, pong).add_edge(pong, ping).build()


GRAPHS = [
    (lambda **kw: chain(Show("only"), name="one", **kw), "x"),
    (lambda **kw: chain(Pass("a"), Show("b"), name="two", **kw), "x"),
    (three, "x"),
    (diamond, "x"),
    (cycle, 4),
]


class Ask(Executor):
    """Asks for a word, then yields it."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, str, request_id=f"ask {text}")

    @response_handler
    async def on_word(self, question: str, word: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question}: {word}")


async def test_nothing_runs_until_the_handle_is_driven():
    workflow = three()
    run = workflow.start("x")
    await asyncio.sleep(0)
    assert run.status is WorkflowRunState.STARTED
    assert run.events == []
    assert (await run.result()).outputs == ["x>e0>e1!"]


@pytest.mark.parametrize(("make", "given"), GRAPHS)
async def test_steps_in_a_row_give_the_events_of_an_unstepped_run(make: Any, given: Any):
    stepped = make().start(given)
    events = []
    while not stepped.is_over:
        events += (await stepped.step()).events
    whole = [event async for event in make().start(given).watch_stream()]
    assert brief(events) == brief(whole)
    assert [e.data for e in events if e.type == "output"] == [e.data for e in whole if e.type == "output"]


@pytest.mark.parametrize(("make", "given"), GRAPHS)
async def test_a_plan_lists_what_the_step_then_invokes(make: Any, given: Any):
    run = make().start(given)
    while not run.is_over:
        plan = await run.plan()
        assert [p.target for p in await run.plan()] == [p.target for p in plan]  # computed once
        report = await run.step()
        invoked = [executor for executor, _ in report.delivered]
        assert invoked == [p.target for p in plan]


async def test_the_first_step_is_superstep_zero_and_the_last_one_holds_the_end():
    run = three().start("x")
    reports = [await run.step() for _ in range(3)]
    assert [r.superstep for r in reports] == [0, 1, 2]
    assert [r.invoked for r in reports] == [["e0"], ["e1"], ["e2"]]
    assert [len(r.emitted) for r in reports] == [1, 1, 0]
    assert [r.status for r in reports] == [
        WorkflowRunState.IN_PROGRESS,
        WorkflowRunState.IN_PROGRESS,
        WorkflowRunState.IDLE,
    ]
    assert reports[2].outputs == ["x>e0>e1!"]
    assert all(r.duration_s is not None for r in reports[1:])
    with pytest.raises(WorkflowRunnerException):
        await run.step()


async def test_a_condition_is_called_once_for_plan_and_step_and_its_error_belongs_to_the_step():
    asked: list[str] = []

    def condition(message: str) -> bool:
        asked.append(message)
        raise LookupError(message)

    source, target = Pass("s"), Show("t")
    run = WorkflowBuilder(start_executor=source).add_edge(source, target, condition).build().start("x")
    await run.step()
    assert await run.plan() == []
    with pytest.raises(LookupError):
        await run.step()
    assert asked == ["x>s"]
    assert run.status is WorkflowRunState.FAILED
    assert isinstance(run.error, LookupError)


# ---- pause, stop, cancel -------------------------------------------------------------------------


async def test_a_breakpoint_pauses_and_the_next_drive_goes_on():
    run = cycle().start(6)
    remove = run.pause_when(lambda report, plan: "third" if report.superstep == 3 else None)
    events = [event async for event in run.watch_stream()]
    assert run.paused
    assert str(run.pause_reason) == "third"
    assert run.status is WorkflowRunState.IN_PROGRESS
    assert run.superstep == 3
    assert brief(events)[-1] == "superstep_completed 3"
    remove()
    assert (await run.result()).outputs == [0]
    assert not run.paused


async def test_a_breakpoint_sees_the_report_and_the_plan():
    run = three().start("x")
    run.pause_when(lambda report, plan: PauseReason("e2 is next") if [p.target for p in plan] == ["e2"] else None)
    async for _ in run.watch_stream():
        pass
    assert run.superstep == 1
    assert run.pause_reason == PauseReason("e2 is next")


async def test_a_pause_takes_effect_at_the_next_boundary():
    wait = Wait("w")
    run = chain(Pass("s"), wait, Show("e")).start("x")
    await run.step()
    driving = asyncio.ensure_future(run.result())
    await wait.entered.wait()
    threading.Thread(target=run.pause).start()
    wait.gate.set()
    await driving
    assert run.paused
    assert run.superstep == 1
    assert (await run.result()).outputs == ["late", "late!"]


async def test_a_stop_after_the_superstep_ends_the_run_at_the_boundary_and_a_checkpoint_continues_it():
    storage = InMemoryCheckpointStorage()
    wait = Wait("w")
    workflow = chain(Pass("s"), wait, Show("e"), name="stops", checkpoint_storage=storage)
    run = workflow.start("x")
    await run.step()
    driving = asyncio.ensure_future(run.result())
    await wait.entered.wait()
    run.stop_after_superstep()
    wait.gate.set()
    await driving
    assert run.status is WorkflowRunState.CANCELLED
    assert run.superstep == 1
    assert run.last_checkpoint is not None
    again = workflow.start(resume_from=run.last_checkpoint)
    assert (await again.result()).outputs == ["late!"]


async def test_a_stop_asks_handlers_and_breaks_off_the_superstep():
    wait = Wait("w")
    run = chain(Pass("s"), wait).start("x")
    await run.step()
    stepping = asyncio.ensure_future(run.step())
    await wait.entered.wait()
    run.stop()
    report = await stepping
    assert report.status is WorkflowRunState.CANCELLED
    assert wait.ended == "cancelled"


async def test_a_handler_can_read_that_a_stop_was_requested():
    class Patient(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, bool]) -> None:
            run.stop_after_superstep()
            await ctx.yield_output(ctx.stop_requested)

    run = chain(Patient("p")).start("x")
    assert (await run.result()).outputs == [True]
    assert run.status is WorkflowRunState.CANCELLED


async def test_a_handle_that_keeps_the_state_holds_the_instance_while_it_can_go_on():
    workflow = three()
    async with workflow.start("x", keep_state=True) as run:
        await run.step()
        with raises(WorkflowBusyError, "cancel"):
            await workflow.run("y")
        with pytest.raises(WorkflowBusyError):
            workflow.start("y", keep_state=True)
    assert (await workflow.run("y")).outputs == ["y>e0>e1!"]


async def test_a_handle_that_kept_the_state_can_only_be_read_after_another_run():
    workflow = three()
    run = workflow.start("x", keep_state=True)
    await run.result()
    assert (await workflow.run("y")).outputs == ["y>e0>e1!"]
    assert run.outputs == ["x>e0>e1!"]
    with raises(WorkflowBusyError, "read-only"):
        await run.step()
    assert await run.try_send_message("z") is False


async def test_a_dropped_handle_frees_the_instance():
    workflow = three()
    run = workflow.start("x", keep_state=True)
    await run.step()
    del run
    gc.collect()
    assert (await workflow.run("y")).outputs == ["y>e0>e1!"]


# ---- input and answers ---------------------------------------------------------------------------


async def test_further_input_goes_to_the_start_executor_and_the_numbers_go_on():
    run = three().start("x")
    await run.result()
    assert await run.try_send_message("y")
    events = [event async for event in run.watch_stream()]
    assert run.outputs == ["x>e0>e1!", "y>e0>e1!"]
    assert [e.iteration for e in events if e.type == "superstep_started"] == [3, 4, 5]


async def test_input_that_comes_before_the_first_superstep_or_during_the_last_is_delivered_before_the_run_is_idle():
    class Echo(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[Any, str]) -> None:
            await ctx.yield_output(text)
            if text == "y":
                assert await run.try_send_message("z")

    run = chain(Echo("only")).start("x")
    assert await run.try_send_message("y")
    events = [event async for event in run.watch_stream()]
    assert run.outputs == ["x", "y", "z"]
    assert [event.state for event in events if event.type == "status"][-1] is WorkflowRunState.IDLE
    assert sum(event.type == "started" for event in events) == 1


async def test_input_that_a_cancelled_run_has_not_taken_is_dropped():
    run = three().start("x")
    await run.step()
    assert await run.try_send_message("y")
    await run.cancel()
    assert run.pending_messages == []


async def test_no_input_is_taken_after_a_failure():
    run = chain(Fail("f")).start("x")
    with pytest.raises(KeyError):
        await run.result()
    assert await run.try_send_message("y") is False
    with pytest.raises(KeyError):
        await run.result()


async def test_an_answer_is_checked_at_once_and_delivered_in_the_next_superstep():
    run = chain(Ask("a")).start("q")
    report = await run.step()
    assert run.status is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    assert [r.request_id for r in report.requests] == ["ask q"]
    with pytest.raises(WorkflowRunnerException):
        await run.step()
    with raises(ValueError, "str"):
        await run.send_response("ask q", 5)
    with raises(ValueError, "such"):
        await run.send_response("no such", "w")
    assert [r.request_id for r in run.pending_requests] == ["ask q"]
    await run.send_response("ask q", "word")
    assert run.pending_requests == []
    with pytest.raises(RuntimeError):
        await run.send_response("ask q", "twice")
    report = await run.step()
    assert report.outputs == ["q: word"]
    assert report.status is WorkflowRunState.IDLE


# ---- back and sideways ---------------------------------------------------------------------------


async def test_a_run_saves_and_reports_one_checkpoint_a_superstep():
    run = await InProcessExecution.run_streaming(three(), "x", CheckpointManager.create_in_memory())
    events = [event async for event in run.watch_stream()]
    infos = [e.completion_info for e in events if e.type == "superstep_completed"]
    assert [c.iteration for c in run.checkpoints] == [0, 1, 2]
    assert [i.checkpoint for i in infos if i is not None] == run.checkpoints[1:]
    assert [i.activated_executors for i in infos if i is not None] == [["e1"], ["e2"]]
    assert [i.has_pending_messages for i in infos if i is not None] == [True, False]
    assert [c.previous_checkpoint_id for c in run.checkpoints] == [
        None,
        run.checkpoints[0].checkpoint_id,
        run.checkpoints[1].checkpoint_id,
    ]
    assert [c.source for c in run.checkpoints] == ["input", "step", "step"]
    assert [c.writers for c in run.checkpoints] == [("e0",), ("e1",), ("e2",)]


@pytest.mark.parametrize("keep_state", [False, True])
@pytest.mark.parametrize("storage", [None, InMemoryCheckpointStorage()])
@pytest.mark.parametrize("executors", [["f"], ["f", "show"], ["s", "f"], ["s", "s2", "f", "show"]])
async def test_a_failed_run_is_retried_from_its_last_checkpoint_or_its_input(executors, storage, keep_state):
    fail = Fail("f")
    nodes = [fail if i == "f" else Show(i) if i == "show" else Pass(i) for i in executors]
    run = chain(*nodes, checkpoint_storage=storage).start("x", keep_state=keep_state)
    with pytest.raises(KeyError):
        await run.result()
    fail.broken = False
    await run.retry()
    assert (run.status, run.is_over) == (WorkflowRunState.IN_PROGRESS, False)
    assert [each.target for each in await run.plan()] == [executors[0] if storage is None else "f"]
    assert "mended" in (await run.result()).outputs
    assert (list(run.state), len(run.pending_requests)) == (["written by the broken"], 1)


async def test_a_cancelled_run_is_retried_from_its_input_and_others_are_not():
    run = three().start("x")
    with raises(WorkflowRunnerException, "STARTED"):
        await run.retry()
    await run.step()
    await run.cancel()
    await run.retry()
    assert (await run.step()).invoked == ["e0"]
    assert (await run.result()).outputs == ["x>e0>e1!"]
    with raises(WorkflowRunnerException, "IDLE"):
        await run.retry()


async def test_restoring_while_a_superstep_runs_is_refused():
    wait = Wait("w")
    run = chain(Pass("s"), wait, checkpoint_storage=InMemoryCheckpointStorage()).start("x")
    await run.step()
    stepping = asyncio.ensure_future(run.step())
    await wait.entered.wait()
    assert run.last_checkpoint is not None
    with raises(RuntimeError, "executed"):
        await run.restore_checkpoint(run.last_checkpoint)
    wait.gate.set()
    await stepping


async def test_without_a_storage_there_is_nothing_to_go_back_to():
    run = three().start("x")
    events = [event async for event in run.watch_stream()]
    assert run.checkpoints == []
    assert all(e.completion_info is None for e in events)
    with pytest.raises(WorkflowCheckpointException):
        await run.restore_checkpoint("cp-1")
    with pytest.raises(WorkflowCheckpointException):
        await run.fork()


async def test_a_fork_and_its_origin_go_on_side_by_side():
    run = three(checkpoint_storage=InMemoryCheckpointStorage()).start("x")
    await run.step()
    fork = await run.fork(messages={"e0": ["other"]})
    await run.step()
    assert (await fork.result()).outputs == ["other>e1!"]
    assert (await run.result()).outputs == ["x>e0>e1!"]


async def test_an_answer_that_was_planned_but_not_delivered_is_open_again_after_cancel() -> None:
    workflow = chain(Ask("ask"))
    run = workflow.start("q", keep_state=True)
    await run.result()
    request = run.pending_requests[0]
    await run.send_response(request.request_id, "first")
    assert [p.message for p in await run.plan()] == ["first"]
    await run.cancel()

    assert [e.request_id for e in run.pending_requests] == [request.request_id]
    assert (await workflow.run(responses={request.request_id: "second"})).get_final_state() is WorkflowRunState.IDLE


async def test_an_answer_in_the_hands_of_an_abandoned_stream_is_open_again() -> None:
    class Slow(Ask):
        @response_handler
        async def on_word(self, request: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await asyncio.Event().wait()

    workflow = chain(Slow("ask"))
    request_id = (await workflow.run("q")).get_request_info_events()[0].request_id
    stream = workflow.run(responses={request_id: "a"}, stream=True)
    async for event in stream:
        if event.type == "executor_invoked":
            break
    del stream
    gc.collect()

    assert list(workflow.run_state.requests) == [request_id]


async def test_a_breakpoint_with_an_answer_of_another_kind_pauses_and_says_what_was_expected() -> None:
    async def predicate(report: Any, plan: Any) -> None:
        """Not a plain function."""

    for wrong in (predicate, lambda report, plan: 5):
        run = three().start("x")
        run.pause_when(wrong)  # type: ignore[arg-type]
        await run.result()
        assert run.pause_reason is not None
        assert run.pause_reason.kind == "error"
        assert "expected a PauseReason, text, a bool or None" in str(run.pause_reason)


def test_a_breakpoint_that_cannot_be_called_is_refused() -> None:
    with raises(TypeError, "5"):
        three().start("x").pause_when(5)  # type: ignore[arg-type]


async def test_a_restore_that_cannot_be_done_leaves_the_run_as_it_was() -> None:
    storage = InMemoryCheckpointStorage()
    await chain(Show("other"), name="other", checkpoint_storage=storage).run("x")
    foreign = (await storage.list_checkpoint_ids(workflow_name="other"))[0]
    run = three(checkpoint_storage=storage).start("x")
    await run.step()

    for checkpoint_id, error in (("unknown", WorkflowCheckpointException), (foreign, GraphMismatchError)):
        with pytest.raises(error):
            await run.restore_checkpoint(checkpoint_id)
    assert (await run.result()).outputs == ["x>e0>e1!"]


async def test_a_fork_takes_what_a_fan_in_gathers_one_by_one():
    run = diamond(checkpoint_storage=InMemoryCheckpointStorage()).start("x")
    await run.result()
    point = run.checkpoints[1]
    fork = await run.fork(point, messages={"l": ["left"], "r": ["right"]}, workflow=diamond())
    assert (await fork.result()).outputs == [["left", "right"]]
    with raises(ValueError, "'l'", "'j'", "3", "list[str]"):
        await run.fork(point, messages={"l": [3]}, workflow=diamond())


async def test_an_info_may_stand_where_an_id_is_expected():
    storage = InMemoryCheckpointStorage()
    run = three(checkpoint_storage=storage).start("x")
    await run.result()
    info = run.checkpoints[1]
    for resumed in (
        three(checkpoint_storage=storage).run(checkpoint_id=info),
        three(checkpoint_storage=storage).run_from_checkpoint(info),
        three(checkpoint_storage=storage).run_stream(checkpoint_id=info).get_final_response(),
        three().start(resume_from=info, checkpoint_storage=storage).result(),
    ):
        assert (await resumed).outputs == ["x>e0>e1!"]
    wrong: Any = 5
    with raises(TypeError, "CheckpointInfo"):
        _ = three(checkpoint_storage=storage).run(checkpoint_id=wrong)


async def test_a_checkpoint_of_another_format_is_refused_before_anything_changes():
    storage = InMemoryCheckpointStorage()
    run = three(checkpoint_storage=storage).start("x")
    await run.result()
    later = await storage.load(run.checkpoints[1].checkpoint_id)
    later.version, later.checkpoint_id = "9.0", "later"
    await storage.save(later)
    fresh = three(checkpoint_storage=storage)
    for call in (lambda: fresh.run(checkpoint_id="later"), lambda: run.fork("later")):
        with raises(WorkflowCheckpointException, "'later'", "'9.0'"):
            await call()
    with raises(WorkflowCheckpointException, "'later'", "'9.0'"):
        await run.restore_checkpoint("later")
    assert run.outputs == ["x>e0>e1!"]


async def test_a_fork_takes_values_as_messages_and_refuses_those_without_a_sender():
    storage = InMemoryCheckpointStorage()
    run = three(checkpoint_storage=storage).start("x")
    await run.result()
    fork = await run.fork(run.checkpoints[0], messages={"e0": ["other"]}, workflow=three(checkpoint_storage=storage))
    assert (await fork.result()).outputs == ["other>e1!"]
    count = len(await storage.list_checkpoint_ids(workflow_name="three"))
    with raises(ValueError, "'nobody'"):
        await run.fork(run.checkpoints[0], messages={"nobody": ["x"]}, workflow=three())
    with raises(TypeError, "list"):
        await run.fork(run.checkpoints[0], messages={"e0": "text"}, workflow=three())
    for messages in ({"e0": ["x", 3]}, {"e0": [WorkflowMessage(3, "e0")]}):
        with raises(ValueError, "'e0'", "'e1'", "3"):
            await run.fork(run.checkpoints[0], messages=messages, workflow=three())
    with raises(ValueError, "'Workflow'", "'e0'", "3"):
        await run.fork(run.checkpoints[0], messages={WORKFLOW_SOURCE: [3]}, workflow=three())
    assert len(await storage.list_checkpoint_ids(workflow_name="three")) == count


async def test_a_handle_and_a_stream_have_one_reader_at_a_time():
    wait = Wait("w")
    workflow = chain(wait)
    run = workflow.start("x")
    stepping = asyncio.ensure_future(run.step())
    await wait.entered.wait()
    with pytest.raises(WorkflowRunnerException):
        await run.step()
    wait.gate.set()
    assert (await stepping).outputs == ["late"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: RunOptions(max_iterations="x"), TypeError),  # type: ignore[arg-type]
        (lambda: RunOptions(max_iterations=-1), ValueError),
        (lambda: chain(Show("s")).run("x", options={"chain": "x"}), TypeError),  # type: ignore[call-overload]
        (lambda: chain(Show("s")).start("x", options={"chain": "x"}), TypeError),  # type: ignore[arg-type]
    ],
)
def test_options_that_are_none_are_refused_at_once(make: Any, error: type[Exception]):
    with raises(error, "expected"):
        make()


async def test_a_run_has_its_own_executors_where_they_have_a_state() -> None:
    class Counter(Executor):
        def fresh(self) -> Counter:
            return Counter(self.id)

        @handler
        async def count(self, text: str, ctx: WorkflowContext[str]) -> None:
            self.seen = text

    workflow = WorkflowBuilder(start_executor=Counter("counter")).build()
    run = workflow.start("hello")
    await run.result()

    counter = run.executors["counter"]
    assert isinstance(counter, Counter)
    assert counter.seen == "hello"
    assert not hasattr(workflow.executors["counter"], "seen")
