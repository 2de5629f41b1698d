"""A run whose event loop was closed: it counts as ended, and so does whatever it held."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from agentbench import Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler, workflow
from agentbench.exceptions import WorkflowRunnerException
from agentbench.workflows.events.events import WorkflowRunState


class Waits(Executor):
    """Waits for ever at its first call, else yields its input."""

    calls = 0

    @handler
    async def take(self, text: str, ctx: WorkflowContext[Any, str]) -> None:
        self.calls += 1
        if self.calls == 1:
            ctx.set_state("seen", text)
            await asyncio.Event().wait()
        await ctx.yield_output(text)


def waiting() -> Any:
    return WorkflowBuilder(start_executor=Waits(id="w"), name="waiting").build()


def nested() -> Any:
    return WorkflowBuilder(
        start_executor=WorkflowExecutor(waiting(), "inner", concurrency="error", allow_direct_output=True)
    ).build()


def functional() -> Any:
    calls: list[str] = []

    @workflow
    async def waits(text: str) -> str:
        calls.append(text)
        if len(calls) == 1:
            await asyncio.Event().wait()
        return text

    return waits


async def read(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


def abandon(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Begin work on an event loop, and close the loop in the middle of it."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    for _ in range(20):
        loop.run_until_complete(asyncio.sleep(0))
    assert not task.done()
    loop.close()
    return task


@pytest.mark.parametrize("make", [waiting, nested, functional])
@pytest.mark.parametrize("begin", [lambda one: one.run("first"), lambda one: read(one.run("first", stream=True))])
def test_a_workflow_is_free_again(make: Callable[[], Any], begin: Callable[[Any], Any]) -> None:
    one = make()
    task = abandon(begin(one))

    result = asyncio.run(one.run("second"))
    assert result.get_outputs() == ["second"]
    assert result.carried_over is None

    del task, begin  # what is left of the first run ends only now, and changes nothing
    gc.collect()
    assert asyncio.run(one.run("third")).get_outputs() == ["third"]


@pytest.mark.parametrize("keep_state", [True, False])
def test_a_handle_is_cancelled(keep_state: bool) -> None:
    one = waiting()
    run = one.start("first", keep_state=keep_state)
    task = abandon(run.step())

    with pytest.raises(WorkflowRunnerException):
        asyncio.run(run.step())
    assert run.status is WorkflowRunState.CANCELLED
    assert not task.done()


def test_a_handle_that_is_cancelled_does_not_wait_for_a_closed_loop() -> None:
    run = waiting().start("first")
    task = abandon(run.step())
    asyncio.run(run.cancel())
    assert run.status is WorkflowRunState.CANCELLED
    assert not task.done()


def test_a_handle_that_holds_the_state_lets_it_go() -> None:
    one = waiting()
    run = one.start("first", keep_state=True)
    task = abandon(run.step())
    assert asyncio.run(one.run("second")).get_outputs() == ["second"]
    assert run.status is WorkflowRunState.CANCELLED
    assert not task.done()
