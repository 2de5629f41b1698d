"""The engine thread: runs asynchronous work for synchronous callers, in scripts and in notebook cells alike.

Each process has one daemon thread that owns one asyncio loop. Work submitted to it continues while a cell blocks. A
synchronous caller waits on a different thread than the loop's, so no loop is ever patched or nested.

In a browser (Pyodide) there are no threads: all work runs on the page's loop. A synchronous caller waits there by
suspending its stack, which newer browsers can do (JSPI), and has to use `await` in others.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import functools
import importlib
import inspect
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextvars import ContextVar
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

from agentbench._limits import require_seconds
from agentbench.exceptions import NestedLoopError, NoBlockingError

T = TypeVar("T")
P = ParamSpec("P")
SelfT = TypeVar("SelfT")
LoopName = Literal["asyncio", "uvloop"]

_SLICE_S = 0.1  # an unlimited wait cannot be interrupted on Windows
_CANCEL_GRACE_S = 0.5  # how long an interrupted caller waits while cancelled work cleans up
_CLOSE_LIMIT_S = 2.0
_CHECK_S = 0.5  # how often a wait for another loop is checked for a deadlock


class _BridgeCall(Protocol):
    """The call that a worker thread is making."""

    def begin_waiting(self, future: EngineFuture[Any]) -> None: ...
    def end_waiting(self) -> None: ...


class Caller(threading.local):
    """The calling thread.

    Attributes:
        futures: The work that it has submitted within `cancelled_with_caller`.
        call: The call that it is making, if it is a worker thread.
    """

    futures: weakref.WeakSet[EngineFuture[Any]] | None = None
    call: _BridgeCall | None = None


caller = Caller()
_open: set[EngineFuture[Any]] = set()
"""All unfinished work. It is kept here because loops have only weak references to their tasks."""
_blocked_loops: ContextVar[tuple[set[asyncio.AbstractEventLoop], ...]] = ContextVar("agentbench_blocked", default=())
"""The loops whose threads wait for the running work, or for work that waits for it."""


class EngineFuture(Future[T]):
    """The future of work on an event loop. It is cancelled like a task, and done when the work has really ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Awaitable[T]) -> None:
        source: object = work
        if not inspect.isawaitable(source):
            message = f"{work!r} cannot be awaited. Pass a coroutine, such as workflow.run('x')."
            raise TypeError(message)
        super().__init__()
        self.cancelling = False
        self.blocked_loops: set[asyncio.AbstractEventLoop] = set()
        self.is_started = False
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        """Hand the work to its loop, with a copy of the caller's context variables."""
        if caller.futures is not None:
            caller.futures.add(self)
        _open.add(self)
        context = contextvars.copy_context()
        context.run(_blocked_loops.set, (*filter(None, _blocked_loops.get()), self.blocked_loops))
        try:
            self._loop.call_soon_threadsafe(self._begin, context=context)
        except RuntimeError:  # the loop is closed
            _open.discard(self)
            _discard(self._work)
            raise
        self.is_started = True

    def cancel(self) -> bool:
        """Request cancellation. Return `True` if the work had not ended yet."""
        if self.done():
            return False
        self.cancelling = True
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime, which ends the work too
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
        return True

    def wait_until_done(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` seconds and return whether the work has ended. Errors of the work are not raised.

        Where the caller cannot wait (see `require_blocking`), the answer comes at once.
        """
        with contextlib.suppress(WaitTimeoutError, CancelledError, NoBlockingError):
            self.exception(timeout=timeout_s)
        return self.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the work and return its result."""
        return super().result(self._suspend(timeout))

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the work and return its error, if it raised one."""
        return super().exception(self._suspend(timeout))

    def _suspend(self, timeout_s: float | None) -> float | None:
        """Wait here if there are no threads, because the lock of a future would stop the page; return what is left."""
        if threads_available() or self.done():
            return timeout_s
        require_blocking(_name_of(self._work))
        ended = asyncio.Event()
        self.add_done_callback(lambda _: ended.set())
        futures, caller.futures = caller.futures, None  # other callers run meanwhile, on the same thread
        try:
            with contextlib.suppress(TimeoutError):
                _pyodide_ffi().run_sync(asyncio.wait_for(ended.wait(), timeout_s))
        finally:
            caller.futures = futures
        return 0

    def finish(self, task: asyncio.Task[T] | None = None) -> None:
        """Copy the outcome of the ended task; if there is none, mark the future as cancelled."""
        try:
            _open.remove(self)
        except KeyError:  # the work ended while its thread was being closed, which finished it first
            return
        if task is None or task.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())

    def _begin(self) -> None:
        work = self._work
        self._task = self._loop.create_task(work if isinstance(work, Coroutine) else _await(work))
        self._task.add_done_callback(self.finish)
        if self.cancelling:
            self._task.cancel()


async def _await(work: Awaitable[T]) -> T:
    return await work


def _discard(work: object) -> None:
    if isinstance(work, Coroutine):
        work.close()  # otherwise Python warns that it was never awaited


def start_thread(main: Callable[[], None], *, name: str) -> threading.Thread:
    """Start a daemon thread. Only this function and `pool_of_one` start threads in this library."""
    thread = threading.Thread(target=main, name=name, daemon=True)
    thread.start()
    return thread


def pool_of_one(*, name: str, begin: Callable[[], None] | None) -> ThreadPoolExecutor:
    """Return one thread that calls `begin` and then runs functions in their order, all of them even at exit."""
    return ThreadPoolExecutor(1, thread_name_prefix=name, initializer=begin)


class EngineThread:
    """A daemon thread that runs one asyncio loop. Other threads may use only the loop's thread-safe methods."""

    def __init__(self, *, loop: LoopName = "asyncio", name: str = "agentbench-engine") -> None:
        self.loop_name: LoopName = loop
        # The user chose uvloop by name; if the package is missing, its own ImportError explains enough.
        module: Any = importlib.import_module(loop)
        self.loop: asyncio.AbstractEventLoop = module.new_event_loop()
        self._closing = False
        self._closing_task: asyncio.Task[None] | None = None
        self._thread = start_thread(self._main, name=name)

    @property
    def alive(self) -> bool:
        """Whether the thread accepts work."""
        return self._thread.is_alive() and not self._closing

    def is_current(self) -> bool:
        """Return whether the caller is running on this thread."""
        return threading.get_ident() == self._thread.ident

    def close(self, *, timeout_s: float = _CLOSE_LIMIT_S) -> bool:
        """Cancel the running work, stop the loop, wait for the thread, and return whether it ended in `timeout_s`."""
        if not self._closing:
            self._closing = True
            with contextlib.suppress(RuntimeError):  # the loop has already ended
                self.loop.call_soon_threadsafe(self._begin_closing)
        if not self.is_current():
            self._thread.join(timeout_s)
        for future in list(_open):
            if future._loop is self.loop:  # noqa: SLF001 - a class of this module
                future.finish()
        return not self._thread.is_alive()

    def _begin_closing(self) -> None:
        self._closing_task = self.loop.create_task(self._wind_down())

    async def _wind_down(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        self.loop.stop()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while True:
                try:
                    self.loop.run_forever()
                except (KeyboardInterrupt, SystemExit):
                    continue  # raised by user code and kept in its future; other work still needs the loop
                break
        finally:
            self.loop.close()


class cancelled_with_caller:  # noqa: N801 - reads as a statement: with cancelled_with_caller():
    """A block that cancels the work submitted inside it when it is interrupted, at any instruction."""

    __slots__ = ("_futures", "_outer")

    def __enter__(self) -> None:
        self._outer = caller.futures
        # The set is weak, so that an interrupt on these lines leaves no references behind.
        self._futures: weakref.WeakSet[EngineFuture[Any]] = weakref.WeakSet()
        caller.futures = self._futures

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        caller.futures = self._outer
        if error is None or isinstance(error, Exception):
            return
        cancelled = [future for future in self._futures if not future.cancelling and future.cancel()]
        for future in cancelled:
            if future._task is not None:  # noqa: SLF001 - without a task, the work has not begun and never will
                future.wait_until_done(_CANCEL_GRACE_S)


# --- the engine thread of this process -------------------------------------------------------------------------------

_lock = threading.Lock()
_engine: EngineThread | None = None
_loop_name: LoopName = "asyncio"


def threads_available() -> bool:
    """Return whether this Python can start threads. In a browser (JupyterLite) it cannot."""
    return sys.platform != "emscripten"


def can_suspend() -> bool:
    """Return whether a caller may wait without threads: its stack is suspended while the page's loop goes on."""
    return not threads_available() and _pyodide_ffi() is not None and _pyodide_ffi().can_run_sync()


def _pyodide_ffi() -> Any:
    """Return the module of Pyodide that suspends stacks, or None under another Python."""
    return importlib.import_module("pyodide.ffi") if "pyodide" in sys.modules else None


def engine_thread() -> EngineThread:
    """Return the engine thread of this process. It is started on first use and again after a fork."""
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
    """Choose the event loop of the engine thread before its first use, because runs and clients are bound to it."""
    global _loop_name
    with _lock:
        if _engine is not None and _engine.alive and _engine.loop_name != name:
            message = (
                f"The engine thread already runs with {_engine.loop_name!r}, and open runs may be bound to that loop. "
                f"Choose {name!r} before the first run, in a fresh kernel."
            )
            raise RuntimeError(message)
        _loop_name = name


def on_engine_thread() -> bool:
    """Return whether the caller is running on the engine thread, where waiting for that thread would never end."""
    return _engine is not None and _engine.is_current()


def submit(coro: Awaitable[T], *, loop: asyncio.AbstractEventLoop | None = None) -> EngineFuture[T]:
    """Start an awaitable on the engine thread or on another `loop`. Safe to call from any thread.

    If this Python has no threads, the work runs on the running loop.

    Example:
        from agentbench.notebook import submit, wait

        future = submit(workflow.run("owls"))
        result = wait(future)
    """
    future = EngineFuture(loop or home_loop(), coro)
    future.start()
    return future


def run_sync(coro: Awaitable[T], *, timeout: float | None = None) -> T:
    """Run asynchronous work on the engine thread and wait for its result.

    Works in scripts and in notebook cells alike, because the work does not run on the caller's loop. An interrupt
    (Ctrl-C, the stop button) cancels the work.

    Args:
        coro: A coroutine or another awaitable.
        timeout: Maximum wait in seconds; `None` for no limit.

    Returns:
        The result of the work.

    Raises:
        NestedLoopError: The caller runs on the engine thread itself, where the wait could never end; use `await`.
        NoBlockingError: In a browser that cannot suspend calls; use `await`.
        TimeoutError: The work took longer than `timeout` seconds; it is cancelled.
        Exception: Any error that the work raises.

    Example:
        from agentbench import Agent, EchoChatClient, run_sync

        agent = Agent(EchoChatClient(), name="echo")
        print(run_sync(agent.run("Hello")).text)
    """
    __tracebackhide__ = True  # tells IPython to hide this frame
    name = _name_of(coro)
    try:
        require_seconds("timeout", timeout, none="no limit")
        require_blocking(name)
    except Exception:
        _discard(coro)
        raise
    with cancelled_with_caller():
        return wait_sync(EngineFuture(home_loop(), coro), timeout=timeout, name=name)


def blocking(
    method: Callable[Concatenate[SelfT, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SelfT, P], T]:
    """Return the synchronous counterpart of an async method, to be named without the `a`."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: SelfT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        work: Coroutine[Any, Any, T] = getattr(self, name)(*args, **kwargs)  # a subclass may have its own
        return run_sync(work)

    call.__name__ = name.removeprefix("a")
    call.__qualname__ = method.__qualname__.removesuffix(name) + call.__name__
    return call


def iterate_sync(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """Yield the items of an async generator to synchronous code; closing it closes the async one."""
    end: Any = object()
    try:
        while (item := run_sync(anext(items, end))) is not end:
            yield item
    finally:
        run_sync(items.aclose())


def _name_of(work: object) -> str:
    return getattr(work, "__qualname__", type(work).__name__)


def require_blocking(call: str) -> None:
    """Raise `NestedLoopError` or `NoBlockingError` if a wait could never end; `call` is the call to await instead."""
    if on_engine_thread():
        raise NestedLoopError(call)
    if not (threads_available() or can_suspend()):
        raise NoBlockingError(call)


def wait_sync(future: EngineFuture[T], *, timeout: float | None = None, name: str = "The work") -> T:
    """Wait for work and return its result; starts the work if it has not started yet.

    An interrupt or a timeout of `timeout` seconds cancels the work. Errors refer to the work as `name`.
    """
    __tracebackhide__ = True
    end = math.inf if timeout is None else time.monotonic() + timeout
    loop = running_loop() if threads_available() else None  # a suspended caller does not block its loop
    blocked = set() if loop is None else {loop}
    future.blocked_loops.update(blocked)
    if caller.call is not None:
        caller.call.begin_waiting(future)
    try:
        if not future.is_started:
            future.start()
        while not future.done():
            left = min(_SLICE_S, end - time.monotonic())
            if left <= 0:
                message = f"{name} took longer than {timeout} s and was cancelled. Allow more time, or use submit()."
                raise TimeoutError(message)
            future.wait_until_done(left)
    except BaseException as error:
        future.cancel()
        if future.is_started:
            future.wait_until_done(_CANCEL_GRACE_S)
        if isinstance(error, KeyboardInterrupt):
            error.__traceback__ = None
        raise error
    finally:
        future.blocked_loops.difference_update(blocked)
        if caller.call is not None:
            caller.call.end_waiting()
    return future.result()


# --- objects that are bound to a loop --------------------------------------------------------------------------------


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the running loop, if there is one."""
    return asyncio._get_running_loop()  # noqa: SLF001 - documented; it does not raise


def home_loop() -> asyncio.AbstractEventLoop:
    """Return the loop for objects that are bound to a loop: the engine's, or the running loop if there are no threads.

    Raises:
        RuntimeError: Python has no threads, and no loop is running.
    """
    return engine_thread().loop if threads_available() else asyncio.get_running_loop()


async def await_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], *, name: str | None = None) -> T:
    """Await work on a loop, from any loop. A cancelled caller waits until the work has ended.

    Raises:
        NestedLoopError: The loop is not running, or its thread is waiting for the caller.
        Exception: Any error that the work raises.
    """
    if loop is asyncio.get_running_loop():
        return await work
    name = name or _name_of(work)
    hindrance = _hindrance(loop)
    if hindrance is not None:
        work.close()
        raise NestedLoopError(name, hindrance)
    future = submit(work, loop=loop)
    outcome = asyncio.wrap_future(future)
    try:
        await wait_for_loop(loop, outcome, name)
    except NestedLoopError:
        future.cancel()
        raise
    except asyncio.CancelledError:
        future.cancel()
        while not outcome.done():
            with contextlib.suppress(asyncio.CancelledError):
                await wait_for_loop(loop, outcome, name)
        raise
    return outcome.result()


async def wait_for_loop(loop: asyncio.AbstractEventLoop, outcome: asyncio.Future[Any], name: str) -> None:
    """Wait for the outcome of work on another loop. Cancelling the caller does not cancel the work.

    Raises:
        NestedLoopError: The loop is not running, or its thread is waiting for the caller; `name` is the call to await.
    """
    while not outcome.done():
        await asyncio.wait((outcome,), timeout=_CHECK_S)
        if not outcome.done() and (hindrance := _hindrance(loop)):
            raise NestedLoopError(name, hindrance)


def _hindrance(loop: asyncio.AbstractEventLoop) -> str | None:
    """Return the reason why work on a loop cannot make progress now, or None."""
    if any(loop in loops for loops in _blocked_loops.get()):
        return "it needs an event loop whose thread waits for this call"
    return None if loop.is_running() else "it needs an event loop that is not running"


def call_later(delay_s: float, function: Callable[[], object]) -> None:
    """Call a quick function on the engine's loop (see `home_loop`) after a delay. Safe from any thread."""
    loop = home_loop()
    loop.call_soon_threadsafe(loop.call_later, delay_s, function)


def call_on(loop: asyncio.AbstractEventLoop | None, function: Callable[[], object]) -> None:
    """Call a function on a loop; call it immediately if that loop is the current one, closed, or `None`."""
    if loop is None or loop.is_closed() or loop is running_loop():
        function()
    else:
        loop.call_soon_threadsafe(function)


@atexit.register
def _close_at_exit() -> None:
    if _engine is not None:
        _engine.close(timeout_s=_CLOSE_LIMIT_S)


def _reset_after_fork() -> None:
    # The child inherits the object but not its thread, and the lock may be held by a thread that no longer exists.
    global _engine, _lock
    _engine = None
    _lock = threading.Lock()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
