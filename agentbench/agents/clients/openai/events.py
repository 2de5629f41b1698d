"""Read the events of an SDK stream with a timeout for each."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any


class Events:
    """Yields the events of a stream; unlike in the HTTP library, comments do not restart the timeout."""

    def __init__(self, stream: Any, timeout_s: Any) -> None:
        self._stream = stream
        self._pull = stream.__aiter__().__anext__
        self._timeout_s: float | None = timeout_s if isinstance(timeout_s, (int, float)) else None
        self._waits_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_late = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Any:
        if self._timeout_s is None:
            return await self._pull()
        loop = asyncio.get_running_loop()
        self._waits_since = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._timeout_s, self._check, self._timeout_s)
        try:
            return await self._pull()
        except Exception as error:
            if self._is_late:
                message = f"no event arrived within {self._timeout_s:g} seconds"
                raise TimeoutError(message) from error
            raise
        finally:
            self._waits_since = None

    def _check(self, timeout_s: float) -> None:
        """Close the stream if its reader has waited too long; otherwise check again later."""
        loop = asyncio.get_running_loop()
        waited_s = 0.0 if self._waits_since is None else loop.time() - self._waits_since
        self._is_late = waited_s >= timeout_s
        if self._is_late:
            self._timer = None
            self._closing = asyncio.ensure_future(self._close())
        else:
            self._timer = loop.call_later(timeout_s - waited_s, self._check, timeout_s)

    async def aclose(self) -> None:
        """Release the connection."""
        if self._timer is not None:
            self._timer.cancel()
        await self._close()

    async def _close(self) -> None:
        close = getattr(self._stream, "close", None) or getattr(self._stream, "aclose", None)
        if close is not None:
            closing = close()
            if inspect.isawaitable(closing):
                await closing
