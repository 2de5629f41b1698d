"""Streams that are closed while someone else is reading them, or forgotten in the middle."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from agentbench import run_sync
from agentbench.exceptions import NestedLoopError
from agentbench.messages.stream import ResponseStream
from tests.messages.test_stream import read
from tests.parts.errors import raises


class CloseError(Exception):
    pass


class Source:
    """Gives one update, then waits for ever; tells which task closed it, and how."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.closed: list[asyncio.Task[Any] | None] = []

    async def __call__(self) -> AsyncGenerator[int, None]:
        try:
            yield 1
            self.waits.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # as the closing of a connection
            self.closed.append(asyncio.current_task())


# --------------------------------------------------------------------------------- closing what another task is reading


@pytest.mark.parametrize("maps", [0, 2])
async def test_closing_takes_a_reader_out_of_its_pull_and_closes_the_source_in_its_task(maps: int) -> None:
    source = Source()
    hooks: list[str] = []
    stream: ResponseStream[Any, Any] = ResponseStream(source())
    stream.with_cleanup_hook(lambda: hooks.append("inner"))
    for number in range(maps):
        stream = stream.map(lambda update: update, len).with_cleanup_hook(lambda number=number: hooks.append(number))  # type: ignore[misc]
    reader = asyncio.ensure_future(read(stream))
    await source.waits.wait()
    await stream.aclose()
    assert (source.closed, hooks) == ([reader], ["inner", *range(maps)])
    assert await reader == [1]  # to the reader that is the end
    assert stream.state == "closed"
    with raises(RuntimeError, "1"):
        await stream.get_final_response()


async def test_a_reader_goes_on_as_if_it_had_never_been_cancelled() -> None:
    source = Source()
    stream = ResponseStream(source())

    async def read_and_go_on() -> str:
        await read(stream)
        await asyncio.sleep(0)
        return "went on"

    reader = asyncio.ensure_future(read_and_go_on())
    await source.waits.wait()
    await stream.aclose()
    assert reader.cancelling() == 0
    assert await reader == "went on"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tasks count their cancellations since Python 3.11")
async def test_a_reader_that_is_cancelled_and_closed_at_once_is_cancelled() -> None:
    source = Source()
    stream = ResponseStream(source())
    reader = asyncio.ensure_future(read(stream))
    await source.waits.wait()
    reader.cancel()
    await stream.aclose()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert source.closed == [reader]


async def test_a_failure_is_raised_by_the_call_that_closes() -> None:
    source = Source()

    def fail() -> None:
        raise CloseError

    stream = ResponseStream(source()).with_cleanup_hook(fail)
    reader = asyncio.ensure_future(read(stream))
    await source.waits.wait()
    with pytest.raises(CloseError):
        await stream.aclose()
    assert await reader == [1]


async def test_closing_a_stream_that_is_just_being_opened_lets_it_go() -> None:
    begun = asyncio.Event()
    cleanups: list[str] = []

    async def later() -> AsyncIterator[int]:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    stream = ResponseStream.from_awaitable(later()).with_cleanup_hook(lambda: cleanups.append(stream.state))
    openers = [asyncio.ensure_future(read(stream))]
    await begun.wait()
    await stream.aclose()
    assert await openers[0] == []
    assert await stream is stream
    assert cleanups == ["closed"]


async def test_a_source_may_close_its_own_stream() -> None:
    log: list[str] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await stream.aclose()
            yield 2
            log.append("never")
        finally:
            log.append("closed")

    stream: ResponseStream[int, Any] = ResponseStream(source()).with_cleanup_hook(lambda: log.append("cleaned up"))
    assert await read(stream) == [1]
    assert log == ["closed", "cleaned up"]


async def test_a_source_that_does_not_mind_being_cancelled_is_closed_after_its_update() -> None:
    waits = asyncio.Event()
    log: list[str] = []

    async def stubborn() -> AsyncIterator[int]:
        try:
            waits.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield 1
                yield 2
        finally:
            log.append("closed")

    stream = ResponseStream(stubborn())
    reader = asyncio.ensure_future(read(stream))
    await waits.wait()
    await stream.aclose()
    assert (await reader, log) == ([], ["closed"])


async def test_a_second_reader_is_refused_and_the_first_reads_on() -> None:
    source = Source()
    stream = ResponseStream(source())
    reader = asyncio.ensure_future(read(stream))
    await source.waits.wait()
    with pytest.raises(RuntimeError):
        await stream.get_final_response()
    assert stream.state == "open"
    await stream.aclose()
    assert await reader == [1]


# ------------------------------------------------------------------------------------------------- forgotten streams


class Holder:
    def __init__(self, stream: ResponseStream[int, Any]) -> None:
        self.stream, self.itself = stream, self


async def test_what_is_dropped_in_a_circle_is_closed_once_and_silently(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    hooks: list[int] = []
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def forget() -> None:
        holder = Holder(ResponseStream(source()).with_cleanup_hook(lambda: hooks.append(1)))
        await holder.stream.__anext__()

    for _ in range(20):
        await forget()
        gc.collect()
        for _ in range(6):
            await asyncio.sleep(0)
    assert (len(source.closed), len(hooks)) == (20, 20)
    assert complaints == []
    assert caplog.records == []


async def test_the_closing_of_a_dropped_stream_is_not_itself_dropped() -> None:
    holds: list[weakref.ref[asyncio.Future[None]]] = []
    log: list[str] = []

    async def cleanup() -> None:
        waiting = asyncio.get_running_loop().create_future()  # nobody but this task knows of it
        holds.append(weakref.ref(waiting))
        try:
            await waiting
        finally:
            log.append("closed")

    async def forget() -> None:
        async def source() -> AsyncIterator[int]:
            yield 1

        await ResponseStream(source()).with_cleanup_hook(cleanup).__anext__()

    await forget()
    for _ in range(4):
        gc.collect()
        await asyncio.sleep(0)
    gc.collect()
    waiting = holds[0]()
    assert waiting is not None
    waiting.set_result(None)
    for _ in range(3):
        await asyncio.sleep(0)
    assert log == ["closed"]


# ------------------------------------------------------------------------------------------ on other event loops


async def loops(n: int) -> AsyncIterator[asyncio.AbstractEventLoop]:
    for _ in range(n):
        await asyncio.sleep(0)
        yield asyncio.get_running_loop()


def test_a_stream_is_read_and_closed_on_the_loop_on_which_it_was_opened():
    closed: list[asyncio.AbstractEventLoop] = []
    stream: ResponseStream[Any, Any] = ResponseStream(loops(5))
    stream.with_cleanup_hook(lambda: closed.append(asyncio.get_running_loop()))
    home = run_sync(anext(stream))
    assert asyncio.run(anext(stream)) is home
    assert asyncio.run(stream.get_final_response()) == [home] * 5
    asyncio.run(stream.aclose())
    assert closed == [home]


@pytest.mark.parametrize("use", ["get_final_response", "__anext__", "aclose"])
def test_a_stream_of_a_loop_that_is_blocked_is_a_named_error_and_can_be_read_later(use: str):
    async def cell() -> None:
        stream: ResponseStream[Any, Any] = ResponseStream(loops(5))
        await anext(stream)
        with pytest.raises(NestedLoopError):
            run_sync(getattr(stream, use)(), timeout=60)
        assert len(await stream.get_final_response()) == 5

    asyncio.run(cell())


def test_a_stream_goes_on_where_its_loop_has_ended():
    stream: ResponseStream[Any, Any] = ResponseStream(loops(2), finalizer=len)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(anext(stream))
    loop.close()
    assert asyncio.run(stream.get_final_response()) == 2
