"""Streams that do not come to their end: failures, cancellation, closing, readers who go away."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agentbench.messages.stream import ResponseStream
from tests.messages.test_stream import BOTH_WAYS, numbers, plain, read, stream_of, waiting
from tests.parts.errors import raises

LOGGED = "Closing a stream or one of its cleanup hooks failed: {}."


class SourceError(Exception):
    pass


class HookError(Exception):
    pass


async def failing(after: int = 1) -> AsyncIterator[int]:
    for value in range(after):
        yield value
    raise SourceError


class Endless:
    """Gives one update, then waits for ever; knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = 0
        self.waits = asyncio.Event()
        self.given = False

    def __aiter__(self) -> Endless:
        return self

    async def __anext__(self) -> int:
        if not self.given:
            self.given = True
            return 1
        self.waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def aclose(self) -> None:
        self.closed += 1


BOTH_ENDS = pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda wait: ResponseStream(numbers(), finalizer=wait), id="finalizer"),
        pytest.param(lambda wait: ResponseStream(numbers()).with_result_hook(wait), id="result hook"),
    ],
)


def raising(error: Exception) -> Callable[..., Any]:
    def raise_it(*_: Any) -> Any:
        raise error

    return raise_it


# ------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(("after", "maps"), [(0, 0), (2, 2)])
async def test_a_failing_source_is_raised_by_every_reading_and_cleaned_up_once(after: int, maps: int) -> None:
    cleanups: list[str] = []
    stream: ResponseStream[Any, Any] = ResponseStream(failing(after), finalizer=sum)
    stream.with_cleanup_hook(lambda: cleanups.append(stream.state)).with_result_hook(raising(AssertionError()))
    inner = stream
    for _ in range(maps):
        stream = stream.map(lambda update: update, sum)
    seen = []
    with pytest.raises(SourceError) as first:  # noqa: PT012 - the loop fails
        async for update in stream:
            seen.append(update)  # noqa: PERF401 - what came before the failure counts
    for each in (stream, inner, stream):
        with pytest.raises(SourceError) as again:
            await each.get_final_response()
        assert again.value is first.value
    assert seen == stream.updates == list(range(after))
    assert len(cleanups) == 1
    assert stream.state == inner.state == "failed"
    assert await read(stream) == []


async def test_a_promise_that_fails_is_a_failing_source() -> None:
    cleanups: list[int] = []

    async def later() -> AsyncIterator[int]:
        raise SourceError

    stream = ResponseStream.from_awaitable(later()).with_cleanup_hook(lambda: cleanups.append(1))
    with pytest.raises(SourceError):
        await stream
    with pytest.raises(SourceError):
        await stream.get_final_response()
    assert cleanups == [1]
    assert await stream is stream  # it is open no more, and says nothing new


@BOTH_WAYS
async def test_a_failing_transform_hook_ends_the_stream_and_closes_its_source(way: Callable[..., Any]) -> None:
    source = Endless()
    cleanups: list[int] = []
    stream = (
        ResponseStream(source)
        .with_transform_hook(way(raising(HookError())))
        .with_cleanup_hook(way(lambda: cleanups.append(1)))
    )
    with pytest.raises(HookError):
        await stream.__anext__()
    with pytest.raises(HookError):
        await stream.get_final_response()
    assert (source.closed, cleanups) == (1, [1])


@BOTH_WAYS
async def test_a_failing_result_hook_is_raised_by_the_last_pull_and_ever_after(way: Callable[..., Any]) -> None:
    later_hooks: list[int] = []
    stream = stream_of().with_result_hook(way(raising(HookError()))).with_result_hook(later_hooks.append)
    assert [await stream.__anext__() for _ in range(3)] == [1, 2, 3]
    with pytest.raises(HookError):
        await stream.__anext__()
    with pytest.raises(HookError):
        await stream.get_final_response()
    assert later_hooks == []


async def test_a_hook_cannot_pass_for_the_end() -> None:
    stream = stream_of().with_transform_hook(raising(StopAsyncIteration()))
    with pytest.raises(RuntimeError):
        await read(stream)
    with pytest.raises(RuntimeError):
        await stream.get_final_response()


@BOTH_WAYS
async def test_a_failing_cleanup_hook_does_not_hide_the_error_of_the_source(
    way: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []
    stream = (
        ResponseStream(failing()).with_cleanup_hook(way(raising(HookError()))).with_cleanup_hook(lambda: ran.append(1))
    )
    with pytest.raises(SourceError):
        await read(stream)
    assert ran == [1]
    assert LOGGED.format("HookError") in caplog.text


async def test_at_a_good_end_a_failing_cleanup_hook_is_raised_once_and_the_response_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []
    stream = stream_of().with_result_hook(lambda _: ran.append("result"))
    stream.with_cleanup_hook(raising(HookError("first"))).with_cleanup_hook(raising(HookError("second")))
    with raises(HookError, "first"):
        await read(stream)
    assert await stream.get_final_response() == 6
    assert ran == ["result"]
    assert LOGGED.format("HookError") in caplog.text


async def test_what_a_failing_hook_says_is_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(SourceError):
        await read(ResponseStream(failing()).with_cleanup_hook(raising(HookError("my diagnosis"))))
    told = {record.levelname: caplog.handler.format(record) for record in caplog.records if record.name == "agentbench"}
    assert "my diagnosis" not in told["ERROR"]
    assert "my diagnosis" in told["DEBUG"]


# ---------------------------------------------------------------------------------------------------- cancellation


@pytest.mark.parametrize(("way", "maps"), [(plain, 0), (waiting, 2)])
async def test_cancellation_runs_the_cleanup_hooks_and_closes_the_source(way: Callable[..., Any], maps: int) -> None:
    source = Endless()
    cleanups: list[str] = []
    stream: ResponseStream[Any, Any] = ResponseStream(source)
    inner = stream
    inner.with_cleanup_hook(way(lambda: cleanups.append(inner.state)))
    for _ in range(maps):
        stream = stream.map(lambda update: update, len)
    task = asyncio.ensure_future(read(stream))
    await source.waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleanups == ["closed"]
    assert source.closed == 1
    with raises(RuntimeError, "1"):
        await stream.get_final_response()


@BOTH_ENDS
async def test_cancelling_a_reader_while_the_final_response_is_made_does_not_cancel_later_readers(
    end: Callable[..., ResponseStream[int, Any]],
) -> None:
    begun = asyncio.Event()

    async def wait(_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    stream = end(wait)
    reader = asyncio.ensure_future(read(stream))
    await begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    for _ in range(2):
        with raises(RuntimeError, "3"):
            await stream.get_final_response()


async def test_a_cancellation_while_cleaning_up_after_a_failure_gets_through() -> None:
    begun = asyncio.Event()
    ran: list[int] = []

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    stream = ResponseStream(failing()).with_cleanup_hook(wait).with_cleanup_hook(lambda: ran.append(1))
    reader = asyncio.ensure_future(read(stream))
    await begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert ran == [1]
    with pytest.raises(SourceError):
        await stream.get_final_response()


# ---------------------------------------------------------------------------------------------------------- closing


@pytest.mark.parametrize(("way", "maps", "read_first"), [(plain, 0, 0), (waiting, 2, 1)])
async def test_closing_closes_the_source_through_every_layer_and_runs_the_hooks_once(
    way: Callable[..., Any], maps: int, read_first: int
) -> None:
    source = Endless()
    cleanups: list[str] = []
    stream: ResponseStream[Any, Any] = ResponseStream(source)
    stream.with_cleanup_hook(way(lambda: cleanups.append("inner")))
    for number in range(maps):
        stream = stream.map(lambda update: update, len).with_cleanup_hook(lambda number=number: cleanups.append(number))  # type: ignore[misc]
    for _ in range(read_first):
        await stream.__anext__()
    await stream.aclose()
    await stream.aclose()
    assert source.closed == 1
    assert cleanups == ["inner", *range(maps)]
    assert stream.state == "closed"
    assert await read(stream) == []
    with raises(RuntimeError, "after ", read_first, " updates"):
        await stream.get_final_response()


async def test_a_promise_without_a_reader_is_dropped_without_a_warning() -> None:
    async def later() -> AsyncIterator[int]:
        return numbers()

    await ResponseStream(later()).aclose()
    task = asyncio.ensure_future(asyncio.sleep(99))
    await ResponseStream(task).aclose()  # type: ignore[arg-type]
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_failures_of_closing_are_raised_after_all_hooks_ran() -> None:
    ran: list[int] = []

    class Stuck(Endless):
        async def aclose(self) -> None:
            raise SourceError

    stream = ResponseStream(Stuck()).with_cleanup_hook(lambda: ran.append(1))
    with pytest.raises(SourceError):
        await stream.aclose()
    assert ran == [1]
    other = ResponseStream(Endless()).with_cleanup_hook(raising(HookError())).with_cleanup_hook(lambda: ran.append(2))
    with pytest.raises(HookError):
        await other.aclose()
    assert ran == [1, 2]


# ------------------------------------------------------------------------------------------------ readers who go away


async def test_a_hook_that_wants_to_wait_there_is_cut_off_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    async def cleanup() -> None:
        log.append("began")
        await asyncio.sleep(0)
        log.append("went on")

    stream = ResponseStream(Endless()).with_cleanup_hook(cleanup).with_cleanup_hook(raising(HookError()))
    await stream.__anext__()
    pull = stream.__anext__()
    pull.send(None)
    pull.close()
    assert log == ["began"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR]


async def test_a_dropped_stream_that_cannot_be_closed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def forget() -> None:
        await ResponseStream(Endless()).with_cleanup_hook(raising(HookError())).__anext__()

    await forget()
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert LOGGED.format("HookError") in caplog.text


def test_a_stream_that_outlives_its_loop_is_cleaned_up_as_far_as_possible() -> None:
    log: list[str] = []
    kept: list[Any] = []

    async def begin() -> None:
        kept.append(ResponseStream(Endless()).with_cleanup_hook(lambda: log.append("cleaned up")))
        await kept[0].__anext__()

    asyncio.run(begin())
    assert log == []
    kept.clear()
    gc.collect()
    assert log == ["cleaned up"]


async def test_after_its_end_closing_does_nothing_and_the_response_stays() -> None:
    cleanups: list[int] = []
    async with stream_of().with_cleanup_hook(lambda: cleanups.append(1)) as stream:
        assert await stream.get_final_response() == 6
    assert await stream.get_final_response() == 6
    assert cleanups == [1]
    assert repr(stream) == "ResponseStream(ended, 3 updates)"
