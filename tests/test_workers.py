"""Sync functions in worker threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from agentbench import _bridge, run_sync
from agentbench._workers import run_in_thread
from tests.endless import WAIT_S


async def test_a_function_runs_in_another_thread_with_a_copy_of_the_context_variables() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")
    variable.set("seen")

    def look(first: int, *, second: int) -> tuple[int, str, int]:
        found = variable.get()
        variable.set("changed")
        return threading.get_ident(), found, first + second

    thread, found, total = await run_in_thread(look, 1, second=2)

    assert (found, total, variable.get()) == ("seen", 3, "seen")
    assert thread != threading.get_ident()


@pytest.mark.parametrize(("raised", "expected"), [(KeyError("x"), KeyError), (StopIteration(), RuntimeError)])
async def test_its_error_is_raised_where_it_is_awaited(raised: Exception, expected: type[Exception]) -> None:
    def fail() -> None:
        raise raised

    with pytest.raises(expected):
        await run_in_thread(fail)


async def test_calls_one_after_another_take_one_thread() -> None:
    await run_in_thread(int)
    before = threading.active_count()
    for _ in range(50):
        await run_in_thread(int)
    assert threading.active_count() <= before


async def test_more_calls_than_threads_all_end() -> None:
    numbers = range(1000)
    assert await asyncio.gather(*(run_in_thread(int, number) for number in numbers)) == [*numbers]


async def test_a_call_that_waits_for_a_thread_is_never_made_when_its_caller_is_cancelled() -> None:
    release, begun = threading.Event(), threading.Semaphore(0)
    made: list[int] = []

    def wait(number: int) -> None:
        made.append(number)
        begun.release()
        release.wait(WAIT_S)

    calls = [asyncio.ensure_future(run_in_thread(wait, number)) for number in range(100)]
    for _ in range(64):
        await asyncio.to_thread(begun.acquire, timeout=WAIT_S)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    release.set()
    await asyncio.gather(*(run_in_thread(int) for _ in range(100)))  # the threads are free again
    assert sorted(made) == [*range(64)]


async def test_functions_that_wait_for_an_event_loop_leave_their_places_to_others() -> None:
    def nested(depth: int) -> int:
        return 1 if depth == 0 else run_sync(run_in_thread(nested, depth - 1), timeout=WAIT_S)

    assert sum(await asyncio.gather(*(run_in_thread(nested, 3) for _ in range(100)))) == 100


def test_a_function_may_outlive_its_event_loop() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        may_end.wait(WAIT_S)
        ended.set()

    async def leave() -> None:
        call = asyncio.ensure_future(run_in_thread(wait))
        await asyncio.to_thread(begun.wait, WAIT_S)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(leave())  # does not wait for the thread
    may_end.set()
    assert ended.wait(WAIT_S)
    assert asyncio.run(run_in_thread(int, 1)) == 1


async def test_without_threads_it_runs_in_place(monkeypatch: Any) -> None:
    monkeypatch.setattr(_bridge, "threads_available", lambda: False)
    assert await run_in_thread(threading.get_ident) == threading.get_ident()
