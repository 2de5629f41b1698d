"""A thread for work that blocks, so that the event loop does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from agentbench._bridge import pool_of_one, threads_available

T = TypeVar("T")


class Worker:
    """Runs functions one after another, in the order in which they arrive, on a separate thread if there are any."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        self._closed_pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._n_pending = 0

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Queue a function, for a thread that waits for its result. Without threads it is run here."""
        if not threads_available():
            outcome: Future[T] = Future()
            try:
                outcome.set_result(function(*args))
            except BaseException as error:  # noqa: BLE001 - raised where the result is read
                outcome.set_exception(error)
            return outcome
        with self._lock:
            if self._pool is None:
                wait = None if self._closed_pool is None else self._closed_pool.shutdown
                self._pool = pool_of_one(name=self._name, begin=wait)
            self._n_pending += 1
            return self._pool.submit(self._run, function, args)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Queue a function and await its result; cancelling the wait does not cancel the function."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(function, *args)))

    def run_here(self, function: Callable[[], object]) -> bool:
        """Run a function on the calling thread, unless others are queued before it."""
        with self._lock:  # nothing is queued meanwhile, so only this function uses the backend
            if self._n_pending:
                return False
            function()
        return True

    def close(self) -> None:
        """Wait for queued functions, and end the thread; a later function starts a new one."""
        with self._lock:
            pool, self._pool = self._pool, None
            self._closed_pool = pool or self._closed_pool
        if pool is not None:
            pool.shutdown()

    def _run(self, function: Callable[..., T], args: tuple[Any, ...]) -> T:
        try:
            return function(*args)
        finally:
            with self._lock:
                self._n_pending -= 1
