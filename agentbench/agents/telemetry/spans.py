"""Spans of agent runs, model calls and tool calls, with their metrics.

The module is imported only if `observability.is_tracing()` is true. A span becomes the current one, and is reset, in
the task that awaits the call, so a run may be awaited with `gather`, in a task or with `wait_for`.
"""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import Span, SpanKind

from agentbench.agents.telemetry.attributes import (
    Attributes,
    agent_attributes,
    arguments_json,
    chat_attributes,
    embedding_attributes,
    instructions_json,
    messages_json,
    metric_attributes,
    model_name,
    response_attributes,
    result_text,
    tool_attributes,
    tool_name,
    without_none,
)
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.options import merge_chat_options
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.observability.instruments import (
    DURATION_BUCKETS,
    TOKEN_BUCKETS,
    OtelAttr,
    get_meter,
    get_tracer,
    mark_failed,
)
from agentbench.observability.switches import OBSERVABILITY_SETTINGS, is_measuring

R = TypeVar("R")

_TOKENS: Final = OtelAttr.LLM_TOKEN_USAGE
_MODEL_SECONDS: Final = OtelAttr.LLM_OPERATION_DURATION
_TOOL_SECONDS: Final = OtelAttr.MEASUREMENT_FUNCTION_INVOCATION_DURATION
_TOKENS_OF = {OtelAttr.T_TYPE_INPUT: OtelAttr.INPUT_TOKENS, OtelAttr.T_TYPE_OUTPUT: OtelAttr.OUTPUT_TOKENS}
_HISTOGRAMS = {
    _TOKENS: (OtelAttr.T_UNIT, "Number of input and output tokens of model calls", TOKEN_BUCKETS),
    _MODEL_SECONDS: (OtelAttr.DURATION_UNIT, "Duration of model calls", DURATION_BUCKETS),
    _TOOL_SECONDS: (OtelAttr.DURATION_UNIT, "Duration of tool calls", DURATION_BUCKETS),
}
_cache: dict[str, tuple[object, Histogram]] = {}
_RUN_KEY = otel_context.create_key("agentbench-run")


class SpanAround(ABC):
    """A span around one call, or around one stream from the first pull until it ends, fails, is closed or deleted."""

    attributes: Attributes
    _span: Span | None = None
    _has_ended = False
    _started_at: float

    @abstractmethod
    def _first(self) -> tuple[str, Attributes]:
        """Return the title of the span and the attributes that are known at its start."""

    @abstractmethod
    def _last(self, result: Any) -> Attributes:
        """Return the attributes of the result."""

    def _context(self, span: Span) -> Context:
        return trace.set_span_in_context(span)

    def _measure(self, seconds: float) -> None:  # noqa: B027 - there are no metrics for agent runs
        """Record the metrics of the call before its span ends."""

    async def call(self, call: Callable[[], Awaitable[R]]) -> R:
        """Await a call in the span."""
        try:
            with self._enter_span():
                result = await call()
            self._report(self._last(result))
            return result
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            self._end()

    def stream(self, open_stream: Callable[[], ResponseStream[Any, Any]]) -> ResponseStream[Any, Any]:
        """Return a stream in the span with the same updates and final response. It is opened at the first pull."""
        stream: ResponseStream[Any, Any] = ResponseStream.from_awaitable(_Opening(open_stream))
        reference = weakref.ref(stream)

        def on_cleanup() -> None:
            # If the source has ended, the span stays open for the final response.
            open_stream = reference()
            if open_stream is None or open_stream.state != "ended":
                self._end()

        def on_response(response: Any) -> None:
            self._report(self._last(response))
            self._end()

        stream.with_pull_context_manager(self._around_pull)
        stream.with_cleanup_hook(on_cleanup)
        return stream.with_result_hook(on_response)

    @contextmanager
    def _around_pull(self) -> Iterator[None]:
        try:
            with self._enter_span():
                yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self._fail(error)
            raise

    @contextmanager
    def _enter_span(self) -> Iterator[None]:
        """Start the span if necessary and make it the current one. The task that enters must also exit."""
        if self._span is None:
            title, attributes = self._first()
            self.attributes = without_none(attributes)
            # A model with an address is called over the network.
            kind = SpanKind.CLIENT if OtelAttr.ADDRESS in self.attributes else SpanKind.INTERNAL
            self._span = get_tracer().start_span(title, kind=kind, attributes=self.attributes)
            self._started_at = time.perf_counter()
        token = otel_context.attach(self._context(self._span))
        try:
            yield
        except GeneratorExit:
            # The garbage collector may close an abandoned coroutine outside its task.
            with suppress(ValueError):
                token.var.reset(token)
            raise
        except BaseException:
            otel_context.detach(token)
            raise
        otel_context.detach(token)

    def _report(self, attributes: Attributes) -> None:
        if self._span is not None:
            present = without_none(attributes)
            self.attributes.update(present)
            self._span.set_attributes(present)

    def _fail(self, error: BaseException) -> None:
        """Mark the span as failed, unless the run waits for a person."""
        if self._span is not None and not isinstance(error, UserInputRequiredException):
            self.attributes[OtelAttr.ERROR_TYPE] = type(error).__name__
            mark_failed(self._span, error)

    def _end(self) -> None:
        if self._span is not None and not self._has_ended:
            self._has_ended = True
            self._measure(time.perf_counter() - self._started_at)
            self._span.end()

    def __del__(self) -> None:
        self._end()


class _Opening:
    """An awaitable of a stream. It is not a coroutine, because Python warns about coroutines that are never awaited."""

    __slots__ = ("_open_stream",)

    def __init__(self, open_stream: Callable[[], ResponseStream[Any, Any]]) -> None:
        self._open_stream = open_stream

    def __await__(self) -> Generator[Any, Any, ResponseStream[Any, Any]]:
        return self._open().__await__()

    async def _open(self) -> ResponseStream[Any, Any]:
        return self._open_stream()


class AgentSpan(SpanAround):
    """The span of one agent run. It collects the response ids and token counts of its model calls."""

    def __init__(self, agent: Any, messages: Any, options: Any, session: Any) -> None:
        self._agent, self._messages, self._session = agent, messages, session
        both = (getattr(agent, "default_options", None), options)
        self._options = merge_chat_options(*(part if isinstance(part, Mapping) else None for part in both))
        self._response_ids: set[str] = set()
        self._tokens: dict[str, int] = {}

    def add(self, attributes: Attributes) -> None:
        """Add the attributes of the answer to a model call."""
        self._response_ids.add(attributes[OtelAttr.RESPONSE_ID])
        for key in (OtelAttr.INPUT_TOKENS, OtelAttr.OUTPUT_TOKENS):
            if key in attributes:
                self._tokens[key] = self._tokens.get(key, 0) + attributes[key]

    def _context(self, span: Span) -> Context:
        return otel_context.set_value(_RUN_KEY, self, super()._context(span))

    def _first(self) -> tuple[str, Attributes]:
        agent = self._agent
        name = getattr(agent, "name", None) or getattr(agent, "id", None) or type(agent).__name__
        attributes = agent_attributes(agent, self._options, self._session)
        return f"{OtelAttr.AGENT_INVOKE_OPERATION} {name}", {**attributes, **_input(self._messages, self._options)}

    def _last(self, result: Any) -> Attributes:
        attributes = {**self._tokens, **response_attributes(result), **_output(result)}
        if attributes[OtelAttr.RESPONSE_ID] in self._response_ids:
            del attributes[OtelAttr.RESPONSE_ID]
        return attributes


class ChatSpan(SpanAround):
    """The span of one model call."""

    def __init__(self, client: Any, messages: Iterable[Any], options: Any) -> None:
        self._client, self._messages, self._options = client, messages, options

    def _first(self) -> tuple[str, Attributes]:
        title = f"{OtelAttr.CHAT_COMPLETION_OPERATION} {model_name(self._client, self._options)}"
        self._run = otel_context.get_value(_RUN_KEY)
        return title, {**chat_attributes(self._client, self._options), **_input(self._messages, self._options)}

    def _last(self, result: Any) -> Attributes:
        attributes = response_attributes(result)
        if isinstance(self._run, AgentSpan):
            self._run.add(attributes)
        return {**attributes, **_output(result, result.finish_reason if isinstance(result, ChatResponse) else None)}

    def _context(self, span: Span) -> Context:
        return trace.set_span_in_context(span)

    def _measure(self, seconds: float) -> None:
        if not is_measuring():
            return
        few = metric_attributes(self.attributes)
        _histogram(_MODEL_SECONDS).record(seconds, few)
        for kind, name in _TOKENS_OF.items():
            if name in self.attributes:
                _histogram(_TOKENS).record(self.attributes[name], {**few, OtelAttr.T_TYPE: kind})


class EmbeddingSpan(ChatSpan):
    """The span of one call to an embedding model."""

    def _first(self) -> tuple[str, Attributes]:
        title = f"{OtelAttr.EMBEDDING_OPERATION} {model_name(self._client, self._options)}"
        return title, chat_attributes(self._client, self._options, operation=OtelAttr.EMBEDDING_OPERATION)

    def _last(self, result: Any) -> Attributes:
        return embedding_attributes(result)


class ToolSpan(SpanAround):
    """The span of one tool call."""

    def __init__(self, tool: Any, call_id: str | None, arguments: Any) -> None:
        self._tool, self._call_id, self._arguments = tool, call_id, arguments

    def _first(self) -> tuple[str, Attributes]:
        attributes = tool_attributes(self._tool, self._call_id)
        if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
            arguments = arguments_json(self._arguments, _secret_parameters(self._tool))
            attributes[OtelAttr.TOOL_ARGUMENTS] = arguments
        return f"{OtelAttr.TOOL_EXECUTION_OPERATION} {tool_name(self._tool)}", attributes

    def _last(self, result: Any) -> Attributes:
        return {OtelAttr.TOOL_RESULT: result_text(result)} if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED else {}

    def _context(self, span: Span) -> Context:
        return trace.set_span_in_context(span)

    def _measure(self, seconds: float) -> None:
        self._report({_TOOL_SECONDS: seconds})
        if is_measuring():
            _histogram(_TOOL_SECONDS).record(seconds, metric_attributes(self.attributes))


def _input(messages: Any, options: Any) -> Attributes:
    if not OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        return {}
    instructions = options.get("instructions") if isinstance(options, Mapping) else None
    return {
        OtelAttr.INPUT_MESSAGES: messages_json(normalize_messages(messages)),
        OtelAttr.SYSTEM_INSTRUCTIONS: instructions_json(instructions),
    }


def _output(response: Any, finish_reason: object = None) -> Attributes:
    if not OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED or response is None:
        return {}
    return {OtelAttr.OUTPUT_MESSAGES: messages_json(response.messages, finish_reason=finish_reason)}


def _secret_parameters(tool: Any) -> list[str]:
    """Return the parameters of a tool that are secret according to its schema."""
    parameters = getattr(tool, "parameters", None)
    schema = parameters() if callable(parameters) else {}
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return [name for name, part in properties.items() if _is_secret_schema(part)]


def _is_secret_schema(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("format") == "password" or any(map(_is_secret_schema, schema.get("anyOf", ())))


def _histogram(name: OtelAttr) -> Histogram:
    """Return the histogram of the current meter. It is cached, because the SDK warns about duplicates."""
    meter = get_meter()
    owner, histogram = _cache.get(name, (None, None))
    if histogram is not None and owner is meter:
        return histogram
    unit, description, buckets = _HISTOGRAMS[name]
    histogram = meter.create_histogram(
        name, unit=unit, description=description, explicit_bucket_boundaries_advisory=buckets
    )
    _cache[name] = meter, histogram
    return histogram
