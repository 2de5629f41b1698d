"""A thread for work that blocks, so that the event loop does not."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

_Job: TypeAlias = "tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any, BaseException | None], None]] | None"


class Worker:
    """Runs functions one after another, in the order in which they were handed over, on a thread of its own.

    The thread begins with the first function and ends with the worker. It may be used from any number of threads and
    event loops, but not in a process that was forked off, which has no such thread. It does not keep a program from
    ending: what it was handed and nobody waited for may be broken off then.

    `concurrent.futures` would do the same; it takes twice as long to hand a function over, which shows where each
    superstep does it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._at_work = threading.Lock()
        # How many jobs are not done; in a list, for the thread to count without keeping the worker alive.
        self._open = [0]

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Hand a function over, to be waited for by a thread."""
        future: Future[T] = Future()

        def tell(result: Any, error: BaseException | None) -> None:
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self._put((function, args, tell))
        return future

    def hand_over(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Hand a function over, to be awaited on the running loop. Who stops waiting does not stop the function."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()

        def tell(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, waiter, result, error)

        self._put((function, args, tell))
        return waiter

    def run_here(self, function: Callable[..., object], **how: Any) -> bool:
        """Run a function on the calling thread, unless it would overtake what was handed over.

        Returns:
            Whether it ran; what it raises is raised.
        """
        with self._lock:  # whoever hands something over meanwhile waits
            if self._open[0]:
                return False
            with self._at_work:
                function(**how)
        return True

    def hold(self, patience_s: float) -> bool:
        """Wait until nothing runs, let nothing begin until `go_on`, and tell whether that came about in time."""
        return self._at_work.acquire(timeout=patience_s)

    def go_on(self) -> None:
        """Let functions begin again after `hold`."""
        self._at_work.release()

    def close(self) -> None:
        """Wait for what was handed over already, and end the thread; a later function begins a new one."""
        with self._lock:
            jobs, thread = self._jobs, self._thread
            self._jobs = None
        if jobs is not None and thread is not None:
            jobs.put(None)
            if thread is not threading.current_thread():
                thread.join()

    def _put(self, job: _Job) -> None:
        with self._lock:
            if self._jobs is None:
                self._jobs = SimpleQueue()
                work = (self._jobs, self._thread, self._open, self._lock, self._at_work)
                self._thread = threading.Thread(target=_work, args=work, name=self._name, daemon=True)
                self._thread.start()
                weakref.finalize(self, self._jobs.put, None)
            self._open[0] += 1
            self._jobs.put(job)


def _work(
    jobs: SimpleQueue[_Job],
    former: threading.Thread | None,
    open_jobs: list[int],
    lock: threading.Lock,
    at_work: threading.Lock,
) -> None:
    if former is not None:
        former.join()  # the worker was closed, and what it was handed before may not be done
    del former
    while (job := jobs.get()) is not None:
        function, args, tell = job
        result, error = None, None
        try:
            with at_work:
                result = function(*args)
        except BaseException as raised:  # noqa: BLE001 - whoever waits for it gets it
            error = raised
        with lock:
            open_jobs[0] -= 1
        tell(result, error)
        # Nothing of a finished job is held while the thread waits for the next one.
        del job, function, args, tell, result, error


def _settle(waiter: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(result)
    else:
        waiter.set_exception(error)
