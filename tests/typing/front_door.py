"""Read by mypy, not run: what the public calls give, as a user of the front door sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, assert_type

import agentbench
from agentbench import (
    CheckpointInfo,
    Executor,
    FunctionExecutor,
    InMemoryCheckpointStorage,
    PlannedDelivery,
    RunOptions,
    StepReport,
    StreamingRun,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowEvent,
    WorkflowRun,
    WorkflowRunResult,
    executor,
    handler,
    run_sync,
)
from agentbench.checkpoints import CheckpointDiff, diff_checkpoints, fork_checkpoint
from agentbench.evaluation import EvalItem, EvalResults, LocalEvaluator, keyword_check
from agentbench.notebook import GraphView, draw
from agentbench.observability import AgentTelemetryLayer, is_tracing
from agentbench.openai import OpenAIChatClient
from agentbench.orchestrations import AIAgentHostExecutor, SequentialBuilder
from agentbench.stategraph import END, AgentState, CompiledGraph, InMemoryCheckpointer, StateGraph
from agentbench.testing import CountingIds, ScriptedChatClient, TickingClock


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


async def saving(storage: InMemoryCheckpointStorage) -> None:
    found = await storage.get_latest(workflow_name="w")
    assert_type(found, WorkflowCheckpoint | None)
    assert_type(await fork_checkpoint(storage, "cp-0001"), CheckpointInfo)


def failing() -> None:
    try:
        run_sync(building().run("hello"))
    except agentbench.WorkflowConvergenceException as error:
        assert_type(error.max_iterations, int | None)
        assert_type(error.pending, dict[str, int])
    except agentbench.exceptions.GraphMismatchError as error:
        assert_type(error.differences, list[dict[str, Any]])


async def other_packages(agent: agentbench.Agent, first: WorkflowCheckpoint, second: WorkflowCheckpoint) -> None:
    """Each package has a typed stub: names, second names and parts keep their types."""
    assert_type(diff_checkpoints(first, second), CheckpointDiff)
    assert_type(await LocalEvaluator(keyword_check("sun")).evaluate([EvalItem(conversation=[])]), EvalResults)
    assert_type(draw(building()), GraphView)
    assert_type(is_tracing(), bool)
    assert_type(SequentialBuilder(participants=[agent]).build(), Workflow)
    assert_type(StateGraph(AgentState()).add_edge("a", END).compile(), CompiledGraph[AgentState])
    assert_type(InMemoryCheckpointer(), InMemoryCheckpointStorage)
    assert_type(ScriptedChatClient(["hi"]), agentbench.ScriptedChatClient)
    classes: list[type] = [AgentTelemetryLayer, OpenAIChatClient, AIAgentHostExecutor]
    assert_type(classes, list[type])
    assert_type(agentbench.testing.storage_suite.StorageCheck, type[agentbench.testing.StorageCheck])
