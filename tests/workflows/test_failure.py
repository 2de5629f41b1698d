"""A handler that raises, a run that is cancelled, a stream that is left: nothing leaks, and the instance is free."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    WorkflowRunState,
    handler,
)
from tests.workflows.parts import Fail, Pass, Show, Wait, brief, chain, collect


def split() -> tuple[Workflow, Wait, Fail]:
    """s fans out to one that waits and one that fails."""
    source, wait, fail = Pass("s"), Wait("wait"), Fail("fail")
    return WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [wait, fail]).build(), wait, fail


async def test_the_handlers_own_exception_reaches_the_caller():
    fail = Fail("f")
    fail.error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught:
        await chain(Pass("s"), fail).run("x")
    assert caught.value is fail.error


async def test_a_failure_ends_the_stream_with_its_details():
    seen: list[Any] = []
    with pytest.raises(KeyError):
        await collect(chain(Pass("s"), Fail("f")).run("x", stream=True), seen)
    assert brief(seen)[-3:] == ["executor_failed f", "failed", "status FAILED"]
    assert not any(e.type == "superstep_completed" for e in seen)
    assert {e.details.executor_id for e in seen if e.details is not None} == {"f"}
    assert all("KeyError" in (e.details.traceback or "") for e in seen if e.details is not None)


async def test_nothing_of_the_failed_superstep_stays():
    workflow, _, fail = split()
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert workflow.state.export_state() == {}
    assert not workflow.state.has("written by the broken")
    assert workflow.run_state.messages == {}
    assert workflow.run_state.requests == {}
    fail.broken = False


async def test_state_of_the_supersteps_before_stays():
    class Mark(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            ctx.set_state("mark", text)
            await ctx.send_message(text)

    workflow = chain(Mark("m"), Fail("f"))
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert workflow.state.export_state() == {"mark": "x"}


async def test_siblings_of_the_failed_one_are_cancelled_and_awaited():
    workflow, wait, _ = split()
    events: list[Any] = []
    with pytest.raises(KeyError):
        await collect(workflow.run("x", stream=True), events)
    assert wait.ended == "cancelled"
    wait.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert wait.ended == "cancelled"
    assert not any(e.type == "output" for e in events)


async def test_the_workflow_runs_again_at_once():
    workflow, wait, fail = split()
    with pytest.raises(KeyError):
        await workflow.run("x")
    fail.broken = False
    wait.gate.set()
    assert sorted((await workflow.run("y")).outputs) == ["late", "mended"]


async def test_two_failures_are_both_reported_and_the_first_is_raised():
    source, first, second = Pass("s"), Fail("first"), Fail("second")
    first.error, second.error = ValueError("1"), ValueError("2")
    workflow = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [first, second]).build()
    seen: list[Any] = []
    with pytest.raises(ValueError, match="1"):
        await collect(workflow.run("x", stream=True), seen)
    assert [e.executor_id for e in seen if e.type == "executor_failed"] == ["first", "second"]


async def test_a_failing_start_executor_fails_the_run():
    with pytest.raises(KeyError):
        await chain(Fail("f")).run("x")


async def test_no_checkpoint_is_taken_of_a_broken_superstep():
    storage = InMemoryCheckpointStorage()
    workflow = chain(Pass("s"), Pass("t"), Fail("f"), name="n", checkpoint_storage=storage)
    with pytest.raises(KeyError):
        await workflow.run("x")
    assert [c.iteration_count for c in await storage.list_checkpoints(workflow_name="n")] == [0, 1]


# ---- cancellation --------------------------------------------------------------------------------


async def test_cancelling_the_awaiting_task_cancels_the_handlers_and_frees_the_instance():
    wait = Wait("w")
    workflow = chain(Pass("s"), wait)
    task = asyncio.ensure_future(workflow.run("x"))
    await wait.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wait.ended == "cancelled"
    assert workflow.state.export_state() == {}
    wait.gate.set()
    assert (await workflow.run("y")).outputs == ["late"]


@pytest.mark.parametrize("leave_at", ["started", "executor_invoked", "executor_completed", "superstep_started"])
async def test_leaving_a_stream_early_frees_the_instance_and_nothing_of_it_reaches_the_next_run(leave_at: str):
    wait = Wait("w")
    workflow = chain(Pass("s"), wait)
    async for event in workflow.run("abandoned", stream=True):
        if event.type == leave_at:
            break
    wait.gate.set()
    result = await workflow.run("next")
    assert result.outputs == ["late"]
    assert workflow.state.export_state() == {"waited": "next>s"}
    for _ in range(5):
        await asyncio.sleep(0)
    assert workflow.state.export_state() == {"waited": "next>s"}


async def test_a_handler_that_swallows_its_cancellation_reaches_nobody_after_its_stream_was_left():
    late: list[str] = []

    class Stubborn(Executor):
        entered = asyncio.Event()

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            if text == "next":
                await ctx.yield_output("next")
                return
            self.entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                with pytest.raises(RuntimeError) as refused:
                    ctx.set_state("leak", 1)
                late.append(str(refused.value))
                with pytest.raises(RuntimeError):
                    await ctx.send_message("leak")

    stubborn = Stubborn("stubborn")
    workflow = chain(stubborn)
    stream = workflow.run("x", stream=True)
    async for event in stream:
        if event.type == "executor_invoked":
            await stubborn.entered.wait()
            break
    del stream, event
    gc.collect()
    result = await workflow.run("next")
    for _ in range(3):
        await asyncio.sleep(0)
    assert result.outputs == ["next"]
    assert len(late) == 1
    assert not workflow.state.has("leak")


async def test_a_stream_that_is_kept_holds_the_instance_until_it_is_closed():
    workflow = chain(Pass("s"), Show("e"))
    stream = workflow.run("x", stream=True)
    async for _ in stream:
        break
    with pytest.raises(WorkflowBusyError, match="aclose"):
        await workflow.run("y")
    await stream.aclose()
    assert (await workflow.run("y")).outputs == ["y>s!"]


async def test_a_cancelled_run_says_so_in_its_log():
    workflow = chain(Pass("s"), Wait("w"))
    run = workflow.start("x")
    await run.step()
    await run.cancel()
    assert run.status is WorkflowRunState.CANCELLED
    assert brief(run.events)[-1] == "status CANCELLED"


async def test_the_thread_of_a_cancelled_plain_handler_reaches_nobody():
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    class Blocking(Executor):
        @handler
        def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            if text == "next":
                ctx.yield_output("next")
                return
            started.set()
            go_on.wait(10)
            ctx.set_state("late", 1)
            ctx.send_message("late")
            ctx.yield_output("late")
            ended.set()

    workflow = chain(Blocking("b"))
    task = asyncio.ensure_future(workflow.run("x"))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 10)
    assert not workflow.state.has("late")
    assert (await workflow.run("next")).outputs == ["next"]


def test_a_keyboard_interrupt_inside_a_handler_leaves_the_instance_usable():
    class Interrupted(Executor):
        interrupt = True

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            ctx.set_state("half", 1)
            if self.interrupt:
                raise KeyboardInterrupt
            await ctx.yield_output("whole")

    node = Interrupted("i")
    workflow = chain(node)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(workflow.run("x"))
    assert not workflow.state.has("half")
    node.interrupt = False
    assert asyncio.run(workflow.run("y")).outputs == ["whole"]
