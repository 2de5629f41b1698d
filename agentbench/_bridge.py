"""The engine thread: asynchronous work for synchronous callers, in scripts and in notebook cells alike.

One daemon thread per process owns one asyncio loop. Work given to it goes on while a cell blocks, and a sync caller
waits on a thread that is not the loop's, so no loop is ever patched or nested.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import importlib
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as WaitTimeoutError
from typing import Any, Literal, TypeVar

from agentbench.exceptions import NestedLoopError, NoBlockingError

__all__ = [
    "EngineFuture",
    "EngineThread",
    "LoopName",
    "cancelled_with_caller",
    "choose_engine_loop",
    "current_engine",
    "engine_thread",
    "on_engine_thread",
    "require_blocking",
    "run_sync",
    "submit",
    "threads_available",
    "wait_sync",
]

T = TypeVar("T")
LoopName = Literal["asyncio", "uvloop"]

_SLICE_S = 0.1  # a wait without end cannot be interrupted on Windows
_CANCEL_GRACE_S = 0.5  # how long an interrupted caller lets the cancelled work tidy up
_CLOSE_LIMIT_S = 2.0


class EngineFuture(Future[T]):
    """The future of work on the engine thread.

    Unlike its base class it is cancelled like a task: `cancel()` only asks, and the future is done when the work has
    really ended, clean-up included. So nothing of a cancelled run goes on behind the caller's back.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cancel_lock = threading.Lock()
        self._cancel_task: Callable[[], object] | None = None
        self._cancel_wanted = False

    def cancel(self) -> bool:
        """Ask the work to stop; `True` if it had not ended yet."""
        with self._cancel_lock:
            if self.done():
                return False
            self._cancel_wanted = True
            cancel_task = self._cancel_task
        if cancel_task is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile, which ends the work too
                cancel_task()
        return True

    @property
    def cancelling(self) -> bool:
        """Whether it was asked to stop."""
        return self._cancel_wanted

    @property
    def begun(self) -> bool:
        """Whether the loop has taken the work up; what is cancelled before never runs."""
        return self._cancel_task is not None

    def settled(self, timeout_s: float) -> bool:
        """Wait until the work has ended, at most `timeout_s` seconds; `True` if it has. Raises none of its errors."""
        with contextlib.suppress(WaitTimeoutError, CancelledError):
            self.exception(timeout=timeout_s)
        return self.done()

    def bind(self, cancel_task: Callable[[], object]) -> bool:
        """Tell how the work is cancelled; `False` if that was wanted before it began."""
        with self._cancel_lock:
            self._cancel_task = cancel_task
            return not self._cancel_wanted

    def abandon(self) -> None:
        """Mark the future as cancelled: its loop is gone."""
        with self._cancel_lock:
            if not self.done():
                super().cancel()
                self.set_running_or_notify_cancel()

    def take(self, task: asyncio.Task[T]) -> None:
        """Copy the outcome of the ended task."""
        with self._cancel_lock:
            self._cancel_task = None
            if task.cancelled():
                super().cancel()
                self.set_running_or_notify_cancel()
                return
            self.set_running_or_notify_cancel()
        error = task.exception()
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())


class EngineThread:
    """A daemon thread that runs one asyncio loop until it is closed.

    Args:
        loop: `"asyncio"`, or `"uvloop"` if that package is installed.
        name: Name of the thread.
    """

    def __init__(self, *, loop: LoopName = "asyncio", name: str = "agentbench-engine") -> None:
        self.loop_name: LoopName = loop
        self._loop = _new_loop(loop)
        self._closing = False
        self._closing_task: asyncio.Task[None] | None = None
        self._open: set[EngineFuture[Any]] = set()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        state = "running" if self.alive else "closed"
        return f"EngineThread({self._thread.name!r}, loop={self.loop_name!r}, {state})"

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, for objects that want to be bound to it. Touch it from other threads only in thread-safe ways."""
        return self._loop

    @property
    def alive(self) -> bool:
        """Whether work can be given to it."""
        return self._thread.is_alive() and not self._closing

    def is_current(self) -> bool:
        """Whether the caller runs on this thread."""
        return threading.get_ident() == self._thread.ident

    def submit(self, awaitable: Awaitable[T]) -> EngineFuture[T]:
        """Start work on the loop, with a copy of the caller's context variables. Safe from any thread."""
        return _start_on(self._loop, awaitable, self._open)

    def close(self, *, timeout_s: float = _CLOSE_LIMIT_S) -> bool:
        """Cancel what is running, stop the loop and wait for the thread; `True` if it ended within `timeout_s`.

        Work that does not heed its cancellation is left behind: the thread is a daemon and keeps no process alive.
        """
        if not self._closing:
            self._closing = True
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._begin_closing)
        if not self.is_current():
            self._thread.join(timeout_s)
        for future in list(self._open):
            future.abandon()
        return not self._thread.is_alive()

    def _begin_closing(self) -> None:
        self._closing_task = self._loop.create_task(self._wind_down())

    async def _wind_down(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            while True:
                try:
                    self._loop.run_forever()
                except (KeyboardInterrupt, SystemExit):
                    continue  # raised by user code; its future holds it, and the others still need the loop
                break
        finally:
            self._loop.close()


def _new_loop(name: LoopName) -> asyncio.AbstractEventLoop:
    if name == "uvloop":
        # An optional package that the user chose by name; without it, its own ImportError says enough.
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
        return loop
    return asyncio.new_event_loop()


def _name_of(awaitable: object) -> str:
    return getattr(awaitable, "__qualname__", type(awaitable).__name__)


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _as_coroutine(awaitable: Awaitable[T]) -> Coroutine[Any, Any, T]:
    if inspect.iscoroutine(awaitable):
        return awaitable
    return _awaited(awaitable)


def _check_awaitable(value: object) -> None:
    if not inspect.isawaitable(value):
        msg = f"{value!r} cannot be awaited. Pass a coroutine, such as workflow.run('x')."
        raise TypeError(msg)


def _discard(awaitable: Awaitable[Any]) -> None:
    """Close what will not run, so that nobody is warned of a coroutine that was never awaited."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


class _Caller(threading.local):
    """What this thread has handed over under `cancelled_with_caller`, `None` outside of it."""

    futures: weakref.WeakSet[EngineFuture[Any]] | None = None


_caller = _Caller()


class cancelled_with_caller:  # noqa: N801 - reads as a statement: with cancelled_with_caller():
    """A block that is one with the work submitted in it: an interrupt that ends the block cancels the work.

    An interrupt may come at any instruction, also between handing work over and beginning to wait for it.
    """

    __slots__ = ("_futures", "_outer")

    def __enter__(self) -> None:
        self._outer = _caller.futures
        # Weak, so that an interrupt within these very lines leaves nothing behind.
        self._futures: weakref.WeakSet[EngineFuture[Any]] = weakref.WeakSet()
        _caller.futures = self._futures

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _caller.futures = self._outer
        if error is None or isinstance(error, Exception):
            return
        begun = [future for future in self._futures if not future.cancelling and future.cancel() and future.begun]
        for future in begun:
            future.settled(_CANCEL_GRACE_S)


def _start_on(
    loop: asyncio.AbstractEventLoop, awaitable: Awaitable[T], keep: set[EngineFuture[Any]]
) -> EngineFuture[T]:
    _check_awaitable(awaitable)
    future: EngineFuture[T] = EngineFuture()
    if _caller.futures is not None:
        _caller.futures.add(future)

    def begin() -> None:
        task = loop.create_task(_as_coroutine(awaitable))
        task.add_done_callback(ended)
        if not future.bind(lambda: loop.call_soon_threadsafe(task.cancel)):
            task.cancel()

    def ended(task: asyncio.Task[T]) -> None:
        keep.discard(future)
        if not future.done():
            future.take(task)

    keep.add(future)  # the loop itself holds its tasks weakly; the future reaches the task through `bind`
    try:
        loop.call_soon_threadsafe(begin, context=contextvars.copy_context())
    except RuntimeError:
        keep.discard(future)
        _discard(awaitable)
        raise
    return future


# --- the one of this process -----------------------------------------------------------------------------------------

_lock = threading.Lock()
_engine: EngineThread | None = None
_loop_name: LoopName = "asyncio"
_foreign: set[EngineFuture[Any]] = set()


def threads_available() -> bool:
    """Whether this Python can start threads; it cannot in a browser (JupyterLite)."""
    return sys.platform != "emscripten"


def current_engine() -> EngineThread | None:
    """The engine thread if it was started, else `None`. Never starts one."""
    return _engine


def engine_thread() -> EngineThread:
    """The engine thread of this process, started on first use and anew after a fork.

    Raises:
        NoBlockingError: If this Python has no threads.
    """
    global _engine
    engine = _engine
    if engine is not None and engine.alive:
        return engine
    if not threads_available():
        raise NoBlockingError(engine_thread.__name__)
    with _lock:
        if _engine is None or not _engine.alive:
            _engine = EngineThread(loop=_loop_name)
        return _engine


def choose_engine_loop(name: LoopName) -> None:
    """Choose the loop of the engine thread, before its first use.

    Raises:
        ValueError: For an unknown name.
        RuntimeError: If the engine thread runs already with another loop: open runs and clients are bound to it.
    """
    global _loop_name
    if name not in ("asyncio", "uvloop"):
        msg = f"Unknown loop {name!r}. Choose 'asyncio' or 'uvloop'."
        raise ValueError(msg)
    with _lock:
        if _engine is not None and _engine.alive and _engine.loop_name != name:
            msg = (
                f"The engine thread already runs with {_engine.loop_name!r} and open runs may be bound to that loop. "
                f"Choose {name!r} before the first run, in a fresh kernel."
            )
            raise RuntimeError(msg)
        _loop_name = name


def on_engine_thread() -> bool:
    """Whether the caller runs on the engine thread, where waiting for it would never end."""
    engine = _engine
    return engine is not None and engine.is_current()


def submit(coro: Awaitable[T], *, loop: asyncio.AbstractEventLoop | None = None) -> EngineFuture[T]:
    """Start work on the engine thread and return at once. Safe from any thread.

    Args:
        coro: A coroutine, or anything else that can be awaited. It sees a copy of the caller's context variables.
        loop: Another loop to run it on, for objects that are bound to that one; the engine's if `None`.

    Returns:
        A future for any thread. Its `cancel()` cancels the work.

    Raises:
        NoBlockingError: If this Python has no threads and `loop` was not given.
    """
    if loop is not None:
        return _start_on(loop, coro, _foreign)
    if not threads_available():
        _discard(coro)
        raise NoBlockingError(_name_of(coro))
    return engine_thread().submit(coro)


def run_sync(coro: Awaitable[T], *, timeout: float | None = None) -> T:
    """Run asynchronous work on the engine thread and wait for its result.

    Works in scripts and in notebook cells alike: the work is not on the caller's loop. An interrupt (Ctrl-C, the stop
    button) cancels the work.

    Args:
        coro: A coroutine, or anything else that can be awaited.
        timeout: Longest wait in seconds; `None` for no limit.

    Raises:
        NestedLoopError: On the engine thread itself, where the wait could never end; use `await` there.
        NoBlockingError: If this Python has no threads, as in JupyterLite; use `await` there.
        TimeoutError: After `timeout` seconds; the work is cancelled.
        Exception: Whatever the work raises.
    """
    name = _name_of(coro)
    try:
        require_blocking(name)
    except (NestedLoopError, NoBlockingError):
        _discard(coro)
        raise
    with cancelled_with_caller():
        return wait_sync(submit(coro), timeout=timeout, name=name)


def require_blocking(call: str) -> None:
    """Refuse to wait where waiting could never end.

    Args:
        call: The awaitable form of what is to be waited for, for the message.

    Raises:
        NestedLoopError: On the engine thread.
        NoBlockingError: If this Python has no threads.
    """
    if on_engine_thread():
        raise NestedLoopError(call)
    if not threads_available():
        raise NoBlockingError(call)


def wait_sync(future: EngineFuture[T], *, timeout: float | None = None, name: str = "The work") -> T:
    """Wait for work that was submitted. An interrupt (Ctrl-C, the stop button) cancels it.

    Args:
        future: What `submit` returned.
        timeout: Longest wait in seconds; `None` for no limit.
        name: What is waited for, for the message.

    Raises:
        TimeoutError: After `timeout` seconds; the work is cancelled.
        Exception: Whatever the work raises.
    """
    try:
        in_time = _waited(future, timeout)
    except BaseException:
        future.cancel()
        future.settled(_CANCEL_GRACE_S)
        raise
    if not in_time:
        future.cancel()
        future.settled(_CANCEL_GRACE_S)
        msg = f"{name} did not end within {timeout} s and was cancelled. Give it more time, or use submit()."
        raise TimeoutError(msg)
    return future.result()


def _waited(future: EngineFuture[Any], timeout: float | None) -> bool:
    """Wait in slices; `False` if the time is up first."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while not future.done():
        left = _SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())
        if left <= 0:
            return False
        future.settled(left)
    return True


def _close_at_exit() -> None:
    engine = _engine
    if engine is not None:
        engine.close(timeout_s=_CLOSE_LIMIT_S)


def _forget_after_fork() -> None:
    # The child inherits the object but not its thread; the lock may have been held by a thread that is not there.
    global _engine, _lock
    _engine = None
    _lock = threading.Lock()
    _foreign.clear()


atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
