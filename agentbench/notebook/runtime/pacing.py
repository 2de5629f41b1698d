"""Changes gathered and sent at a bounded rate, so that a flood of events costs a page no more than a trickle."""

import asyncio
import threading
import time
from collections.abc import Callable

from agentbench._bridge import submit, threads_available

__all__ = ["TRAIT_LOCK", "Pacer"]

TRAIT_LOCK = threading.RLock()
"""Held while traits of widgets are written; engine and kernel both write them."""

_Later = Callable[[float, Callable[[], None]], None]


class Pacer:
    """Calls `send` soon after `touch`, but never more often than every `interval_s` seconds.

    The first touch after a pause sends at once, in the caller's thread; those that follow too early share one call
    later, on the engine thread. `send` sends all changes gathered by then.

    Args:
        send: Sends what has been gathered; must be quick.
        interval_s: Least time between two calls, in seconds.
        now: A clock, in seconds.
        later: Calls a function after some seconds; by default on the engine thread.
    """

    def __init__(
        self,
        send: Callable[[], None],
        *,
        interval_s: float = 0.05,
        now: Callable[[], float] = time.monotonic,
        later: _Later | None = None,
    ) -> None:
        self._send = send
        self._interval_s = interval_s
        self._now = now
        self._later = later or _on_engine_thread
        self._lock = threading.Lock()
        self._next_at = float("-inf")
        self._scheduled = False
        self._closed = False

    def touch(self) -> None:
        """Schedule `send`: something has changed."""
        with self._lock:
            if self._scheduled or self._closed:
                return
            wait_s = self._next_at - self._now()
            self._scheduled = wait_s > 0
        if wait_s > 0:
            self._later(wait_s, self.flush)
        else:
            self.flush()

    def flush(self) -> None:
        """Send now."""
        with self._lock:
            self._scheduled = False
            if self._closed:
                return
            self._next_at = self._now() + self._interval_s
        self._send()

    def close(self) -> None:
        """Send nothing any more."""
        with self._lock:
            self._closed = True


def _on_engine_thread(delay_s: float, call: Callable[[], None]) -> None:
    if not threads_available():
        call()
        return

    async def wait_and_call() -> None:
        await asyncio.sleep(delay_s)
        call()

    submit(wait_and_call())
