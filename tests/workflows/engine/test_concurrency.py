"""Coroutines side by side: `run_all` leaves none behind, whether tasks start in place (Python 3.12) or later."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.workflows.engine.invocation import run_all
from tests.parts.errors import raises

Part = Callable[[], Coroutine[Any, Any, Any]]


async def together(*parts: Part) -> list[Any]:
    return await run_all(lambda part: part(), parts)


def alone() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


@given(st.lists(st.integers(0, 5), max_size=8))
def test_results_come_in_the_order_of_the_items(pauses: list[int]) -> None:
    async def part(item: tuple[int, int]) -> int:
        index, pause = item
        for _ in range(pause):
            await asyncio.sleep(0)
        return index

    found = asyncio.run(run_all(part, list(enumerate(pauses))))

    assert found == list(range(len(pauses)))


async def test_a_failure_cancels_the_others_and_is_raised_when_they_have_ended() -> None:
    told = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # cleaning up takes its time
            told.append("cleaned up")
            raise

    with raises(ValueError, "broken"):
        await together(waits, fails, waits)

    assert told == ["cleaned up", "cleaned up"]
    assert alone()


async def test_of_several_failures_the_first_by_time_is_raised() -> None:
    async def later() -> None:
        await asyncio.sleep(0)
        raise ValueError("later")

    async def at_once() -> None:
        raise KeyError("at once")

    with pytest.raises(KeyError):
        await together(later, at_once, at_once)


async def test_a_part_that_is_cancelled_by_its_own_work_counts_as_a_failure() -> None:
    async def cancelled() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async def waits() -> None:
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await together(waits, cancelled)
    assert alone()


async def test_cancelling_the_caller_cancels_all_and_waits_for_them() -> None:
    begun, ended = asyncio.Event(), []

    async def part(name: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    caller = asyncio.create_task(run_all(part, ["a", "b"]))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    assert sorted(ended) == ["a", "b"]
    assert alone()


async def test_a_second_cancellation_leaves_no_part_behind_either() -> None:
    begun, cleaning, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event(), []

    async def part(name: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cleaning.set()
            await may_end.wait()
            ended.append(name)
            raise

    caller = asyncio.create_task(run_all(part, ["a", "b"]))
    await begun.wait()
    caller.cancel()
    await cleaning.wait()
    caller.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller

    assert sorted(ended) == ["a", "b"]


async def test_each_part_has_context_variables_of_its_own() -> None:
    variable = contextvars.ContextVar("variable", default="caller's")

    async def part(name: str) -> tuple[str, str]:
        before = variable.get()
        variable.set(name)
        await asyncio.sleep(0)
        return before, variable.get()

    async def hasty(name: str) -> str:
        before = variable.get()
        variable.set(name)
        return before

    assert await run_all(part, ["a", "b"]) == [("caller's", "a"), ("caller's", "b")]
    assert await run_all(hasty, ["a", "b"]) == ["caller's", "caller's"]
    assert variable.get() == "caller's"
