"""Policies of executors, and what a delivery leaves behind."""

import asyncio
import threading
from typing import Any

import pytest

from agentbench.exceptions import ExecutorTimeoutError
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor, executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.options import RunOptions
from tests.parts.errors import raises

SOON = 0.001  # seconds; what is allowed to a handler that never ends
PLENTY = 60.0


class Asking(Executor):
    """A node that calls `act(message, ctx)`, and may ask."""

    def __init__(self, act, **policy):
        super().__init__("node", **policy)
        self.act = act

    @handler
    async def run(self, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        await self.act(message, ctx)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
        """Takes any answer."""


def node(act, key="node", **policy):
    return FunctionExecutor(act, key, input=Any, output=Any, workflow_output=Any, **policy)


@executor
async def show(value: Any, ctx: WorkflowContext[Any, Any]) -> None:
    await ctx.yield_output(("shown", value))


def flow(first):
    return WorkflowBuilder(start_executor=first).add_edge(first, show).build()


def brief(events):
    return [(e.type, e.source_id) for e in events if e.executor_id is not None or e.type == "warning"]


# ---- timeout -------------------------------------------------------------------------------------


async def test_a_handler_that_takes_too_long_is_stopped_and_named():
    ended = []

    async def endless(message, ctx):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    run = flow(node(endless, timeout=SOON)).start("x")
    with raises(ExecutorTimeoutError, "'node'") as caught:
        await run.result()
    assert isinstance(caught.value, TimeoutError)
    assert (caught.value.executor_id, caught.value.timeout_s) == ("node", SOON)
    assert ended == [True]
    assert brief(run.events) == [("executor_invoked", "node"), ("executor_failed", "node")]
    assert run.status is WorkflowRunState.FAILED


async def test_a_handler_that_ignores_its_cancellation_was_too_slow_all_the_same():
    async def ignores(message, ctx):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ctx.send_message("too late")

    workflow = flow(node(ignores, timeout=SOON))
    with pytest.raises(ExecutorTimeoutError):
        await workflow.run("x")
    assert workflow.run_state.messages == {}


async def test_a_plain_function_that_takes_too_long_is_left_behind():
    go_on, done = threading.Event(), threading.Event()

    def endless(message, ctx):
        go_on.wait(PLENTY)
        try:
            ctx.send_message("late")
            ctx.set_state("late", 1)
        finally:
            done.set()

    workflow = flow(node(endless, timeout=0.2))
    with pytest.raises(ExecutorTimeoutError):
        await workflow.run("x")
    go_on.set()
    assert await asyncio.get_running_loop().run_in_executor(None, done.wait, PLENTY)
    assert workflow.run_state.messages == {}
    assert not workflow.state.pending


# ---- retries -------------------------------------------------------------------------------------


def unsteady(failures, do=None):
    """A handler that fails so many times; `do(ctx, attempt)` is done in each attempt before."""
    attempts: list[int] = []

    async def act(message, ctx):
        attempts.append(len(attempts) + 1)
        if do is not None:
            await do(ctx, attempts[-1])
        if len(attempts) <= failures:
            raise ConnectionError(f"attempt {attempts[-1]}")
        await ctx.send_message(f"{message} after {attempts[-1]}")

    return act, attempts


async def test_a_handler_that_fails_is_tried_again_with_the_same_input():
    act, attempts = unsteady(failures=2)
    result = await flow(node(act, retries=2)).run("x")
    assert attempts == [1, 2, 3]
    assert result.outputs == [("shown", "x after 3")]
    assert [e.data for e in result if e.type == "warning"] == [
        "Executor 'node': attempt 1 of 3 failed with ConnectionError: attempt 1. Trying again.",
        "Executor 'node': attempt 2 of 3 failed with ConnectionError: attempt 2. Trying again.",
    ]
    assert brief(result)[:4] == [
        ("executor_invoked", "node"),
        ("warning", "node"),
        ("warning", "node"),
        ("executor_completed", "node"),
    ]


async def test_messages_outputs_and_requests_of_a_failed_attempt_are_dropped():
    async def do(ctx, attempt):
        await ctx.send_message(f"sent {attempt}")
        await ctx.yield_output(f"yielded {attempt}")
        await ctx.request_info(f"asked {attempt}", str, request_id="R")

    act, _ = unsteady(failures=1, do=do)
    workflow = flow(Asking(act, retries=1))
    result = await workflow.run("x")
    assert result.outputs == ["yielded 2", ("shown", "sent 2"), ("shown", "x after 2")]
    assert [e.data for e in result.get_request_info_events()] == ["asked 2"]
    assert workflow.run_state.requests == {"R": result.get_request_info_events()[0]}
    completed = next(e for e in result if e.type == "executor_completed")
    assert completed.data == ["sent 2", "x after 2", "yielded 2"]
    assert [s.state for s in result.status_timeline()] == [
        WorkflowRunState.IN_PROGRESS,
        WorkflowRunState.IN_PROGRESS_PENDING_REQUESTS,
        WorkflowRunState.IDLE_WITH_PENDING_REQUESTS,
    ]


async def test_writes_of_a_failed_attempt_stay():
    async def do(ctx, attempt):
        ctx.set_state("attempts", ctx.get_state("attempts", 0) + 1)

    act, _ = unsteady(failures=2, do=do)
    workflow = flow(node(act, retries=2))
    await workflow.run("x")
    assert workflow.state.get("attempts") == 3


@pytest.mark.parametrize("failures", [1, 9], ids=["a later attempt succeeds", "every attempt fails"])
async def test_the_context_of_every_attempt_is_closed_when_the_handler_has_ended(failures):
    contexts: list[Any] = []

    async def do(ctx, attempt):
        contexts.append(ctx)

    act, _ = unsteady(failures, do=do)
    run = flow(node(act, retries=2)).start("x")
    try:
        await run.result()
    except ConnectionError:
        assert failures == 9
    for ctx in contexts:
        with raises(RuntimeError, "ended"):
            ctx.set_state("late", 1)


async def test_a_timeout_is_a_failure_that_is_tried_again():
    calls = []

    async def slow_once(message, ctx):
        calls.append(message)
        if len(calls) == 1:
            await asyncio.Event().wait()
        await ctx.send_message("done")

    result = await flow(node(slow_once, timeout=SOON, retries=1)).run("x")
    assert result.outputs == [("shown", "done")]
    (warning,) = [e.data for e in result if e.type == "warning"]
    assert "ExecutorTimeoutError" in warning


async def test_a_cancelled_run_is_not_tried_again():
    entered, calls = asyncio.Event(), []

    async def endless(message, ctx):
        calls.append(message)
        entered.set()
        await asyncio.Event().wait()

    driver = asyncio.ensure_future(flow(node(endless, retries=3)).run("x"))
    await entered.wait()
    driver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driver
    assert calls == ["x"]


# ---- concurrency ---------------------------------------------------------------------------------


class Crowd(Executor):
    """Counts how many of its handlers run at once; each waits for its turn to end."""

    def __init__(self, key, hops=3, **policy):
        super().__init__(key, **policy)
        self.hops = hops
        self.running = self.most = 0
        self.order: list[Any] = []

    @handler
    async def run(self, value: int, ctx: WorkflowContext[Any, int]) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(value)
        for _ in range(self.hops):
            await asyncio.sleep(0)
        self.running -= 1
        await ctx.yield_output(value)


def crowded(crowd, senders=5):
    """Several senders of one superstep reach one executor in the next."""

    async def spread(message, ctx):
        await ctx.send_message(message)

    def sender(n):
        async def act(message, ctx):
            await ctx.send_message(n)

        return node(act, f"sender {n}")

    first = node(spread, "first")
    sources = [sender(n) for n in range(senders)]
    return WorkflowBuilder(start_executor=first).add_fan_out_edges(first, sources).fan_in(sources, crowd).build()


@pytest.mark.parametrize("limit", [1, 2, 3, 9])
async def test_no_more_handlers_run_at_once_than_allowed(limit):
    crowd = Crowd("crowd", max_concurrency=limit)
    result = await crowded(crowd).run("x")
    assert crowd.most == min(limit, 5)
    assert crowd.order == [0, 1, 2, 3, 4]
    assert sorted(result.outputs) == [0, 1, 2, 3, 4]


def test_a_limited_executor_may_run_on_one_loop_after_another():
    async def once():
        await crowded(crowd).run("x")

    crowd = Crowd("crowd", max_concurrency=2)
    asyncio.run(once())
    asyncio.run(once())
    assert crowd.order == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize("observe", [False, True])
async def test_a_handler_is_invoked_when_its_turn_has_come(observe):
    result = await crowded(Crowd("crowd", max_concurrency=1)).run("x", options=RunOptions(observe=observe))
    assert [e.type for e in result if e.executor_id == "crowd"] == [
        "executor_invoked",
        "output",
        "executor_completed",
    ] * 5


async def test_those_who_wait_for_their_turn_are_cancelled_with_the_run():
    entered = asyncio.Event()

    class Stuck(Crowd):
        serialize = True

        @handler
        async def run(self, value: int, ctx: WorkflowContext[Any, int]) -> None:
            self.order.append(value)
            entered.set()
            await asyncio.Event().wait()

    stuck = Stuck("stuck")
    run = crowded(stuck).start("x")
    driver = asyncio.ensure_future(run.result())
    await entered.wait()
    driver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driver
    assert stuck.order == [0]
    assert [e.type for e in run.events if e.executor_id == "stuck"] == ["executor_invoked"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


# ---- limits and events ---------------------------------------------------------------------------


@pytest.mark.parametrize("exit_type", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("policy", [{}, {"retries": 2}, {"max_concurrency": 1}])
def test_an_interrupt_inside_a_handler_ends_the_run_and_frees_the_instance(exit_type, policy):
    calls = []

    async def interrupted(message, ctx):
        calls.append(message)
        if len(calls) == 1:
            raise exit_type
        await ctx.send_message(message)

    workflow = flow(node(interrupted, **policy))

    async def main():
        return await workflow.run("x")

    with pytest.raises(exit_type):
        asyncio.run(main())
    assert calls == ["x"]
    assert asyncio.run(main()).outputs == [("shown", "x")]
