"""Worker threads: call sync functions without blocking the event loop that waits for them."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from agentbench import _bridge
from agentbench._bridge import Caller, EngineFuture

T = TypeVar("T")
P = ParamSpec("P")

_MOST_THREADS = 64


async def run_in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a worker thread with a copy of the context variables, or here if Python has no threads.

    A cancelled caller does not wait for the function; a `run_sync` inside it is interrupted.

    Raises:
        RuntimeError: The function raised `StopIteration`.
        Exception: Any other error that the function raises.
    """
    if not _bridge.threads_available():
        return function(*args, **kwargs)
    call = _WorkerCall(partial(function, *args, **kwargs) if args or kwargs else function)
    _workers.make(call)
    try:
        return await call.outcome  # type: ignore[no-any-return]
    except asyncio.CancelledError:
        call.abandon()
        raise


class _WorkerCall:
    """One call of a function in a worker thread, for a caller on an event loop. It costs less than two futures."""

    __slots__ = ("_context", "_function", "_is_abandoned", "_loop", "_waits_for", "outcome")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._function = function
        self._context = contextvars.copy_context()
        self._is_abandoned = False
        self._waits_for: EngineFuture[Any] | None = None
        self.outcome: asyncio.Future[Any] = self._loop.create_future()

    def run(self, caller: Caller, release: Callable[[], bool]) -> bool:
        """Call the function on the worker thread. The thread is released before the result is delivered."""
        if self._is_abandoned:
            return release()
        caller.call = self
        result: Any = None
        error: BaseException | None = None
        try:
            result = self._context.run(self._function)
        except StopIteration as caught:  # futures do not accept StopIteration, so the caller would wait forever
            message = "A sync function raised StopIteration, as next() does at the end of an iterator."
            error = RuntimeError(message)
            error.__cause__ = caught
        except BaseException as caught:  # noqa: BLE001 - raised where the call is awaited
            error = caught
        caller.call = None
        stays = release()
        with suppress(RuntimeError):  # the loop was closed in the meantime
            self._loop.call_soon_threadsafe(self._deliver, result, error)
        error = None  # the error refers to this frame
        return stays

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if self.outcome.done():
            return
        if error is None:
            self.outcome.set_result(result)
        else:
            self.outcome.set_exception(error)

    def abandon(self) -> None:
        """Release the thread from its current wait, and from any later one."""
        self._is_abandoned = True
        if self._waits_for is not None:
            self._waits_for.cancel()

    def begin_waiting(self, future: EngineFuture[Any]) -> None:
        """Let another thread work while the function waits for an event loop, whose work may need a thread."""
        self._waits_for = future
        if self._is_abandoned:
            future.cancel()
        _workers.leave()

    def end_waiting(self) -> None:
        """Count the thread as working again."""
        self._waits_for = None
        _workers.come_back()


class _Workers:
    """Threads that make calls, started on demand. Threads that wait for an event loop are not counted."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_WorkerCall] = SimpleQueue()
        self._lock = Lock()
        self._working = 0  # threads, including idle ones
        self._idle = 0  # idle threads, minus the queued calls

    def make(self, call: _WorkerCall) -> None:
        with self._lock:
            starts = self._idle <= 0 and self._working < _MOST_THREADS
            if starts:
                self._working += 1
            else:
                self._idle -= 1
        self._calls.put(call)
        if starts:
            self._start()

    def leave(self) -> None:
        with self._lock:
            starts = self._idle < 0
            self._idle += starts
            self._working -= not starts
        if starts:
            self._start()

    def come_back(self) -> None:
        with self._lock:
            self._working += 1

    def _start(self) -> None:
        _bridge.start_thread(self._main, name="agentbench-worker")

    def _main(self) -> None:
        caller = _bridge.caller
        while self._calls.get().run(caller, self._release):
            pass

    def _release(self) -> bool:
        """Make the thread idle, or end it if there are too many; return whether it stays."""
        with self._lock:
            stays = self._working <= _MOST_THREADS
            if stays:
                self._idle += 1
            else:
                self._working -= 1
        return stays


_workers = _Workers()


def _reset_after_fork() -> None:
    global _workers
    _workers = _Workers()  # the child does not inherit the threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
