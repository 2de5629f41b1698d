"""One connection to a server. A separate task opens and closes it, because anyio requires the same task for both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

from agentbench._bridge import await_on

Open = Callable[[AsyncExitStack], Awaitable[Any]]
"""Opens a session and registers on the stack what must be closed with it."""


class ConnectionLostError(ConnectionError):
    """The connection ended during a request. The server may or may not have acted on it."""

    def __init__(self) -> None:
        super().__init__("the server closed the connection")


opening: ContextVar[Connection] = ContextVar("agentbench_mcp_opening")
"""The connection whose transport is being opened."""


class Connection:
    """A session with a server, bound to the event loop on which it was opened.

    Attributes:
        session: The `ClientSession`, usable from any event loop; None while the connection is closed.
        loop: The event loop of the session.
    """

    def __init__(self) -> None:
        self.session: Any = None
        self.loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self.loop.create_future()
        self._end: asyncio.Future[None] = self.loop.create_future()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the session can be used."""
        return self.session is not None and not self._end.done() and not self.loop.is_closed()

    @property
    def is_reachable(self) -> bool:
        """Whether the connection is open and its event loop runs, so that requests can be answered."""
        return self.is_open and self.loop.is_running()

    async def open(self, open_session: Open) -> None:
        """Open the session. If the caller is cancelled, everything that was opened is closed again.

        Raises:
            ConnectionLostError: The server closed the connection.
            Exception: Opening failed for another reason.
        """
        self._task = self.loop.create_task(self._hold(open_session))
        try:
            await asyncio.wait((self._opened, self._end), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._opened.done():
                self._task.cancel()
                await asyncio.wait([self._task])
        self._opened.result()

    async def _hold(self, open_session: Open) -> None:
        opening.set(self)
        try:
            async with AsyncExitStack() as stack:
                self.session = SessionOnLoop(await open_session(stack), self.loop)
                self._opened.set_result(None)
                await self._end
        except BaseException as error:  # noqa: BLE001 - raised in the task that waits in open()
            if self._opened.done():  # no task waits any more: the connection broke or its loop is ending
                return
            if isinstance(error, asyncio.CancelledError):
                error = ConnectionLostError()
            self._opened.set_exception(error)
            self._opened.exception()  # marks it as retrieved: a cancelled caller never reads it
        finally:
            self.end()
            self.session = None

    def end(self) -> None:
        """Start closing the connection without waiting. Must be called on its own event loop."""
        if not self._end.done():
            self._end.set_result(None)

    async def close(self) -> None:
        """Close the connection and wait until it is closed. May be called from any event loop."""
        if self._task is not None and not self._task.done() and self.loop.is_running():
            await await_on(self.loop, self._close(self._task))

    async def _close(self, task: asyncio.Task[None]) -> None:
        self.end()
        await asyncio.wait([task])

    async def run(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Run a request on the event loop of the connection. May be called from any event loop.

        Raises:
            ConnectionLostError: The connection ended before the server answered.
            NestedLoopError: The thread of that event loop is blocked until this request is done.
        """
        return await await_on(self.loop, self._run(function))

    async def _run(self, function: Callable[[], Awaitable[Any]]) -> Any:
        request = asyncio.ensure_future(function())
        try:
            await asyncio.wait((request, self._end), return_when=asyncio.FIRST_COMPLETED)
            if request.done():
                return request.result()
        finally:
            request.cancel()
        raise ConnectionLostError


class SessionOnLoop:
    """A proxy that makes a session usable from any event loop: its coroutines run on the loop of the session."""

    def __init__(self, session: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._session, self.loop = session, loop

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that isinstance() accepts the proxy as a session
        return type(self._session)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._session, name)
        if not inspect.iscoroutinefunction(member):
            return member
        return lambda *args, **kwargs: await_on(self.loop, member(*args, **kwargs))


class WatchedStream:
    """A wrapper of a message stream that calls back when the stream ends; other members are passed through.

    Args:
        stream: The stream to read.
        on_end: Called when the stream ends or breaks.
    """

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream, self._on_end = stream, on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            return await self._stream.receive()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def first_cause(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups; an error that is not a group is returned itself."""
    while inner := getattr(error, "exceptions", None):
        error = inner[0]
    return error
