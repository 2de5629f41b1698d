"""How many runs may be in progress at once in this process: a fixed number, or as many as the services can take."""

from __future__ import annotations

import asyncio
from collections import deque

from agentbench._call_limiter import AdaptiveLimit, CallLimiter


class Gate:
    """Places that are taken in the order of asking. The number can change."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many places there are now."""
        return self._limit

    def set_limit(self, limit: int) -> None:
        """Change the number of places."""
        self._limit = limit
        self._admit()

    async def take(self) -> None:
        """Wait for a free place and take it."""
        if self.taken < self.limit and not self._waiting:
            self.taken += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.free()
            raise

    def free(self) -> None:
        """Free a place."""
        self.taken -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.taken < self.limit:
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)


class RunSlots(Gate):
    """The places of runs in progress.

    A fixed number; or with None a number that follows the services: twice what their models can take, so that none of
    them waits while runs do something else. As long as no model was called it doubles with each round of ended runs.

    Args:
        limiter: The limiter of the model calls of these runs.
        fixed: The number of places.
        most: The most places if the number is not fixed.
    """

    def __init__(self, limiter: CallLimiter, fixed: int | None, *, most: int = 100) -> None:
        super().__init__(0)
        self._limiter, self._most = limiter, most
        self.fixed = fixed
        self._runs = AdaptiveLimit(most=most)

    @property
    def limit(self) -> int:
        """How many runs may be in progress now."""
        if self.fixed is not None:
            return self.fixed
        services = [service.limit for service in list(self._limiter.services.values()) if service.calls]
        return min(2 * max(services), self._most) if services else self._runs.limit

    async def begin(self) -> int:
        """Wait for a free place and take it; return what `end` needs."""
        await self.take()
        return self._runs.begin(self.taken)

    def end(self, begun: int) -> None:
        """Free a place after a run."""
        self._runs.succeed(begun)
        self.free()
