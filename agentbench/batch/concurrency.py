"""How many runs may be in progress at once in this process: a fixed number, or as many as the services can take."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from agentbench._call_limiter import AdaptiveLimit, CallLimiter


class RunSlots:
    """The places of runs in progress.

    A fixed number; or with None a number that follows the services: twice what their models can take, so that none of
    them waits while runs do something else. As long as no model was called it doubles with each round of ended runs.

    Args:
        limiter: The limiter of the model calls of these runs.
        fixed: The number of places.
        most: The most places if the number is not fixed.
    """

    def __init__(self, limiter: CallLimiter, fixed: int | None, *, most: int = 100) -> None:
        self._limiter, self._most = limiter, most
        self.fixed = fixed
        self._runs = AdaptiveLimit(most=most)
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many runs may be in progress now."""
        if self.fixed is not None:
            return self.fixed
        services = [service.limit for service in list(self._limiter.services.values()) if service.calls]
        return min(2 * max(services), self._most) if services else self._runs.limit

    def begin(self) -> int:
        """Take a place, whether or not there is a free one; return what `end` needs."""
        self._taken += 1
        return self._runs.begin(self._taken)

    def end(self, begun: int) -> None:
        """Free a place after a run."""
        self._taken -= 1
        self._runs.succeed(begun)
        self._admit()

    async def take(self) -> int:
        """Wait for a free place and take it; return what `end` needs."""
        if self._taken >= self.limit:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                with suppress(ValueError):
                    self._waiting.remove(place)
                self._admit()
                raise
        return self.begin()

    def _admit(self) -> None:
        free = self.limit - self._taken
        while self._waiting and free > 0:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1
