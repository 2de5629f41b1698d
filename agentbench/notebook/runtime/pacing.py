"""Collects changes and sends them at a limited rate, so that many events do not overload a page."""

import threading
import time
from collections.abc import Callable

from agentbench._bridge import call_later

TRAIT_LOCK = threading.RLock()
"""Held while traits of widgets are written, because engine and kernel both write them."""


class Pacer:
    """Calls `send` after `touch`, but at most once per `interval_s` seconds.

    The first touch after a pause sends immediately, in the caller's thread; later touches share one call by `later`, by
    default on the engine thread. `send` must be fast, and sends all changes collected so far.
    """

    def __init__(
        self,
        send: Callable[[], None],
        *,
        interval_s: float = 0.05,
        now: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
    ) -> None:
        self._send = send
        self._interval_s = interval_s
        self._now = now
        self._later = later or call_later
        self._lock = threading.Lock()
        self._next_at = float("-inf")
        self._due: float | None = None
        self._closed = False

    def touch(self, delay_s: float = 0.0) -> None:
        """Schedule `send` after a change. `delay_s` delays it, if more changes are expected."""
        with self._lock:
            now = self._now()
            due = max(self._next_at, now + delay_s)
            if self._closed or (self._due is not None and self._due <= due):
                return
            self._due = due if due > now else None
        if due > now:
            self._later(due - now, lambda: self.flush() if self._due == due else None)  # otherwise already sent
        else:
            self.flush()

    def flush(self) -> None:
        """Send now."""
        with self._lock:
            self._due = None
            if self._closed:
                return
            self._next_at = self._now() + self._interval_s
        self._send()

    def close(self) -> None:
        """Stop sending."""
        with self._lock:
            self._closed = True
