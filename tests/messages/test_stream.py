"""Streams read to their end: what readers, hooks and the final response see, and in which order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import ResponseInvalidatedException
from agentbench.messages.stream import ResponseStream
from tests.parts.errors import raises

T = TypeVar("T")


async def numbers(*values: int) -> AsyncIterator[int]:
    for value in values or (1, 2, 3):
        yield value


async def read(stream: ResponseStream[T, Any]) -> list[T]:
    return [update async for update in stream]


def stream_of(*values: int, **hooks: Any) -> ResponseStream[int, int]:
    return ResponseStream(numbers(*values), finalizer=sum, **hooks)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    async def later(*args: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args)

    return later


#: Every hook works as a plain and as an async function.
BOTH_WAYS = pytest.mark.parametrize("way", [plain, waiting])


# --------------------------------------------------------------------------------------------------- reading it


async def test_the_final_response_can_be_awaited_at_once_and_again() -> None:
    final: list[int] = []

    def finalize(updates: Any) -> int:
        final.append(1)
        return sum(updates)

    stream = ResponseStream(numbers(), finalizer=finalize)
    assert await stream.get_final_response() == 6
    assert await stream.get_final_response() == 6
    assert final == [1]
    assert await read(stream) == []


async def test_without_a_finalizer_the_list_of_updates_is_the_final_response() -> None:
    stream: ResponseStream[int, list[int]] = ResponseStream(numbers())
    final = await stream.get_final_response()
    assert final == [1, 2, 3]
    assert final is not stream.updates


async def test_waiting_for_a_stream_opens_it_and_gives_the_stream() -> None:
    opened = []

    async def later() -> AsyncIterator[int]:
        opened.append(1)
        return numbers()

    stream = ResponseStream(later(), finalizer=sum)
    assert opened == []
    assert await stream is stream
    assert await stream is stream
    assert opened == [1]
    assert stream.state == "open"
    assert await read(stream) == [1, 2, 3]
    assert await stream is stream


class Iterable:
    """An async iterable that is no iterator."""

    def __aiter__(self) -> AsyncIterator[int]:
        return numbers()


@pytest.mark.parametrize("source", [numbers, Iterable])
async def test_any_async_iterable_is_a_source_and_so_is_an_awaitable_of_one(source: Callable[[], Any]) -> None:
    assert await ResponseStream(source(), finalizer=sum).get_final_response() == 6
    promise: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    promise.set_result(source())
    assert await ResponseStream(promise, finalizer=sum).get_final_response() == 6


@pytest.mark.parametrize("source", [[1, 2], None, 5])
async def test_what_is_no_source_is_refused_at_once(source: Any) -> None:
    with pytest.raises(TypeError):
        ResponseStream(source)


async def test_a_promise_of_something_else_is_refused_on_opening() -> None:
    async def later() -> Any:
        return [1]

    with pytest.raises(TypeError):
        await ResponseStream(later())


# ------------------------------------------------------------------------------------------------------- hooks


@BOTH_WAYS
async def test_hooks_run_in_their_order_and_see_what_they_should(way: Callable[..., Any]) -> None:
    log: list[str] = []

    def transform(update: int) -> int:
        log.append("transform")
        return update * 10

    def finalize(updates: Any) -> int:
        log.append("finalizer")
        return sum(updates)

    def result(final: int) -> int:
        log.append("result")
        return final + 1

    stream = ResponseStream(
        numbers(),
        finalizer=way(finalize),
        transform_hooks=[way(transform)],
        cleanup_hooks=[way(lambda: log.append("cleanup"))],
        result_hooks=[way(result)],
    )
    assert await read(stream) == [10, 20, 30]
    assert log == ["transform"] * 3 + ["cleanup", "finalizer", "result"]
    assert await stream.get_final_response() == 7
    assert stream.updates == [1, 2, 3]
    assert len(log) == 6


@BOTH_WAYS
async def test_hooks_that_return_nothing_change_nothing(way: Callable[..., Any]) -> None:
    nothing = way(lambda *_: None)
    stream = stream_of().with_transform_hook(nothing).with_result_hook(nothing).with_cleanup_hook(nothing)
    assert await read(stream) == [1, 2, 3]
    assert await stream.get_final_response() == 6


async def test_a_late_result_hook_is_applied_and_earlier_ones_do_not_run_again() -> None:
    seen: list[int] = []
    stream = stream_of().with_result_hook(seen.append)
    assert await stream.get_final_response() == 6
    stream.with_result_hook(lambda final: final * 2)
    assert await stream.get_final_response() == 12
    assert await stream.get_final_response() == 12
    assert seen == [6]


# -------------------------------------------------------------------------------------------------- context managers


async def test_a_fresh_context_manager_is_entered_around_each_pull_and_the_end_is_no_error() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def around(name: str) -> Iterator[None]:
        log.append(f"+{name}")
        try:
            yield
        except BaseException as error:
            log.append(repr(error))
            raise
        finally:
            log.append(f"-{name}")

    stream = stream_of(1).with_pull_context_manager(lambda: around("a"))
    async for _ in stream:
        log.append("reader")  # noqa: PERF401 - in between
    assert log == ["+a", "-a", "reader", "+a", "-a"]

    log.clear()
    both = stream_of(1).with_pull_context_manager(lambda: around("a")).with_pull_context_manager(lambda: around("b"))
    assert await both.__anext__() == 1
    assert log == ["+a", "+b", "-b", "-a"]

    log.clear()

    async def later() -> AsyncIterator[int]:
        log.append("opens")
        return numbers()

    await ResponseStream(later()).with_pull_context_manager(lambda: around("a"))
    assert log == ["+a", "opens", "-a"]


async def test_a_context_manager_sees_the_error_of_a_pull() -> None:
    seen: list[Any] = []

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(error)
            raise

    async def failing() -> AsyncIterator[int]:
        for value in (1,):
            yield value
        raise ValueError("source")

    with raises(ValueError, "source"):
        await ResponseStream(failing()).with_pull_context_manager(around).get_final_response()
    assert len(seen) == 1


# ---------------------------------------------------------------------------------------------- streams over streams


async def test_hooks_of_the_inner_stream_apply_to_the_outer_one_and_run_once() -> None:
    log: list[str] = []
    inner = (
        stream_of(1, 2, 3)
        .with_transform_hook(lambda update: update * 10)
        .with_cleanup_hook(lambda: log.append("cleanup"))
        .with_result_hook(lambda final: log.append(f"inner {final}"))
    )
    outer: ResponseStream[int, int] = inner.map(lambda update: update + 1, sum)
    outer.with_result_hook(lambda final: log.append(f"outer {final}"))
    assert await read(outer) == [11, 21, 31]
    assert await outer.get_final_response() == 63
    assert await outer.get_final_response() == 63
    assert await inner.get_final_response() == 6
    assert log == ["cleanup", "inner 6", "outer 63"]


async def test_the_final_response_of_a_promised_stream_can_be_changed_by_hooks_and_replaced_by_a_finalizer() -> None:
    async def later() -> ResponseStream[int, int]:
        return stream_of()

    hooked = ResponseStream.from_awaitable(later()).with_result_hook(lambda final: final + 1)
    assert await hooked.get_final_response() == 7
    assert await ResponseStream.from_awaitable(later()).with_finalizer(max).get_final_response() == 3
    mapped = ResponseStream.from_awaitable(later()).map(str, "".join)
    assert await mapped.get_final_response() == "123"


# --------------------------------------------------------------------------------------------------------------- laws


@given(st.lists(st.integers(), max_size=5), st.integers(0, 6), st.integers(0, 3))
def test_however_much_was_read_before_the_final_response_is_the_same(
    values: list[int], read_first: int, maps: int
) -> None:
    async def check() -> None:
        async def source() -> AsyncIterator[int]:
            for value in values:
                yield value

        stream = ResponseStream(source(), finalizer=sum)
        for _ in range(maps):
            stream = stream.map(lambda update: update + 1, sum)
        seen: list[int] = []
        while len(seen) < read_first:
            try:
                seen.append(await stream.__anext__())
            except StopAsyncIteration:
                break
        expected = [value + maps for value in values]
        assert seen == expected[:read_first]
        assert await stream.get_final_response() == sum(expected)
        assert stream.updates == expected

    asyncio.run(check())


def test_a_stream_in_a_plain_loop_says_how_it_is_read() -> None:
    stream: Any = ResponseStream(numbers())
    with pytest.raises(TypeError):
        list(stream)


@pytest.mark.parametrize("name", ["text", "messages", "value"])
def test_a_stream_says_where_the_parts_of_its_response_are(name: str) -> None:
    stream: Any = ResponseStream(numbers())
    assert not hasattr(stream, name)
    with raises(AttributeError, name, "", "get_final_response()", name):
        getattr(stream, name)
    with raises(AttributeError, "other"):
        getattr(stream, "other")  # noqa: B009 - an attribute that is not there


@BOTH_WAYS
async def test_a_mapped_stream_changes_updates_and_both_are_finalized(way: Callable[..., Any]) -> None:
    inner = stream_of()
    outer = inner.map(way(str), way("".join))
    assert await read(outer) == ["1", "2", "3"]
    assert await outer.get_final_response() == "123"
    assert await inner.get_final_response() == 6
    assert outer.updates == ["1", "2", "3"]


# ---- other numbers of updates


@pytest.mark.parametrize("way", [plain, waiting])
async def test_each_update_becomes_any_number_of_updates(way: Any):
    stream = stream_of(0, 2, 3).flat_map(way(lambda number: [number] * number), sum)
    assert await read(stream) == [2, 2, 3, 3, 3]
    assert await stream.get_final_response() == 13


async def test_an_update_can_become_an_async_iterable():
    assert await read(stream_of(2).flat_map(lambda number: numbers(number, number + 1), None)) == [2, 3]


async def test_buffered_updates_are_held_back_until_the_response_is_accepted():
    inner = stream_of(1, 2).with_transform_hook(lambda number: number * 10)
    stream = inner.with_result_hook(lambda total: total + 1).buffer_updates()
    assert await anext(stream) == 10
    assert inner.state == "ended"
    assert await anext(stream) == 20
    assert await stream.get_final_response() == 4


async def test_nothing_of_an_invalidated_response_is_read():
    def refuse(total: int) -> None:
        raise ResponseInvalidatedException("no")

    stream = stream_of(1, 2).with_result_hook(refuse).buffer_updates()
    with raises(ResponseInvalidatedException):
        await anext(stream)
    assert stream.updates == []


@pytest.mark.parametrize("begin", [False, True])
@pytest.mark.parametrize("derive", [ResponseStream.buffer_updates, lambda stream: stream.flat_map(str, None)])
async def test_closing_a_derived_stream_closes_its_source(derive: Any, begin: bool):
    closed: list[str] = []
    source = stream_of().with_cleanup_hook(lambda: closed.append("closed"))
    stream = derive(source)
    if begin:
        await anext(stream)
    await stream.close()
    assert closed == ["closed"]
    assert stream.state == "closed"
