"""Captures text that handlers print or log, as `log` events of the delivery that produced it.

Works only during observed supersteps. Standard output is watched, not redirected, and a context variable names the
delivery that is printing, in worker threads too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from agentbench.observability.tool_reports import watcher
from agentbench.workflows.events.events import WorkflowEvent


class _Capture:
    """Emits the text of one delivery, one event per line."""

    __slots__ = ("_emit", "_ended", "_executor_id", "_loop", "_rest", "_thread")

    def __init__(self, emit: Callable[[WorkflowEvent[Any]], None], executor_id: str) -> None:
        self._emit = emit
        self._executor_id = executor_id
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._rest = ""
        self._ended = False

    def write(self, text: str) -> None:
        """Accept printed text; complete lines become events."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self.emit_line(line)

    def emit_line(self, line: str) -> None:
        """Emit one line."""
        self._emit_here(WorkflowEvent("log", line, executor_id=self._executor_id))

    def show(self, data: Any) -> None:
        """Emit data as a custom event."""
        self._emit_here(WorkflowEvent("custom", data, executor_id=self._executor_id))

    def _emit_here(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event; a worker thread emits it through the loop, which owns the events."""
        if threading.get_ident() == self._thread:
            self._emit_unless_ended(event)
        elif not self._ended:
            with suppress(RuntimeError):  # the loop was closed while a thread was still running
                self._loop.call_soon_threadsafe(self._emit_unless_ended, event)

    def _emit_unless_ended(self, event: WorkflowEvent[Any]) -> None:
        if not self._ended:
            self._emit(event)

    def end(self) -> None:
        """Emit the text after the last newline; later text belongs to no delivery."""
        if self._rest:
            line, self._rest = self._rest, ""
            self.emit_line(line)
        self._ended = True


class _WatchedStream:
    """Standard output whose text also goes to the current capture; otherwise it behaves like the stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        capture: _Capture | None = watcher.get()
        if capture is not None:
            capture.write(text)
        written: int = self._stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LogHandler(logging.Handler):
    """Sends log records to the current capture."""

    def emit(self, record: logging.LogRecord) -> None:
        capture: _Capture | None = watcher.get()
        if capture is None:
            return
        try:
            capture.emit_line(f"{record.levelname} {record.name}: {record.getMessage()}")
        except Exception:  # noqa: BLE001 - a record that cannot be formatted is reported, as every handler does
            self.handleError(record)


_lock = threading.Lock()
_log_handler = _LogHandler()
# Runs that are observed at the same time share the watched output of the process.
_watchers = 0
# It is kept for the next run, because CPython 3.11 crashes if the stream is freed while another thread prints to it.
_stream: _WatchedStream | None = None


@contextmanager
def watch_output() -> Iterator[None]:
    """Watch standard output and the root logger for text that handlers print and log."""
    global _watchers, _stream
    with _lock:
        _watchers += 1
        if _watchers == 1:
            if sys.stdout is not _stream and (_stream is None or _stream._stream is not sys.stdout):  # noqa: SLF001
                _stream = _WatchedStream(sys.stdout)
            sys.stdout = _stream
            logging.getLogger().addHandler(_log_handler)
    try:
        yield
    finally:
        with _lock:
            _watchers -= 1
            if not _watchers:
                logging.getLogger().removeHandler(_log_handler)
                # Other code may have replaced the stream in the meantime; its replacement stays.
                if _stream is not None and sys.stdout is _stream:
                    sys.stdout = _stream._stream  # noqa: SLF001 - gives back what was taken


async def capture_text(
    append: Callable[[WorkflowEvent[Any], Any], None], delivery: Any, call: Coroutine[Any, Any, Any]
) -> Any:
    """Await a handler; emit every line that it prints or logs as a `log` event of its delivery."""
    capture = _Capture(lambda event: append(event, delivery), delivery.executor_id)
    token = watcher.set(capture)
    try:
        return await call
    finally:
        capture.end()
        with suppress(ValueError):  # the loop was closed, and the garbage collector runs this in its own context
            watcher.reset(token)
