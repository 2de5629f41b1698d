"""The span of a stream: from the first pull until it is exhausted, failed, closed or garbage-collected."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from agentbench.agents.telemetry.operation import Operation
from agentbench.messages.stream import ResponseStream


def stream_in_span(
    open_stream: Callable[[], ResponseStream[Any, Any]],
    *,
    begin: Callable[[], Operation],
    report: Callable[[Operation, Any], None],
    end: Callable[[Operation], object] = Operation.end,
) -> ResponseStream[Any, Any]:
    """Put a span around a stream.

    Args:
        open_stream: Makes the stream; called at the first pull.
        begin: Begins the span.
        report: Reports the final response on it.
        end: Ends it.

    Returns:
        A stream with the same updates and the same final response.
    """
    stream: ResponseStream[Any, Any] = ResponseStream.from_awaitable(_Opening(open_stream))
    span = _StreamSpan(weakref.ref(stream), begin, report, end)
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

    __slots__ = ("_begin", "_end_operation", "_operation", "_report", "_stream")

    def __init__(
        self,
        stream: weakref.ref[ResponseStream[Any, Any]],
        begin: Callable[[], Operation],
        report: Callable[[Operation, Any], None],
        end: Callable[[Operation], object],
    ) -> None:
        self._stream, self._begin, self._report, self._end_operation = stream, begin, report, end
        self._operation: Operation | None = None

    @contextmanager
    def around_pull(self) -> Iterator[None]:
        """Make the span the current one around a pull, and report its error."""
        operation = self._operation
        if operation is None:
            operation = self._operation = self._begin()
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
            self._report(self._operation, response)
            self._end()

    def _end(self) -> None:
        if self._operation is not None:
            self._end_operation(self._operation)

    def __del__(self) -> None:
        self._end()
