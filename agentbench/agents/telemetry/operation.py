"""Spans around calls, and around streams: from the first pull until it is exhausted, failed, closed or collected.

Imported only when telemetry is set up.
"""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span

from agentbench.agents.telemetry.attributes import Attributes, response_attributes
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.stream import ResponseStream
from agentbench.observability.instruments import get_tracer, mark_failed

R = TypeVar("R")

_RUN_KEY = otel_context.create_key("agentbench-run")


class RunTotals:
    """The ids of the answers, and the sums of tokens by attribute, of the model calls of one run of an agent."""

    __slots__ = ("response_ids", "tokens")

    def __init__(self) -> None:
        self.response_ids: set[str] = set()
        self.tokens: dict[str, int] = {}

    def add(self, attributes: Attributes) -> None:
        """Add the attributes of a model call."""
        if "gen_ai.response.id" in attributes:
            self.response_ids.add(attributes["gen_ai.response.id"])
        for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
            if key in attributes:
                self.tokens[key] = self.tokens.get(key, 0) + attributes[key]


class Operation:
    """A span that has begun, with its attributes; to the totals of an agent's run its model calls are added."""

    __slots__ = ("_agent_run", "_ended_at", "_span", "_started_at", "_totals", "attributes")

    def __init__(self, title: str, attributes: Attributes, totals: RunTotals | None = None) -> None:
        self.attributes = dict(attributes)
        self._totals = totals
        agent_run = otel_context.get_value(_RUN_KEY)
        self._agent_run = agent_run if isinstance(agent_run, RunTotals) else None
        self._ended_at: float | None = None
        self._span: Span = get_tracer().start_span(title, attributes=self.attributes)
        self._started_at = time.perf_counter()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the span the current one within; the task that enters must leave."""
        context = trace.set_span_in_context(self._span)
        if self._totals is not None:
            context = otel_context.set_value(_RUN_KEY, self._totals, context)
        token = otel_context.attach(context)
        try:
            yield
        except GeneratorExit:
            # A coroutine that is dropped while it waits may be closed by the garbage collector, outside its task.
            with suppress(ValueError):
                token.var.reset(token)
            raise
        except BaseException:
            otel_context.detach(token)
            raise
        otel_context.detach(token)

    def report(self, attributes: Attributes) -> None:
        """Set more attributes."""
        self.attributes.update(attributes)
        self._span.set_attributes(attributes)

    def report_answer(self, response: Any) -> None:
        """Set the attributes of a model's answer, and add them to the run of the agent around it."""
        attributes = response_attributes(response)
        self.report(attributes)
        if self._agent_run is not None:
            self._agent_run.add(attributes)

    def report_content(self, key: str, text: str | None) -> None:
        """Set contents; the caller has checked that they are allowed."""
        if text is not None:
            self._span.set_attribute(key, text)

    def fail(self, error: BaseException) -> None:
        """Mark the span as failed, unless the run waits for a person."""
        if isinstance(error, UserInputRequiredException):
            return
        self.attributes["error.type"] = type(error).__name__
        mark_failed(self._span, error)

    @property
    def seconds(self) -> float:
        """How long it took, or has been running."""
        return (time.perf_counter() if self._ended_at is None else self._ended_at) - self._started_at

    def end(self) -> bool:
        """End the span, and return whether it had not ended before."""
        if self._ended_at is not None:
            return False
        self._ended_at = time.perf_counter()
        self._span.end()
        return True


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
