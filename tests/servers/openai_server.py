"""A server on loopback that speaks the protocol of OpenAI and answers from a script.

```python
with OpenAIServer() as server:
    server.answer(stream(chunk("Hel"), chunk("lo"), finish("stop")))
    client = OpenAIChatClient(model="m", base_url=server.url)
```

Real HTTP on a real socket. Nothing waits for time to pass: a `Gate` in a stream holds it until the test opens it, and
`Answer.closed_by_client` tells that the client has let go of the connection.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

# Only a test that fails waits as long as this.
_PATIENCE_S = 60

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 429: "Too Many Requests", 503: "Service Unavailable"}


@dataclass(frozen=True)
class Request:
    """What a client has sent. Names of headers are in lower case; `body` is the decoded JSON."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Gate:
    """Holds a stream where it stands until the test opens it.

    Attributes:
        reached: Done when the stream has come to the gate.
    """

    def __init__(self) -> None:
        self.reached: Future[None] = Future()
        self._opened: Future[None] = Future()

    def open(self) -> None:
        """Let the stream go on."""
        self._opened.set_result(None)

    async def pass_through(self) -> None:
        self.reached.set_result(None)
        await asyncio.wrap_future(self._opened)


class KeepAlive:
    """Sends comments, which are no events, until the client has closed the connection."""


@dataclass
class Answer:
    """One scripted reply.

    Attributes:
        parts: The body: bytes that are sent one after the other, and gates between them.
        chunked: Whether the body is sent in chunks, as streams are.
        cut: Whether the connection breaks after the last part, before the body has ended.
        closed_by_client: Done when the client has closed the connection while the answer was still being sent.
    """

    parts: tuple[bytes | Gate | KeepAlive, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False
    cut: bool = False
    closed_by_client: Future[None] = field(default_factory=Future)


async def happened(moment: Future[None]) -> None:
    """Wait for `Gate.reached` or `Answer.closed_by_client`; fails when it does not come."""
    await asyncio.wait_for(asyncio.wrap_future(moment), _PATIENCE_S)


def reply(body: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer; `retry_after="3"` becomes the header `retry-after`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer((json.dumps(body).encode(),), status, {"content-type": "application/json", **named})


def raw(body: bytes, content_type: str, status: int = 200) -> Answer:
    """An answer with this body, whatever it is."""
    return Answer((body,), status, {"content-type": content_type})


def stream(*parts: Mapping[str, Any] | bytes | Gate | KeepAlive, done: bool = True, cut: bool = False) -> Answer:
    """A stream of server-sent events: one per mapping; bytes are sent as they are.

    Args:
        parts: The events, and gates between them.
        done: Whether `[DONE]` comes last.
        cut: Whether the connection breaks instead.
    """
    sent: list[bytes | Gate | KeepAlive] = [_event(part) if isinstance(part, Mapping) else part for part in parts]
    if done and not cut:
        sent.append(b"data: [DONE]\n\n")
    return Answer(tuple(sent), headers={"content-type": "text/event-stream"}, chunked=True, cut=cut)


def _event(data: Mapping[str, Any]) -> bytes:
    named = f"event: {data['type']}\n" if "type" in data else ""
    return f"{named}data: {json.dumps(data)}\n\n".encode()


class OpenAIServer:
    """Serves scripted answers in the order in which they were given, on a loop in a thread of its own.

    Attributes:
        requests: What clients have sent, in order.
        connections: How many connections clients have opened.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._answers: deque[Answer] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-server", daemon=True)

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, *answers: Answer) -> Answer:
        """Put answers at the end of the script; returns the last one."""
        self._answers.extend(answers)
        return answers[-1]

    @property
    def bodies(self) -> list[Any]:
        """The bodies of all requests."""
        return [request.body for request in self.requests]

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                if not await _send(self._next_answer(), reader, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client, or the test, has gone
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    def _next_answer(self) -> Answer:
        if self._answers:
            return self._answers.popleft()
        return reply({"error": {"message": "The script of this test server holds no further answer."}}, 418)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, json.loads(body) if body else None)


async def _send(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send an answer; returns whether the connection is still good for another request."""
    headers = dict(answer.headers)
    if answer.chunked:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(sum(len(part) for part in answer.parts if isinstance(part, bytes)))
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    for part in answer.parts:
        if isinstance(part, Gate):
            await writer.drain()
            if not await _passed(part, reader):
                answer.closed_by_client.set_result(None)
                return False
        elif isinstance(part, KeepAlive):
            while not reader.at_eof():
                writer.write(b"e\r\n: keep-alive\n\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.001)
            answer.closed_by_client.set_result(None)
            return False
        else:
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n" if answer.chunked else part)
    if answer.cut:
        await writer.drain()
        writer.close()
        return False
    if answer.chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _passed(gate: Gate, reader: asyncio.StreamReader) -> bool:
    """Wait at a gate; returns whether it was opened, and not left by a client that closed the connection."""
    opened = asyncio.ensure_future(gate.pass_through())
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({opened, gone}, return_when=asyncio.FIRST_COMPLETED)
        return opened.done()
    finally:
        for waiting in (opened, gone):
            waiting.cancel()
        await asyncio.gather(opened, gone, return_exceptions=True)
