"""A service on loopback that answers a number of requests at once, and rejects all others with HTTP 429."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

_ANSWER = {
    "id": "answer",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
}
_BUSY = {"error": {"message": "Too many requests.", "code": "rate_limit_exceeded"}}


class BusyServer:
    """Speaks the protocol of OpenAI, on a loop in a thread of its own.

    Args:
        allowed: How many requests are answered at once.
        seconds: How long an answer takes.
        retry_after: The header of the rejections, in seconds; None to send none.

    Attributes:
        admitted: For each request in order of arrival, whether it is answered and not rejected.
    """

    def __init__(self, *, allowed: int, seconds: float, retry_after: float | None) -> None:
        self.allowed, self.seconds, self.retry_after = allowed, seconds, retry_after
        self.admitted: list[bool] = []
        self._open = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="busy-server", daemon=True)

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> BusyServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, backlog=1000)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                writer.write(await self._answer())
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client, or the test, has gone
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _answer(self) -> bytes:
        self.admitted.append(self._open < self.allowed)
        if not self.admitted[-1]:
            wait = "" if self.retry_after is None else f"retry-after: {self.retry_after:g}\r\n"
            return _response("429 Too Many Requests", _BUSY, wait)
        self._open += 1
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self._open -= 1
        return _response("200 OK", _ANSWER)


def _response(status: str, body: dict[str, Any], headers: str = "") -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n{headers}\r\n"
    return head.encode() + content
