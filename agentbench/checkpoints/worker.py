"""A thread for work that blocks, so that the event loop does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs functions one after another, in the order in which they were handed over, on a thread of its own.

    The thread begins with the first function. It may be used from any number of threads and event loops; in a process
    that was forked off it begins anew.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pid = 0
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Hand a function over."""
        if self._pool is None or self._pid != os.getpid():
            self._begin()
        try:
            return self._pool.submit(function, *args)  # type: ignore[union-attr]  # just begun
        except RuntimeError:  # closed meanwhile
            self._begin()
            return self._pool.submit(function, *args)  # type: ignore[union-attr]

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Hand a function over and wait for what it returns. Who stops waiting does not stop the function."""
        return await self.wait(self.submit(function, *args))

    async def wait(self, future: Future[T]) -> T:
        """Wait for what was handed over."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()

        def tell(_: Future[T]) -> None:
            with contextlib.suppress(RuntimeError):  # nobody waits any more: the loop is closed
                loop.call_soon_threadsafe(_settle, waiter, future)

        future.add_done_callback(tell)
        return await waiter

    def close(self) -> None:
        """Let the thread end with what it was handed already; a later function begins a new one."""
        with self._lock:
            pool, self._pool = self._pool, None
            if pool is not None and self._pid == os.getpid():
                pool.shutdown()

    def _begin(self) -> None:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)
                self._pid = os.getpid()


def _settle(waiter: asyncio.Future[T], future: Future[T]) -> None:
    if waiter.done():
        return
    error = future.exception()
    if error is None:
        waiter.set_result(future.result())
    else:
        waiter.set_exception(error)
