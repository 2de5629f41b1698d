"""Plain functions and methods act on the run from worker threads."""

import asyncio
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.options import RunOptions
from tests.parts.errors import raises

# Long enough that only a deadlock reaches it; no test waits for it.
PATIENCE = 30


class Plain(Executor):
    """A node whose plain handler is `act(message, ctx)`, and which may ask."""

    def __init__(self, act, key):
        super().__init__(key)
        self.act = act

    @handler
    def run(self, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        self.act(message, ctx)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
        """Takes any answer."""


def plain(act, key="plain"):
    return Plain(act, key)


@executor
async def show(value: Any, ctx: WorkflowContext[Any, Any]) -> None:
    await ctx.yield_output(("sent", value))


def flow(node):
    return WorkflowBuilder(start_executor=node).add_edge(node, show).build()


# ---- every call has taken effect when it returns ---------------------------------------------------


async def test_everything_a_context_offers_works_without_await():
    found: list[Any] = []

    def act(message, ctx):
        ctx.send_message("sent")
        ctx.yield_output("yielded")
        ctx.add_event(WorkflowEvent("custom", "x"))
        ctx.request_info("question", str, request_id="R")
        ctx.queue_state_update("k", 1)
        ctx.get_state("k")
        found.extend([ctx.get_sent_messages(), ctx.get_yielded_outputs(), ctx.get_state("k")])
        found.extend([ctx.executor_id, ctx.task_id, ctx.source_executor_ids, ctx.is_streaming(), ctx.stop_requested])

    result = await flow(plain(act)).run("x")
    assert found == [["sent"], ["yielded"], 1, "plain", "0:plain:0", ["Workflow"], False, False]
    assert [e.type for e in result] == [
        "executor_invoked",
        "output",
        "custom",
        "request_info",
        "executor_completed",
        "superstep_started",
        "executor_invoked",
        "output",
        "executor_completed",
        "superstep_completed",
    ]
    assert result.outputs == ["yielded", ("sent", "sent")]
    assert result.final_state is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS


async def test_events_of_a_plain_function_stream_while_it_runs():
    go_on = threading.Event()

    def act(message, ctx):
        ctx.yield_output("first")
        if not go_on.wait(PATIENCE):
            raise TimeoutError
        ctx.yield_output("second")

    outputs = []
    async for event in flow(plain(act)).run("x", stream=True):
        if event.type == "output":
            outputs.append(event.data)
            go_on.set()
    assert outputs == ["first", "second"]


async def test_what_a_call_raises_is_raised_in_the_thread():
    caught: list[str] = []

    def act(message, ctx):
        ctx.request_info("q", str, request_id="R")
        for call in (lambda: ctx.request_info("q", str, request_id="R"), lambda: ctx.set_state("_x", 1)):
            with pytest.raises(ValueError, match=r"still open|reserved") as error:
                call()
            caught.append(str(error.value))

    await flow(plain(act)).run("x")
    assert len(caught) == 2


async def test_what_a_call_returns_may_be_awaited_on_another_loop_or_handed_to_it():
    def act(message, ctx):
        async def inner():
            await ctx.yield_output("awaited")
            return await ctx.read_state("k", "default")

        ctx.yield_output(asyncio.run(inner()))
        asyncio.run(ctx.yield_output("handed over"))

    assert (await flow(plain(act)).run("x")).outputs == ["awaited", "default", "handed over"]


async def test_a_context_of_a_plain_function_is_closed_with_it():
    contexts: list[Any] = []
    workflow = flow(plain(lambda message, ctx: contexts.append(ctx)))
    await workflow.run("x")
    for late in (lambda: contexts[0].send_message("late"), lambda: contexts[0].set_state("late", 1)):
        with raises(RuntimeError, "ended"):
            late()
        with raises(RuntimeError, "ended"):
            await asyncio.to_thread(late)
    assert workflow.run_state.messages == {}
    assert not workflow.state.pending


# ---- a cancelled run leaves its thread behind ------------------------------------------------------


def stubborn():
    """A plain function that continues after its run was cancelled, once `go_on` is set; `late` has its results."""
    entered, go_on, done = threading.Event(), threading.Event(), threading.Event()
    late: list[Any] = []

    def act(message, ctx):
        ctx.set_state("early", message)
        entered.set()
        assert go_on.wait(PATIENCE)
        late.append(ctx.send_message("late"))
        late.append(ctx.yield_output("late"))
        late.append(ctx.add_event(WorkflowEvent.warning("late")))
        late.append(ctx.request_info("late", str))
        late.append(ctx.set_state("late", 1))
        late.append(ctx.queue_state_update("late", 1))
        late.append(ctx.get_state("early"))
        done.set()

    return act, entered, go_on, done, late


async def in_thread(event):
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, PATIENCE)


@pytest.mark.parametrize("observe", [False, True])
async def test_the_thread_of_a_cancelled_run_has_no_effect(observe):
    act, entered, go_on, done, late = stubborn()
    workflow = flow(plain(act))
    run = workflow.start("x", options=RunOptions(observe=observe))
    driver = asyncio.ensure_future(run.result())
    await in_thread(entered)
    driver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driver
    ended_with = [e.type for e in run.events]
    assert run.status is WorkflowRunState.CANCELLED
    go_on.set()
    await in_thread(done)
    await asyncio.sleep(0)
    assert len(late) == 7
    assert [e.type for e in run.events] == ended_with
    assert (run.pending_messages, run.pending_requests, run.state) == ([], [], {})


async def test_the_instance_of_a_cancelled_run_can_be_used_while_the_thread_still_runs():
    act, entered, go_on, done, late = stubborn()
    calls = []

    def first_time_stubborn(message, ctx):
        calls.append(message)
        if len(calls) == 1:
            act(message, ctx)
        else:
            ctx.send_message(message)

    workflow = flow(plain(first_time_stubborn))
    driver = asyncio.ensure_future(workflow.run("first"))
    await in_thread(entered)
    driver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driver
    go_on_later = asyncio.ensure_future(workflow.run("second"))
    go_on.set()
    result = await go_on_later
    await in_thread(done)
    assert result.outputs == [("sent", "second")]
    assert len(late) == 7
    assert workflow.state.export_state() == {}


async def test_a_thread_that_waits_for_the_loop_is_freed_when_its_run_is_cancelled():
    entered, go_on, calling, freed = (threading.Event() for _ in range(4))

    def act(message, ctx):
        entered.set()
        assert go_on.wait(PATIENCE)
        calling.set()
        ctx.send_message("late")
        freed.set()

    workflow = flow(plain(act))
    driver = asyncio.ensure_future(workflow.run("x"))
    await in_thread(entered)
    driver.cancel()
    go_on.set()
    # The loop stands still here: it finds the cancellation first, then the call.
    assert calling.wait(PATIENCE)
    with pytest.raises(asyncio.CancelledError):
        await driver
    await in_thread(freed)
    assert workflow.run_state.messages == {}


def test_a_loop_that_closes_while_a_thread_calls_frees_the_thread():
    """A program whose run is cancelled by the end of `asyncio.run` ends, although its threads go on."""
    program = textwrap.dedent("""
        import asyncio, threading
        from agentbench import WorkflowBuilder, WorkflowContext, executor

        entered = threading.Event()

        @executor
        def talks(text: str, ctx: WorkflowContext[str, str]) -> None:
            for n in range(2000):
                ctx.yield_output(str(n))
                entered.set()

        async def main():
            run = asyncio.ensure_future(WorkflowBuilder(start_executor=talks).build().run("x"))
            while not entered.is_set():
                await asyncio.sleep(0)

        asyncio.run(main())
        print("ended")
    """)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout, done.stderr) == ("ended\n", "")
