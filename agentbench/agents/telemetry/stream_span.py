"""Spans around calls, and around streams: from the first pull until it is exhausted, failed, closed or collected."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from agentbench.agents.telemetry.operation import Operation
from agentbench.messages.stream import ResponseStream

R = TypeVar("R")


class SpanAround(ABC):
    """A span around one call or stream: how it begins, what it reports, and how it ends."""

    __slots__ = ()

    @abstractmethod
    def begin(self) -> Operation:
        """Begin the span."""

    @abstractmethod
    def report(self, operation: Operation, result: Any) -> None:
        """Set the attributes of the result."""

    def end(self, operation: Operation) -> None:
        """End the span, also a second time."""
        operation.end()

    async def call(self, call: Callable[[], Awaitable[R]]) -> R:
        """Await a call within the span."""
        operation = self.begin()
        try:
            with operation.current():
                result = await call()
            self.report(operation, result)
            return result
        except BaseException as error:
            operation.fail(error)
            raise
        finally:
            self.end(operation)

    def stream(self, open_stream: Callable[[], ResponseStream[Any, Any]]) -> ResponseStream[Any, Any]:
        """Return a stream with the same updates and final response, within the span; it is opened at the first pull."""
        stream: ResponseStream[Any, Any] = ResponseStream.from_awaitable(_Opening(open_stream))
        span = _StreamSpan(weakref.ref(stream), self)
        stream.with_pull_context_manager(span.around_pull)
        stream.with_cleanup_hook(span.on_cleanup)
        return stream.with_result_hook(span.on_response)


class _Opening:
    """The promise of a stream. No coroutine: Python warns of one that is never awaited."""

    __slots__ = ("_open_stream",)

    def __init__(self, open_stream: Callable[[], ResponseStream[Any, Any]]) -> None:
        self._open_stream = open_stream

    def __await__(self) -> Generator[Any, Any, ResponseStream[Any, Any]]:
        return self._open().__await__()

    async def _open(self) -> ResponseStream[Any, Any]:
        return self._open_stream()


class _StreamSpan:
    """The span of one stream. Only the stream refers to it, so that both are collected together."""

    __slots__ = ("_operation", "_span", "_stream")

    def __init__(self, stream: weakref.ref[ResponseStream[Any, Any]], span: SpanAround) -> None:
        self._stream, self._span = stream, span
        self._operation: Operation | None = None

    @contextmanager
    def around_pull(self) -> Iterator[None]:
        """Make the span the current one around a pull, and report its error."""
        operation = self._operation
        if operation is None:
            operation = self._operation = self._span.begin()
        try:
            with operation.current():
                yield
        except GeneratorExit:
            raise
        except BaseException as error:
            operation.fail(error)
            raise

    def on_cleanup(self) -> None:
        """End the span of a source that failed or was closed; after an exhausted one the final response is to come."""
        stream = self._stream()
        if stream is None or stream.state != "ended":
            self._end()

    def on_response(self, response: Any) -> None:
        """Report the final response and end the span."""
        if self._operation is not None:
            self._span.report(self._operation, response)
            self._end()

    def _end(self) -> None:
        if self._operation is not None:
            self._span.end(self._operation)

    def __del__(self) -> None:
        self._end()
