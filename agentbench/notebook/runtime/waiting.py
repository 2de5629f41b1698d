"""Waiting in a notebook: awaiting engine work in a cell, and nested event loops.

`run_sync` is that of the bridge, plus `nested=True`, the only place in this project that loads a nest package.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Awaitable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from agentbench import _bridge
from agentbench._bridge import submit
from agentbench.exceptions import NestedLoopError

__all__ = ["NestState", "nest_state", "run_sync", "submit", "wait"]

T = TypeVar("T")

_HEARTBEAT_S = 0.2
_CANCEL_GRACE_S = 0.5
_NEST_COST = (
    "{package} replaces asyncio's C tasks and futures with Python ones in the whole process, until it ends: measured "
    "1.1 to 1.7 times slower. The inner call must end before the outer one continues. Plain run_sync() needs neither."
)


async def wait(future: Future[T]) -> T:
    """Await engine work in a cell, so that the stop button can interrupt it.

    Args:
        future: The future of `submit`, or any other `concurrent.futures.Future`.

    Returns:
        The result of the work.

    Raises:
        asyncio.CancelledError: If the cell was interrupted; the work is cancelled first.
        Exception: Any error of the work.

    Example:
        result = await wait(submit(workflow.run("hello")))
    """
    heart = asyncio.ensure_future(_beat())
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.cancel():  # the cell was interrupted, not the work: let it clean up
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), _CANCEL_GRACE_S)
        raise
    finally:
        heart.cancel()


async def _beat() -> None:
    while True:  # noqa: ASYNC110 - an idle loop does not notice the stop button: the tick itself is the purpose
        await asyncio.sleep(_HEARTBEAT_S)


@dataclass(frozen=True)
class NestState:
    """The nest packages that this process has loaded (ipykernel loads one), and the one applied by `run_sync`."""

    loaded: tuple[str, ...]
    applied: str | None
    task_is_c: bool


_PACKAGES = ("nest_asyncio2", "nest_asyncio")
_applied: str | None = None


def nest_state() -> NestState:
    """Return the nest packages that are loaded and applied in this process. Imports nothing.

    Example:
        assert nest_state().applied is None
    """
    loaded = tuple(name for name in _PACKAGES if name in sys.modules)
    return NestState(loaded, applied=_applied, task_is_c=asyncio.Task.__module__ == "_asyncio")


def run_sync(coro: Awaitable[T], *, timeout: float | None = None, nested: bool = False) -> T:
    """Run asynchronous work from synchronous code and wait for its result.

    Args:
        coro: A coroutine, or anything else that can be awaited.
        timeout: Maximum wait in seconds; `None` for no limit.
        nested: Run on the loop that already runs in this thread, for objects bound to that loop. Loads a nest
            package, which slows asyncio in the whole process, and warns once. `submit(work, loop=...)` together
            with `await wait(...)` is better if the caller can await.

    Raises:
        NestedLoopError: On the engine thread; or with `nested=True` if the running loop cannot be nested.
        NoBlockingError: If this Python has no threads; use `await` instead.
        TimeoutError: After `timeout` seconds; the work is cancelled.
        Exception: Any error of the work.

    Example:
        result = run_sync(workflow.run("hello"))
    """
    try:
        loop = asyncio.get_running_loop() if nested else None
    except RuntimeError:
        loop = None  # nothing to nest into
    if loop is None:
        return _bridge.run_sync(coro, timeout=timeout)
    _nest(coro, loop)
    try:
        return loop.run_until_complete(asyncio.wait_for(coro, timeout))
    except TimeoutError as error:
        msg = f"The work did not end within {timeout} s and was cancelled. Pass a larger timeout=."
        raise TimeoutError(msg) from error


def _nest(awaitable: Awaitable[object], loop: asyncio.AbstractEventLoop) -> None:
    """Patch the running loop so that it can be nested; otherwise close the awaitable and raise."""
    global _applied
    package = next((known for known in _PACKAGES if importlib.util.find_spec(known) is not None), None)
    if not isinstance(loop, asyncio.BaseEventLoop):
        problem = f"the running loop is {type(loop).__module__}.{type(loop).__name__}, which cannot be patched"
    elif package is None:
        problem = "neither nest-asyncio2 nor nest-asyncio is installed"
    elif package == "nest_asyncio" and sys.version_info >= (3, 14):
        problem = "nest-asyncio does not work on Python 3.14 and newer"
    else:
        if _applied is None:
            _applied = package
            warnings.warn(_NEST_COST.format(package=package), RuntimeWarning, stacklevel=3)
        importlib.import_module(package).apply(loop)
        return
    if isinstance(awaitable, Coroutine):
        awaitable.close()
    raise NestedLoopError(getattr(awaitable, "__qualname__", type(awaitable).__name__), problem)
