"""A node that runs alone needs no task of its own. It is stopped, timed out and cancelled as if it had one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentbench.exceptions import NodeTimeoutError
from agentbench.stategraph import END, AgentState, StateGraph, interrupt

CONFIG = {"thread_id": "t"}


class Counted(AgentState):
    n: int = 0


def two_nodes(first: Callable[..., Any], **options: Any) -> Any:
    async def last(state: Counted) -> dict[str, Any]:
        async with asyncio.timeout(5):  # breaks if a cancellation of the run is left over
            await asyncio.sleep(0)
        return {"n": state.n + 1}

    graph = StateGraph(Counted()).add_node("first", first, **options).add_node("last", last)
    return graph.set_entry_point("first").add_edge("first", "last").add_edge("last", END).compile()


async def begun(app: Any, ready: asyncio.Event) -> asyncio.Task[Any]:
    call: asyncio.Task[Any] = asyncio.ensure_future(app.ainvoke({}, CONFIG))
    await ready.wait()
    return call


async def test_a_stop_cancels_the_node_and_the_thread_goes_on_with_it() -> None:
    ready = asyncio.Event()
    cancelled: list[bool] = []

    async def first(state: Counted) -> dict[str, Any]:
        ready.set()
        try:
            await asyncio.sleep(60 if not cancelled else 0)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return {"n": state.n + 10}

    app = two_nodes(first)
    call = await begun(app, ready)
    await app.astop(CONFIG)

    assert (await call).status == "interrupted"
    assert cancelled == [True]
    assert (await app.ainvoke(None, CONFIG)).state.n == 11


async def test_a_node_that_suppresses_its_cancellation_ends_and_the_run_stops_behind_it() -> None:
    ready = asyncio.Event()

    async def first(state: Counted) -> dict[str, Any]:
        ready.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return {"n": 5}

    app = two_nodes(first)
    call = await begun(app, ready)
    await app.astop(CONFIG)

    stopped = await call
    assert (stopped.status, stopped.state.n) == ("interrupted", 5)
    assert (await app.ainvoke(None, CONFIG)).state.n == 6


async def test_a_node_that_stops_its_own_run_and_waits_no_more_ends_well() -> None:
    app: Any = None

    async def first(state: Counted) -> dict[str, Any]:
        asyncio.get_running_loop().call_soon(lambda: None)
        app._running[app.threads.chain("t")].stop()  # as `astop` does, without a wait in between
        return {"n": 5}

    app = two_nodes(first)
    stopped = await app.ainvoke({}, CONFIG)

    assert (stopped.status, stopped.state.n) == ("interrupted", 5)
    assert (await app.ainvoke(None, CONFIG)).state.n == 6


async def test_cancelling_the_caller_cancels_the_node_and_saves_the_thread() -> None:
    ready, tries = asyncio.Event(), []

    async def first(state: Counted) -> dict[str, Any]:
        tries.append(True)
        ready.set()
        await asyncio.sleep(60 if len(tries) == 1 else 0)
        return {"n": 5}

    app = two_nodes(first)
    call = await begun(app, ready)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert (await app.ainvoke(None, CONFIG)).state.n == 6


async def test_a_node_that_takes_too_long_is_timed_out_and_tried_again() -> None:
    tries = []

    async def first(state: Counted) -> dict[str, Any]:
        tries.append(True)
        await asyncio.sleep(60 if len(tries) == 1 else 0)
        return {"n": 5}

    app = two_nodes(first, timeout=0.02)
    with pytest.raises(NodeTimeoutError):
        await app.ainvoke({}, CONFIG)

    assert (await app.ainvoke(None, CONFIG)).state.n == 6


async def test_questions_of_a_node_do_not_reach_the_code_that_runs_after_it() -> None:
    async def first(state: Counted) -> dict[str, Any]:
        inner = StateGraph(Counted()).add_node("inner", count).set_entry_point("inner").add_edge("inner", END).compile()
        found = (await inner.ainvoke({"n": 1})).state.n
        return {"n": found + int(interrupt("how many?"))}  # of this node, after that of another graph ran in its task

    async def count(state: Counted) -> dict[str, Any]:
        return {"n": state.n + 1}

    app = two_nodes(first)
    assert (await app.ainvoke({}, CONFIG)).interrupts[0].node == "first"
    assert (await app.ainvoke({"resume": 3}, CONFIG)).state.n == 6
