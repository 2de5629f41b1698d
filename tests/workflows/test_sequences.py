"""The order of events, the numbering of supersteps, the limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    RunOptions,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowConvergenceException,
    WorkflowRunState,
    handler,
)
from tests.parts.errors import raises
from tests.parts.executors import Again, Join, Pass, Show, brief, chain, collect


async def streamed(workflow: Any, *args: Any, **settings: Any) -> list[str]:
    return brief([event async for event in workflow.run(*args, stream=True, **settings)])


async def test_a_single_executor_shows_one_empty_superstep():
    assert await streamed(chain(Show("e0")), "x") == [
        "started",
        "status IN_PROGRESS",
        "executor_invoked e0",
        "output e0",
        "executor_completed e0",
        "superstep_started 1",
        "superstep_completed 1",
        "status IDLE",
    ]


async def test_a_chain_of_three_delivers_one_executor_a_superstep():
    assert await streamed(chain(Pass("e0"), Pass("e1"), Show("e2")), "x") == [
        "started",
        "status IN_PROGRESS",
        "executor_invoked e0",
        "executor_completed e0",
        "superstep_started 1",
        "executor_invoked e1",
        "executor_completed e1",
        "superstep_completed 1",
        "superstep_started 2",
        "executor_invoked e2",
        "output e2",
        "executor_completed e2",
        "superstep_completed 2",
        "status IDLE",
    ]


async def test_a_plain_run_has_the_events_of_a_streamed_one():
    workflow = chain(Pass("e0"), Show("e1"))
    result = await workflow.run("x", include_status_events=True)
    assert ["started", *brief(result)] == await streamed(workflow, "x")
    assert [event.state for event in result.status_timeline()] == [WorkflowRunState.IN_PROGRESS, WorkflowRunState.IDLE]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_numbers_start_again_with_a_new_message_while_shared_state_stays():
    class Count(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, int]) -> None:
            n = ctx.get_state("n", 0) + 1
            ctx.set_state("n", n)
            await ctx.yield_output(n)

    workflow = chain(Count("c"))
    runs = [await workflow.run("x") for _ in range(3)]
    assert [run.outputs for run in runs] == [[1], [2], [3]]
    assert all([e.iteration for e in run if e.iteration is not None] == [1, 1] for run in runs)


async def test_the_limit_lets_that_many_full_supersteps_run_and_then_fails():
    ping, pong = Again("ping"), Again("pong")
    workflow = WorkflowBuilder(3, start_executor=ping).add_edge(ping, pong).add_edge(pong, ping).build()
    seen: list[Any] = []
    with raises(WorkflowConvergenceException, "3") as caught:
        await collect(workflow.run(100, stream=True), seen)
    texts = brief(seen)
    assert [t for t in texts if t.startswith("superstep_completed")] == [f"superstep_completed {n}" for n in (1, 2, 3)]
    assert texts[-2:] == ["failed", "status FAILED"]
    assert caught.value.max_iterations == 3
    assert sum(caught.value.pending.values()) == 1


async def test_reaching_the_limit_with_nothing_left_is_fine():
    ping, pong = Again("ping"), Again("pong")
    workflow = WorkflowBuilder(3, start_executor=ping).add_edge(ping, pong).add_edge(pong, ping).build()
    assert (await workflow.run(3)).outputs == [0]


async def test_after_a_convergence_error_a_new_message_is_refused_until_reset():
    ping, pong = Again("ping"), Again("pong")
    workflow = WorkflowBuilder(2, start_executor=ping).add_edge(ping, pong).add_edge(pong, ping).build()
    with pytest.raises(WorkflowConvergenceException):
        await workflow.run(100)
    with raises(RuntimeError, "in-flight"):
        await workflow.run(1)
    workflow.reset()
    assert (await workflow.run(1)).outputs == [0]


async def test_a_run_that_hit_its_limit_resumes_from_its_last_checkpoint_with_a_higher_one():
    storage = InMemoryCheckpointStorage()
    ping, pong = Again("ping"), Again("pong")
    builder = WorkflowBuilder(2, "cycle", start_executor=ping, checkpoint_storage=storage)
    workflow = builder.add_edge(ping, pong).add_edge(pong, ping).build()
    with pytest.raises(WorkflowConvergenceException):
        await workflow.run(5)
    latest = await storage.get_latest(workflow_name="cycle")
    assert latest is not None
    result = await workflow.run(checkpoint_id=latest.checkpoint_id, options=RunOptions(max_iterations=10))
    assert result.outputs == [0]


async def test_no_limit_at_all_runs_the_start_executor_only():
    workflow = chain(Show("only"), max_iterations=0)
    assert "superstep_started 1" not in await streamed(workflow, "x")
    with pytest.raises(WorkflowConvergenceException):
        await chain(Pass("a"), Show("b"), max_iterations=0).run("x")


async def test_messages_of_one_source_over_one_edge_arrive_one_after_the_other():
    log: list[str] = []

    class Burst(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            for n in range(3):
                await ctx.send_message(str(n))

    class Slow(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            log.append(f"begin {text}")
            for _ in range(3 - int(text)):
                await asyncio.sleep(0)
            log.append(f"end {text}")

    await chain(Burst("burst"), Slow("slow")).run("x")
    assert log == [f"{what} {n}" for n in range(3) for what in ("begin", "end")]


async def test_the_targets_of_one_message_run_side_by_side():
    inside = 0
    most = 0

    class Meet(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    source, targets = Pass("s"), [Meet("a"), Meet("b"), Meet("c")]
    await WorkflowBuilder(start_executor=source).add_fan_out_edges(source, targets).build().run("x")
    assert most == 3


async def test_messages_are_queued_in_plan_order_whichever_handler_ends_first():
    class Late(Executor):
        def __init__(self, name: str, hops: int) -> None:
            super().__init__(name)
            self.hops = hops

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            for _ in range(self.hops):
                await asyncio.sleep(0)
            await ctx.send_message(self.id)

    source, slow, quick, join = Pass("s"), Late("slow", 5), Late("quick", 0), Join("j")
    builder = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [slow, quick])
    workflow = builder.add_fan_in_edges([slow, quick], join).build()
    assert (await workflow.run("x")).outputs == [["slow", "quick"]]
