"""Supersteps and runs leave nothing that only the garbage collector could free: with it off, memory stays level."""

from __future__ import annotations

import asyncio
import gc
import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest

from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler
from agentbench.stategraph import END, AgentState, Runtime, StateGraph

N_SUPERSTEPS = 100


class Counted(AgentState):
    n: int = 0
    notes: Annotated[list[str], operator.add] = []


async def waits(state: Counted) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"n": state.n + 1, "notes": [f"{state.n}"]}


async def looks(state: Counted, config: dict[str, Any], runtime: Runtime) -> dict[str, Any]:
    runtime.emit(config["step"])
    return {"n": state.n + 1}


def plain(state: Counted) -> dict[str, Any]:
    return {"n": state.n + 1}


def looping(*nodes: Any) -> Any:
    graph = StateGraph(Counted())
    names = [f"n{place}" for place in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        graph.add_node(name, node)
    graph.set_entry_point(names[0])
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        graph.add_conditional_edges(
            name, lambda state, following=following: END if state.n >= N_SUPERSTEPS else following, [following, END]
        )
    return graph.compile()


class Bounce(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        ctx.set_state("n", n)
        if n < N_SUPERSTEPS:
            await ctx.send_message(n + 1)
        else:
            await ctx.yield_output(n)


def bouncing() -> Any:
    one, other, third = (Bounce(id=name) for name in ("one", "other", "third"))
    builder = WorkflowBuilder(start_executor=one, max_iterations=N_SUPERSTEPS + 2)
    return builder.add_edge(one, other).add_edge(other, one).add_edge(one, third).build()


async def called(thread: dict[str, Any], *nodes: Any) -> None:
    await looping(*nodes).ainvoke({"n": 0}, {**thread, "recursion_limit": N_SUPERSTEPS + 1})


async def streamed() -> None:
    config = {"recursion_limit": N_SUPERSTEPS + 1}
    async for _ in looping(waits).astream({"n": 0}, config, stream_mode="updates"):
        pass


async def run() -> None:
    await bouncing().run(0)


async def streamed_run() -> None:
    async for _ in bouncing().run(0, stream=True):
        pass


RUNS = {
    "graph": lambda: called({}, waits, plain, looks),
    "thread": lambda: called({"thread_id": "t"}, waits, looks),
    "streamed graph": streamed,
    "workflow": run,
    "streamed workflow": streamed_run,
}


@pytest.mark.parametrize("what", RUNS)
async def test_a_run_leaves_no_cycles_for_each_superstep(what: str) -> None:
    begin: Callable[[], Awaitable[None]] = RUNS[what]
    await begin()  # what is made once

    assert min([await garbage_of(begin) for _ in range(3)]) < 2 * N_SUPERSTEPS  # other threads leave some, too


async def garbage_of(begin: Callable[[], Awaitable[None]]) -> int:
    """Return the number of objects that only the collector frees after a run."""
    gc.collect()
    gc.disable()
    try:
        await begin()
        return gc.collect()
    finally:
        gc.enable()
