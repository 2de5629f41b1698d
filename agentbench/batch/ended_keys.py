"""The rows of a batch as they end, for a reader on any event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class EndedKeys:
    """The keys of ended rows for one iteration, each once; filled from any thread."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._keys: deque[str] = deque()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._closed = False

    def put(self, key: str) -> None:
        """Add a key, unless it was added before."""
        if key not in self.seen:
            self.seen.add(key)
            self._keys.append(key)
            self._wake()

    def close(self) -> None:
        """Say that no further keys will come."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            with suppress(RuntimeError):
                waiter[0].call_soon_threadsafe(waiter[1].set)

    async def take(self) -> list[str] | None:
        """Return the keys that came since the last call; wait for one; None at the end."""
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop(), asyncio.Event()
        event = self._waiter[1]
        while not self._keys:
            event.clear()
            if self._keys:
                break
            if self._closed:
                return None
            await event.wait()
        keys = []
        while self._keys:
            keys.append(self._keys.popleft())
        return keys
