"""Read by mypy, not run: what the public calls give, as a user of the front door sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, assert_type

from agentbench import (
    Executor,
    FunctionExecutor,
    PlannedDelivery,
    RunOptions,
    StepReport,
    StreamingRun,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowRun,
    WorkflowRunResult,
    executor,
    handler,
    run_sync,
)
from agentbench.testing import CountingIds, TickingClock


class Upper(Executor):
    @handler
    async def shout(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())


@executor
async def count(text: str, ctx: WorkflowContext[Any, int]) -> None:
    await ctx.yield_output(len(text))


@executor(id="named")
def named(text: str) -> str:
    return text


def building() -> Workflow:
    assert_type(count, FunctionExecutor)
    assert_type(named, FunctionExecutor)
    workflow = WorkflowBuilder(start_executor=Upper(id="upper")).add_chain([Upper(id="upper"), count]).build()
    assert_type(workflow, Workflow)
    return workflow


async def running(workflow: Workflow) -> None:
    result = await workflow.run("hello")
    assert_type(result, WorkflowRunResult)
    assert_type(result.get_outputs(), list[Any])
    assert_type(run_sync(workflow.run("hello")), WorkflowRunResult)
    async for event in workflow.run("hello", stream=True):
        assert_type(event, WorkflowEvent[Any])


async def stepping(workflow: Workflow) -> None:
    run = workflow.start("hello", options=RunOptions(clock=TickingClock(), ids=CountingIds()))
    assert_type(run, WorkflowRun)
    same: StreamingRun = run
    assert_type(await same.step(), StepReport)
    assert_type(await run.plan(), list[PlannedDelivery])
    assert_type(await run.result(), WorkflowRunResult)
    assert_type(await run.fork(), WorkflowRun)
    assert_type(run.watch_stream(), AsyncIterator[WorkflowEvent[Any]])
