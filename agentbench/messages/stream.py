"""A stream of updates that can be watched, transformed, and combined into one response."""

from __future__ import annotations

import asyncio
import typing
from asyncio import current_task, get_running_loop
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, Self, cast

from agentbench._bridge import await_on
from agentbench._display import Displayable
from agentbench.messages.cleanup import clean_up, clean_up_now, log_failure, log_or_raise

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    UpdateT = TypeVar("UpdateT", default=Any)
    FinalT = TypeVar("FinalT", default=Any)
else:  # defaults need Python 3.13, and only type checkers use them
    UpdateT = typing.TypeVar("UpdateT")
    FinalT = typing.TypeVar("FinalT")

OuterUpdateT = typing.TypeVar("OuterUpdateT")
OuterFinalT = typing.TypeVar("OuterFinalT")

StreamState = Literal["unopened", "open", "ended", "failed", "closed"]

_UNSET: Final[Any] = object()
abandoned_streams: Final[dict[ResponseStream[Any, Any], asyncio.Task[None] | None]] = {}
"""Abandoned streams that are being closed, each with the task that closes it."""


def _of_response(name: str) -> property:
    def missing(stream: Any) -> NoReturn:
        message = f"{type(stream).__name__!r} object has no attribute {name!r}. "
        raise AttributeError(message + f"The response has it: (await stream.get_final_response()).{name}")

    return property(missing, doc="An attribute of the response, which a stream does not have.")


class ResponseStream(Displayable, Generic[UpdateT, FinalT]):
    """A stream of updates, and the final response that they make.

    A stream can be read once. At its end the cleanup hooks run, then the finalizer, then the result hooks, even if you
    only call `get_final_response` without iterating. A failed read, a failed hook, `aclose()` or a cancelled task also
    runs the cleanup hooks and closes the source.

    Args:
        stream: An async iterable of updates, or an awaitable that returns one.
        finalizer: Makes the final response from the list of updates. The default is the list itself.
        transform_hooks: See `with_transform_hook`.
        cleanup_hooks: See `with_cleanup_hook`.
        result_hooks: See `with_result_hook`.

    Raises:
        TypeError: The source is neither an async iterable nor awaitable.

    Example:
        from agentbench import Agent, EchoChatClient, run_sync


        async def main():
            async with Agent(EchoChatClient()).run("Tell me a story", stream=True) as stream:
                async for update in stream:
                    print(update.text, end="")
                return await stream.get_final_response()


        print(run_sync(main()).text)
    """

    def __init__(
        self,
        stream: AsyncIterable[UpdateT] | Awaitable[AsyncIterable[UpdateT]],
        *,
        finalizer: Callable[[Sequence[UpdateT]], FinalT | Awaitable[FinalT]] | None = None,
        transform_hooks: Iterable[Callable[[UpdateT], Any]] | None = None,
        cleanup_hooks: Iterable[Callable[[], Any]] | None = None,
        result_hooks: Iterable[Callable[[FinalT], Any]] | None = None,
    ) -> None:
        self._state: StreamState = "unopened"
        self._source: Any = _require(stream)
        self._iterator: AsyncIterator[Any] | None = None
        self._pull: Callable[[], Awaitable[Any]] | None = None
        self._reader: asyncio.Task[Any] | None = None
        self._closer: asyncio.Future[BaseException | None] | None = None
        self._map: Callable[[Any], Any] | None = None
        self._updates: list[UpdateT] = []
        self._finalizer = finalizer
        self._final_is_inner = False
        self._transforms: list[Callable[[UpdateT], Any]] = list(transform_hooks or ())
        self._cleanups: list[Callable[[], Any]] = list(cleanup_hooks or ())
        self._results: list[Callable[[FinalT], Any]] = list(result_hooks or ())
        self._results_done = 0
        self._contexts: list[Callable[[], AbstractContextManager[Any]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0  # in which that loop ran
        self._error: BaseException | None = None
        self._final: Any = _UNSET

    @classmethod
    def from_awaitable(cls, awaitable: Awaitable[AsyncIterable[UpdateT]]) -> ResponseStream[UpdateT, Any]:
        """Make a stream from an awaitable that returns a stream; both have the same final response."""
        stream: ResponseStream[UpdateT, Any] = cls(awaitable)
        stream._final_is_inner = True
        return stream

    # -------------------------------------------------------------------------------------------------------- reading

    @property
    def updates(self) -> list[UpdateT]:
        """The updates read so far, before the transform hooks."""
        return self._updates

    @property
    def state(self) -> StreamState:
        """The state of the stream. `closed` means abandoned before its end by `aclose()`, a reader or a cancelled task.

        Cleanup hooks see the state that caused them to run.
        """
        return self._state

    def __aiter__(self) -> Self:
        return self

    if not TYPE_CHECKING:  # type checkers find these mistakes themselves

        def __iter__(self) -> NoReturn:
            message = "Read a stream with `async for`, not `for`. For its response: await stream.get_final_response()."
            raise TypeError(message)

        # Not `__getattr__`, which would slow down every attribute that is there.
        text, messages, value = map(_of_response, ("text", "messages", "value"))

    async def __anext__(self) -> UpdateT:
        pull = self._pull or await self._open()
        # Not `get_running_loop`, which asks the system for the process on Python 3.11.
        if get_ident() != self._thread or (reader := current_task(self._loop)) is None:
            if loop := self._other_loop():
                return await await_on(loop, self.__anext__())
            reader = current_task(self._loop)
        if self._reader is not None:
            raise _read_twice()
        self._reader = reader
        try:
            update = await (self._in_context(pull()) if self._contexts else pull())
            if self._pull is None:
                raise StopAsyncIteration
        except BaseException as error:
            await self._handle_end(error)
            raise
        finally:
            self._reader = None
        try:
            if self._map is not None:
                update = self._map(update)
                if hasattr(update, "__await__"):
                    update = await update
            self._updates.append(update)
            return await self._transform(update) if self._transforms else update
        except BaseException as error:
            if not isinstance(error, StopAsyncIteration):
                await self._fail(error)
                raise
            failure = RuntimeError("A hook of the stream raised StopAsyncIteration, which would end it.")
            await self._fail(failure)
            raise failure from error

    def _other_loop(self) -> asyncio.AbstractEventLoop | None:
        """Return the event loop that reads and closes the source, if it is not the running one."""
        loop, running = self._loop, get_running_loop()
        if loop is not None and loop is not running and loop.is_running():
            return loop
        self._loop, self._thread = running, get_ident()
        return None

    async def _transform(self, update: Any) -> UpdateT:
        for hook in self._transforms:
            result = hook(update)
            if hasattr(result, "__await__"):
                result = await result
            if result is not None:
                update = result
        return cast("UpdateT", update)

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._open_once().__await__()

    async def _open_once(self) -> Self:
        if self._state == "unopened":
            with suppress(StopAsyncIteration):  # closed in the meantime
                await self._open()
        return self

    async def get_final_response(self) -> FinalT:
        """Read the rest and return the final response, the same one on each call.

        Result hooks that were added since the last call are applied to it.

        Raises:
            RuntimeError: The stream was closed before its end.
            NestedLoopError: The stream was started on an event loop whose thread waits for this call.
            BaseException: Reading or a hook failed, now or earlier.
        """
        if self._loop is not None and (loop := self._other_loop()):
            return await await_on(loop, self.get_final_response())
        async for _ in self:
            pass
        if self._error is not None:
            raise self._error
        if self._state == "closed":
            count = len(self._updates)
            message = (
                f"The stream was closed early, after {count} updates, so it has no final response. "
                "These are in `updates`. To get the response, await it before you close the stream."
            )
            raise RuntimeError(message)
        await self._finish()
        return cast("FinalT", self._final)

    async def aclose(self) -> None:
        """Abandon the rest: close the source, including nested streams, and run the cleanup hooks.

        For a task that is reading the stream, the stream ends.

        Raises:
            BaseException: Closing the source or a hook failed. All hooks have run nevertheless.
        """
        if self._state not in ("unopened", "open"):
            return
        if self._loop is not None and (loop := self._other_loop()):
            await await_on(loop, self.aclose())
            return
        self._state, self._pull = "closed", None
        reader = self._reader
        if reader is not None:
            # The reader closes the source, because some sources can only be closed in the task that reads them.
            if reader is current_task():
                return  # called by the source itself
            self._closer = get_running_loop().create_future()
            reader.cancel()
            failure = await self._closer
        else:
            await asyncio.sleep(0)  # an ending loop closes all generators first, and each can be closed only once
            failure = await clean_up(self._endings())
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Stop reading: run the cleanup hooks and close the source, as `aclose` does."""
        await self.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    # --------------------------------------------------------------------------------------------------------- hooks

    def with_transform_hook(self, hook: Callable[[UpdateT], UpdateT | Awaitable[UpdateT | None] | None]) -> Self:
        """Replace each update by the result of a sync or async function; `None` keeps the update.

        Readers and streams made by `map` get the results; `updates` and the finalizer get the original updates.
        """
        self._transforms.append(hook)
        return self

    def with_result_hook(self, hook: Callable[[FinalT], FinalT | Awaitable[FinalT | None] | None]) -> Self:
        """Replace the final response by the result of a sync or async function; `None` keeps it.

        Each hook runs once; a hook added after the end runs in the next `get_final_response`.
        """
        self._results.append(hook)
        return self

    def with_cleanup_hook(self, hook: Callable[[], Awaitable[None] | None]) -> Self:
        """Call a sync or async function once, when the source ends or fails or the stream is closed."""
        self._cleanups.append(hook)
        return self

    def with_pull_context_manager(self, factory: Callable[[], AbstractContextManager[Any]]) -> Self:
        """Enter a new context manager for each read from the source, and for opening it."""
        self._contexts.append(factory)
        return self

    def map(
        self,
        transform: Callable[[UpdateT], OuterUpdateT | Awaitable[OuterUpdateT]],
        finalizer: Callable[[Sequence[OuterUpdateT]], OuterFinalT | Awaitable[OuterFinalT]] | None,
    ) -> ResponseStream[OuterUpdateT, OuterFinalT]:
        """Return a stream that transforms each update of this one.

        Args:
            transform: Returns the new update, after this stream's hooks; may be async.
            finalizer: Makes the final response from the transformed updates. The finalizer of this stream runs as well.
        """
        outer: ResponseStream[OuterUpdateT, OuterFinalT] = ResponseStream(cast("Any", self), finalizer=finalizer)
        outer._map = transform
        return outer

    def flat_map(
        self,
        transform: Callable[[UpdateT], Any],
        finalizer: Callable[[Sequence[Any]], OuterFinalT | Awaitable[OuterFinalT]] | None,
    ) -> ResponseStream[Any, OuterFinalT]:
        """Return a stream that replaces each update of this one by any number of updates.

        Args:
            transform: Returns the new updates in an iterable or an async iterable, or an awaitable of one.
            finalizer: Makes the final response from the new updates. The finalizer of this stream runs as well.

        Example:
            stream = agent.run("Hello", stream=True).flat_map(lambda update: update.text.split(), " ".join)
        """

        async def pieces() -> AsyncIterator[Any]:
            async for update in self:
                found = transform(update)
                if hasattr(found, "__await__"):
                    found = await found
                if hasattr(found, "__aiter__"):
                    async for piece in found:
                        yield piece
                else:
                    for piece in found:
                        yield piece

        return ResponseStream(pieces(), finalizer=finalizer, cleanup_hooks=[self.aclose])

    def buffer_updates(self) -> ResponseStream[UpdateT, FinalT]:
        """Return a stream that holds the updates back until this stream has ended; both have the same final response.

        A result hook of this stream thus sees the response before a reader sees any of it. If the hook raises a
        `ResponseInvalidatedException`, nothing of the response is shown.

        Example:
            def refuse_secrets(response):
                if "password" in response.text:
                    raise ResponseInvalidatedException("The response contains a password.")


            stream = agent.run("Hello", stream=True).with_result_hook(refuse_secrets).buffer_updates()
        """

        async def updates() -> AsyncIterator[UpdateT]:
            for update in [update async for update in self]:
                yield update

        return ResponseStream(updates(), finalizer=lambda _: self.get_final_response(), cleanup_hooks=[self.aclose])

    def with_finalizer(
        self, finalizer: Callable[[Sequence[UpdateT]], OuterFinalT | Awaitable[OuterFinalT]]
    ) -> ResponseStream[UpdateT, OuterFinalT]:
        """Return a stream with the same updates and another final response. The finalizer of this one runs too."""
        return ResponseStream(self, finalizer=finalizer)

    # ------------------------------------------------------------------------------------------------ start and end

    async def _open(self) -> Callable[[], Awaitable[Any]]:
        if self.state != "unopened":
            raise StopAsyncIteration
        if self._reader is not None:
            raise _read_twice()
        self._reader = current_task()
        try:
            if not hasattr(self._source, "__aiter__"):
                self._source = await (self._in_context(self._source) if self._contexts else self._source)
            self._iterator = _require(self._source, "__aiter__").__aiter__()
            self._loop, self._thread = get_running_loop(), get_ident()
            if self._state == "closed":
                raise StopAsyncIteration
        except BaseException as error:
            await self._handle_end(error)
            raise
        finally:
            self._reader = None
        self._state = "open"
        self._pull = self._iterator.__anext__
        return self._pull

    async def _in_context(self, awaitable: Awaitable[Any]) -> Any:
        with ExitStack() as stack:
            for factory in self._contexts:
                stack.enter_context(factory())
            try:
                return await awaitable
            except StopAsyncIteration:
                pass  # a context manager would mistake the end of the stream for an error
        raise StopAsyncIteration

    async def _handle_end(self, error: BaseException) -> None:
        """Handle the end of reading. The caller raises the error, unless this raises another one."""
        if self._state == "closed":
            await self._close_for_other(error)
        elif isinstance(error, StopAsyncIteration):
            self._state, self._pull = "ended", None
            failure = await clean_up(self._take_hooks())
            await self._finish()
            if failure is not None:
                raise failure
        else:
            await self._fail(error)

    async def _finish(self) -> None:
        try:
            if self._final is _UNSET:
                self._final = await self._make_final()
            while self._results_done < len(self._results):
                hook = self._results[self._results_done]
                self._results_done += 1
                result = hook(self._final)
                if hasattr(result, "__await__"):
                    result = await result
                if result is not None:
                    self._final = result
        except BaseException as error:
            self._note(error)
            raise

    async def _make_final(self) -> Any:
        if self._finalizer is not None:
            final: Any = self._finalizer(self._updates)
            return await final if hasattr(final, "__await__") else final
        if self._final_is_inner and isinstance(self._source, ResponseStream):
            return await self._source.get_final_response()
        return list(self._updates)

    def _note(self, error: BaseException) -> None:
        # A cancellation affects only one task; later readers see a closed stream.
        self._state, self._error = ("failed", error) if isinstance(error, Exception) else ("closed", None)

    async def _fail(self, error: BaseException) -> None:
        self._pull = None
        self._note(error)
        if isinstance(error, GeneratorExit):
            clean_up_now(self._endings())
        else:
            log_or_raise(await clean_up(self._endings()))

    async def _close_for_other(self, error: BaseException) -> None:
        """Close the source in the task that was reading, for the task that called `aclose()`."""
        closer, self._closer = self._closer, None
        is_over = isinstance(error, StopAsyncIteration)
        if closer is not None:
            others = getattr(self._reader, "uncancel", int)()  # were there other cancellations of this task?
            is_over = is_over or (isinstance(error, asyncio.CancelledError) and not others)
        failure: BaseException | None = None
        try:
            if isinstance(error, GeneratorExit):
                clean_up_now(self._endings())
            else:
                failure = await clean_up(self._endings())
            if closer is None or closer.done() or not isinstance(failure, Exception):
                log_or_raise(failure)
        finally:
            if closer is not None and not closer.done():
                closer.set_result(failure if isinstance(failure, Exception) else None)
        if is_over:
            raise StopAsyncIteration from None

    def _endings(self) -> list[Callable[[], Any]]:
        """Return the functions that close the iterator and the source, and then the cleanup hooks."""
        parts = [self._source] if self._iterator in (None, self._source) else [self._iterator, self._source]
        # The event loop closes a generator that was abandoned together with its stream.
        closers = [getattr(part, "aclose", None) for part in parts if not getattr(part, "ag_running", False)]
        if self._iterator is None and not hasattr(self._source, "__aiter__"):
            # An awaitable that was never awaited: a coroutine is closed, a task is cancelled.
            closers.append(getattr(self._source, "close", None) or getattr(self._source, "cancel", None))
        return [*(close for close in closers if callable(close)), *self._take_hooks()]

    def _take_hooks(self) -> list[Callable[[], Any]]:
        hooks, self._cleanups = self._cleanups, []
        return hooks

    def __del__(self) -> None:
        # The reader left its loop and dropped the stream. Its span must still end, and its turn must be saved.
        if getattr(self, "_state", None) != "open":
            return
        loop = self._loop
        if loop is None or loop.is_closed():
            self._state = "closed"
            clean_up_now(self._endings())
            return
        with suppress(RuntimeError):
            if get_running_loop() is loop:
                _close_abandoned(self)  # now, so that closing starts before an ending loop cancels its tasks
                return
        abandoned_streams[self] = None
        loop.call_soon_threadsafe(_close_abandoned, self)

    async def _aclose_abandoned(self) -> None:
        with suppress(asyncio.CancelledError):  # an ending loop waits for the tasks that it cancels
            await asyncio.sleep(0)
        try:
            await self.aclose()
        except Exception as error:  # noqa: BLE001 - there is no caller to catch it
            log_failure(error)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._state}, {len(self._updates)} updates)"


def _require(source: Any, *methods: str) -> Any:
    if not any(hasattr(source, method) for method in methods or ("__aiter__", "__await__")):
        message = f"A stream cannot read {type(source).__name__}. Expected an async iterable or an awaitable of one."
        raise TypeError(message)
    return source


def _read_twice() -> RuntimeError:
    return RuntimeError("Another task is waiting for the next update of this stream. Read it in one task.")


def _close_abandoned(stream: ResponseStream[Any, Any]) -> None:
    abandoned_streams[stream] = closing = asyncio.ensure_future(stream._aclose_abandoned())  # noqa: SLF001 - a part of the class
    closing.add_done_callback(lambda _: abandoned_streams.pop(stream, None))


async def wait_for_abandoned_streams(*, timeout_s: float) -> None:
    """Wait until the abandoned streams of this event loop are closed, at most `timeout_s` seconds."""
    await asyncio.sleep(0)  # lets the loop start the tasks that close them
    loop = get_running_loop()
    closing = [task for task in abandoned_streams.values() if task is not None and task.get_loop() is loop]
    if closing:
        await asyncio.wait(closing, timeout=timeout_s)
