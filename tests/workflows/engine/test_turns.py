"""Fairness: a run that waits for nothing lets the event loop come round, and one that waits gives it nothing extra."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler
from agentbench.stategraph import END, AgentState, StateGraph
from agentbench.workflows.engine import runner

N = 200


class Bounce(Executor):
    def __init__(self, name: str, *, waits: bool) -> None:
        super().__init__(name)
        self.waits = waits

    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        if self.waits:
            await asyncio.sleep(0)
        if n < N:
            await ctx.send_message(n + 1)
        else:
            await ctx.yield_output(n)


def bouncing(*, waits: bool, steps: int = N) -> Any:
    one, other = Bounce("one", waits=waits), Bounce("other", waits=waits)
    return (
        WorkflowBuilder(start_executor=one, max_iterations=steps + 2).add_edge(one, other).add_edge(other, one).build()
    )


def endless_graph() -> Any:
    class Counted(AgentState):
        n: int = 0

    async def count(state: Counted) -> dict[str, Any]:
        return {"n": state.n + 1}

    graph = StateGraph(Counted()).add_node("count", count).set_entry_point("count").add_edge("count", "count")
    return graph.compile()


@asynccontextmanager
async def counted_rounds() -> AsyncIterator[list[int]]:
    """Count the rounds of the event loop."""
    loop, rounds = asyncio.get_running_loop(), [0]

    def come_round() -> None:
        rounds[0] += 1
        handle[0] = loop.call_soon(come_round)

    handle = [loop.call_soon(come_round)]
    try:
        yield rounds
    finally:
        handle[0].cancel()


@pytest.fixture
def time_is_always_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time of a turn be over at each superstep."""
    monkeypatch.setattr(runner, "monotonic", lambda: float("inf"))


@pytest.mark.usefixtures("time_is_always_over")
async def test_a_run_whose_handlers_wait_gives_no_turn_away() -> None:
    workflow = bouncing(waits=True)
    async with counted_rounds() as rounds:
        await workflow.run(0)

    assert N < rounds[0] <= N + 3  # the handlers' own waits


@pytest.mark.usefixtures("time_is_always_over")
async def test_a_run_whose_handlers_wait_for_nothing_gives_a_turn_whenever_its_time_is_over() -> None:
    workflow = bouncing(waits=False)
    async with counted_rounds() as rounds:
        await workflow.run(0)

    assert rounds[0] >= N - 1


async def test_runs_side_by_side_that_wait_share_the_rounds_of_the_loop() -> None:
    workflows = [bouncing(waits=True) for _ in range(20)]
    async with counted_rounds() as rounds:
        await asyncio.gather(*(workflow.run(0) for workflow in workflows))

    assert rounds[0] <= N + 5


@pytest.mark.parametrize("kind", ["workflow", "graph"])
async def test_a_timeout_ends_a_run_that_waits_for_nothing(kind: str) -> None:
    class Endless(Bounce):
        @handler
        async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
            await ctx.send_message(n)

    one, other = Endless("one", waits=False), Endless("other", waits=False)
    endless = (
        WorkflowBuilder(start_executor=one, max_iterations=10**9).add_edge(one, other).add_edge(other, one).build()
    )
    begin = (
        endless.run(0)
        if kind == "workflow"
        else endless_graph().ainvoke({}, {"thread_id": "t", "recursion_limit": 10**9})
    )

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(begin, 0.05)


async def test_a_graph_that_waits_for_nothing_can_be_stopped() -> None:
    app, config = endless_graph(), {"thread_id": "t", "recursion_limit": 10**9}
    call = asyncio.ensure_future(app.ainvoke({}, config))
    await asyncio.sleep(0.02)
    assert (await app.astop(config))["running"]

    assert (await call).status == "interrupted"
    assert END not in (await app.aget_state(config)).next
