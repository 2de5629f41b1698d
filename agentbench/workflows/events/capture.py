"""Text that handlers print or log, as `log` events of the delivery they belong to.

Only while an observed superstep runs: standard output is watched, not redirected, and a context variable tells
which delivery is printing, also in worker threads.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.delivery import Delivery

if TYPE_CHECKING:
    from agentbench.workflows.engine.event_log import EventLog


class _Listener:
    """Takes the text of one delivery, line by line."""

    __slots__ = ("_delivery", "_ended", "_log", "_loop", "_rest", "_thread")

    def __init__(self, log: EventLog, delivery: Delivery) -> None:
        self._log = log
        self._delivery = delivery
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._rest = ""
        self._ended = False

    def hear(self, text: str) -> None:
        """Take written text; whole lines become events."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self.line(line)

    def end(self) -> None:
        """The handler ended: what has no line end is a line too, and what comes later is not its."""
        if self._rest:
            line, self._rest = self._rest, ""
            self.line(line)
        self._ended = True

    def line(self, line: str) -> None:
        """Emit one line; from a worker thread through the loop, which owns the events."""
        event = WorkflowEvent("log", line, executor_id=self._delivery.executor_id)
        if threading.get_ident() == self._thread:
            self._append(event)
        elif not self._ended:
            with suppress(RuntimeError):  # the loop was closed over a thread that cannot be ended
                self._loop.call_soon_threadsafe(self._append, event)

    def _append(self, event: WorkflowEvent[str]) -> None:
        if not self._ended:
            self._log.append(event, self._delivery)


_listening: ContextVar[_Listener | None] = ContextVar("agentbench_listening", default=None)


class _WatchedStream:
    """Standard output that is also heard; everything but writing is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        listener = _listening.get()
        if listener is not None:
            listener.hear(text)
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LogHandler(logging.Handler):
    """Log records of handlers."""

    def emit(self, record: logging.LogRecord) -> None:
        listener = _listening.get()
        if listener is None:
            return
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a record that cannot be formatted is reported, as every handler does
            self.handleError(record)
        else:
            listener.line(f"{record.levelname} {record.name}: {text}")


class _Watch:
    """The watched output of the process, shared by all runs that are observed at the same time."""

    def __init__(self) -> None:
        self._users = 0
        self._lock = threading.Lock()
        self._stream: _WatchedStream | None = None
        self._handler = _LogHandler()

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._stream = sys.stdout = _WatchedStream(sys.stdout)
                logging.getLogger().addHandler(self._handler)

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            logging.getLogger().removeHandler(self._handler)
            stream, self._stream = self._stream, None
            # Somebody may have put another stream in place meanwhile; that one stays.
            if stream is not None and sys.stdout is stream:
                sys.stdout = stream._stream  # noqa: SLF001 - gives back what begin() took


_watch = _Watch()


@contextmanager
def watched_output() -> Iterator[None]:
    """Hear what handlers print and log while this lasts."""
    _watch.begin()
    try:
        yield
    finally:
        _watch.end()


async def listen(log: EventLog, delivery: Delivery, call: Coroutine[Any, Any, Any]) -> Any:
    """Await a handler and turn its text into events."""
    listener = _Listener(log, delivery)
    token = _listening.set(listener)
    try:
        return await call
    finally:
        listener.end()
        _listening.reset(token)
