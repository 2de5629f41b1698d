"""Functions that get the events of a run as they come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.run.run import WorkflowRun
from tests.parts.errors import raises


class Count(Executor):
    @handler
    async def count(self, left: int, ctx: WorkflowContext[int, str]) -> None:
        await (ctx.send_message(left - 1) if left else ctx.yield_output("zero"))


def counting(left: int = 3) -> WorkflowRun:
    one, other = Count(id="one"), Count(id="other")
    workflow = WorkflowBuilder(start_executor=one).add_edge(one, other).add_edge(other, one).build()
    return workflow.start(left, checkpoint_storage=InMemoryCheckpointStorage())


@pytest.mark.parametrize("how", ["step", "watch_stream", "result"])
async def test_a_listener_gets_every_event_once_and_in_order(how: str) -> None:
    run = counting()
    got: list[Any] = []
    run.listen(got.extend)
    if how == "step":
        while run.status != "IDLE":
            await run.step()
    elif how == "watch_stream":
        async for _ in run.watch_stream():
            pass
    else:
        await run.result()
    assert got == run.events


async def test_it_gets_events_of_a_handler_before_the_handler_has_ended() -> None:
    got = asyncio.Event()

    class Waits(Executor):
        @handler
        async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await asyncio.wait_for(got.wait(), 20)
            await ctx.yield_output(text)

    run = WorkflowBuilder(start_executor=Waits(id="waits")).build().start("x")
    run.listen(lambda events: got.set() if events[-1].type == "executor_invoked" else None)
    await run.step()
    assert run.outputs == ["x"]


async def test_one_that_was_removed_gets_no_more_events() -> None:
    run = counting()
    got: list[Any] = []
    others: list[Any] = []
    stop = run.listen(got.extend)
    run.listen(others.extend)
    await run.step()
    stop()
    stop()
    before = len(got)
    await run.result()
    assert (len(got), len(others)) == (before, len(run.events))


async def test_one_that_raises_disturbs_neither_the_run_nor_the_others() -> None:
    run = counting()
    got: list[Any] = []
    reported: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: reported.append(context))
    run.listen(lambda events: 1 / 0)
    run.listen(got.extend)
    await run.result()
    loop.set_exception_handler(before)
    assert run.outputs == ["zero"]
    assert got == run.events
    assert {type(context["exception"]) for context in reported} == {ZeroDivisionError}


async def test_what_cannot_be_called_is_refused() -> None:
    run = counting()
    with raises(TypeError, "called"):
        run.listen("events")  # type: ignore[arg-type]
    await run.cancel()


async def test_a_run_says_which_checkpoint_it_began_at() -> None:
    run = counting()
    assert run.started_from is None
    await run.step()
    fork = await run.fork()
    begun = fork.started_from
    assert begun is not None
    assert begun != run.checkpoints[-1].checkpoint_id
    await fork.step()
    assert fork.started_from == begun
    await fork.cancel()
