"""The span of a stream: from the first pull until it is exhausted, failed, closed or forgotten."""

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
    answered: Callable[[Operation, Any], None],
    ended: Callable[[Operation], object] = Operation.end,
) -> ResponseStream[Any, Any]:
    """Put a span around a stream.

    Args:
        open_stream: Makes the stream; called at the first pull.
        begin: Begins the span.
        answered: Reports the final response on it.
        ended: Ends it.

    Returns:
        A stream with the same updates and the same final response.
    """
    stream: ResponseStream[Any, Any] = ResponseStream.from_awaitable(_Opening(open_stream))
    span = _StreamSpan(weakref.ref(stream), begin, answered, ended)
    stream.with_pull_context_manager(span.pulling)
    stream.with_cleanup_hook(span.cleaned_up)
    return stream.with_result_hook(span.finished)


class _Opening:
    """The promise of a stream. No coroutine: one that nobody waits for would be complained of."""

    __slots__ = ("_open_stream",)

    def __init__(self, open_stream: Callable[[], ResponseStream[Any, Any]]) -> None:
        self._open_stream = open_stream

    def __await__(self) -> Generator[Any, Any, ResponseStream[Any, Any]]:
        return self._opened().__await__()

    async def _opened(self) -> ResponseStream[Any, Any]:
        return self._open_stream()


class _StreamSpan:
    """The span of one stream. Only the stream refers to it, so that both are forgotten together."""

    __slots__ = ("_answered", "_begin", "_ended", "_operation", "_stream")

    def __init__(
        self,
        stream: weakref.ref[ResponseStream[Any, Any]],
        begin: Callable[[], Operation],
        answered: Callable[[Operation, Any], None],
        ended: Callable[[Operation], object],
    ) -> None:
        self._stream, self._begin, self._answered, self._ended = stream, begin, answered, ended
        self._operation: Operation | None = None

    @contextmanager
    def pulling(self) -> Iterator[None]:
        """Around each pull: the span is the current one, and notes what goes wrong."""
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

    def cleaned_up(self) -> None:
        """The source is done with: exhausted, and then the final response is still to come, or failed or closed."""
        stream = self._stream()
        if stream is None or stream.state != "ended":
            self._end()

    def finished(self, response: Any) -> None:
        """The final response is there."""
        if self._operation is not None:
            self._answered(self._operation, response)
            self._end()

    def _end(self) -> None:
        if self._operation is not None:
            self._ended(self._operation)

    def __del__(self) -> None:
        self._end()
