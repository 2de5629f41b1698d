"""The span of a stream: from the first pull until it is exhausted, failed, closed or forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agentbench.agents.telemetry.operation import Operation
from agentbench.messages.stream import ResponseStream


class StreamSpan:
    """Puts a span around a stream.

    Args:
        begin: Begins the span.
        answered: Reports the final response on it.
        ended: Ends it.
    """

    __slots__ = ("_answered", "_begin", "_ended", "_exhausted", "_operation", "_pulling")

    def __init__(
        self,
        begin: Callable[[], Operation],
        answered: Callable[[Operation, Any], None],
        ended: Callable[[Operation], object] = Operation.end,
    ) -> None:
        self._begin, self._answered, self._ended = begin, answered, ended
        self._operation: Operation | None = None
        self._pulling = False
        self._exhausted = False

    def around(self, open_stream: Callable[[], ResponseStream[Any, Any]]) -> ResponseStream[Any, Any]:
        """The stream that `open_stream` makes, within the span."""

        async def opened() -> ResponseStream[Any, Any]:
            with self._pull():
                return open_stream()

        stream: ResponseStream[Any, Any] = ResponseStream.from_awaitable(opened())
        stream.with_pull_context_manager(self._pull)
        stream.with_cleanup_hook(self._cleaned_up)
        return stream.with_result_hook(self._finished)

    @contextmanager
    def _pull(self) -> Iterator[None]:
        if self._operation is None:
            self._operation = self._begin()
        outer, self._pulling = self._pulling, True
        try:
            with self._operation.current():
                yield
        except StopAsyncIteration:
            self._exhausted = True
            raise
        except BaseException as error:
            self._operation.fail(error)
            self._end()
            raise
        finally:
            self._pulling = outer

    def _cleaned_up(self) -> None:
        """The source is done with. If nobody pulls and it was not exhausted, the stream was closed."""
        if not self._pulling and not self._exhausted:
            self._end()

    def _finished(self, response: Any) -> None:
        if self._operation is not None:
            self._answered(self._operation, response)
            self._end()

    def _end(self) -> None:
        if self._operation is not None:
            self._ended(self._operation)

    def __del__(self) -> None:
        self._end()
