"""Mixins that add spans to client and agent classes of other libraries.

If a class creates its own spans (`MAKES_OWN_SPANS` is true), a mixin only accepts its keyword arguments.
"""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, cast

from agentbench.messages.options import OptionsCoT, as_list
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.observability.switches import is_tracing

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _InputT = TypeVar("_InputT", default=Any)
    _VectorT = TypeVar("_VectorT", default=Any)
    _OptionsT = TypeVar("_OptionsT", default=Any)
else:  # defaults of type variables need Python 3.13, and only type checkers use them
    _InputT, _VectorT, _OptionsT = map(typing.TypeVar, ("_InputT", "_VectorT", "_OptionsT"))

_embedding: ContextVar[Any] = ContextVar("agentbench-embedding", default=None)
"""The client whose span is open. It prevents a second span if a class calls its base class or itself."""


class _NamedProvider:
    def __init__(self, *args: Any, otel_provider_name: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if otel_provider_name is not None:
            self.otel_provider_name: str | None = otel_provider_name


class ChatTelemetryLayer(_NamedProvider, Generic[OptionsCoT]):
    """Adds a span to each `get_response` call of a client class of another library.

    Clients that derive from `BaseChatClient` create their own spans; for these it only accepts its argument.

    Args:
        *args: Arguments for the next class.
        otel_provider_name: The name of the service in spans; by default the class attribute `OTEL_PROVIDER_NAME`.
        **kwargs: Keyword arguments for the next class.

    Example:
        from agentbench import ChatResponse
        from agentbench.observability import ChatTelemetryLayer


        class MyClient:
            additional_properties: dict[str, object] = {}

            async def get_response(self, messages, *, stream=False, options=None):
                return ChatResponse(text="Hello")


        class TracedClient(ChatTelemetryLayer, MyClient):
            OTEL_PROVIDER_NAME = "my-service"
    """

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        """Call the next class in a span and return its awaitable or stream."""
        if stream:
            more["stream"] = True
        if options is not None:
            more["options"] = options
        call = partial(cast("Any", super()).get_response, messages, **more)
        if getattr(super(), "MAKES_OWN_SPANS", False) or not is_tracing():
            return call()
        from agentbench.agents.telemetry.spans import ChatSpan  # noqa: PLC0415 - OpenTelemetry

        span = ChatSpan(self, messages, options)
        if stream:
            return span.stream(lambda: _as_stream(call(), ChatResponse.from_updates))
        return span.call(lambda: _await(call()))


class AgentTelemetryLayer:
    """Adds a span to each `run` call of an agent class. `Agent` does not need it: it creates its own spans.

    Args:
        *args: Arguments for the next class.
        otel_agent_provider_name: The provider name in spans; by default the class attribute `AGENT_PROVIDER_NAME`.
        otel_provider_name: An alias of `otel_agent_provider_name`.
        **kwargs: Keyword arguments for the next class.

    Example:
        from agentbench import EchoChatClient, RawAgent
        from agentbench.observability import AgentTelemetryLayer


        class TracedAgent(AgentTelemetryLayer, RawAgent):
            AGENT_PROVIDER_NAME = "my-agents"


        agent = TracedAgent(EchoChatClient(), name="echo")
    """

    def __init__(
        self,
        *args: Any,
        otel_agent_provider_name: str | None = None,
        otel_provider_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        name = otel_agent_provider_name or otel_provider_name
        if name is not None:
            self.otel_agent_provider_name: str | None = name

    def run(self, messages: Any = None, **arguments: Any) -> Any:
        """Call the next class in a span and return its awaitable or, with `stream=True`, its stream."""
        run: Callable[..., Any] = cast("Any", super()).run
        if getattr(super(), "MAKES_OWN_SPANS", False) or not is_tracing():
            return run(messages, **arguments)
        return run_in_span(self, run, messages, **arguments)


def run_in_span(agent: Any, run: Callable[..., Any], messages: Any = None, **arguments: Any) -> Any:
    """Call the `run` of an agent in a span and return its awaitable or stream."""
    from agentbench.agents.telemetry.spans import AgentSpan  # noqa: PLC0415 - OpenTelemetry

    call = partial(run, messages, **arguments)
    options, tools = arguments.get("options"), arguments.get("tools")
    if tools is not None:
        options = dict(options) if isinstance(options, Mapping) else {}
        options["tools"] = [*as_list(options.get("tools")), *as_list(tools)]
    span = AgentSpan(agent, messages, options, arguments.get("session"))
    if arguments.get("stream"):
        return span.stream(lambda: _as_stream(call(), AgentResponse.from_updates))
    return span.call(lambda: _await(call()))


class EmbeddingTelemetryLayer(_NamedProvider, Generic[_InputT, _VectorT, _OptionsT]):
    """Adds a span to each `get_embeddings` call of a client class of another library.

    Embedding clients of this library create their own spans; for these it only accepts its argument.

    Args:
        *args: Arguments for the next class.
        otel_provider_name: The name of the service in spans; by default the class attribute `OTEL_PROVIDER_NAME`.
        **kwargs: Keyword arguments for the next class.

    Example:
        from agentbench.observability import EmbeddingTelemetryLayer


        class MyEmbeddings:
            async def get_embeddings(self, values, *, options=None):
                return [[float(len(value))] for value in values]


        class TracedEmbeddings(EmbeddingTelemetryLayer, MyEmbeddings):
            OTEL_PROVIDER_NAME = "my-service"
    """

    async def get_embeddings(self, values: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the next class in a span."""
        call = partial(cast("Any", super()).get_embeddings, values, *args, **kwargs)
        return await embeddings_in_span(self, values, kwargs.get("options"), call)


async def embeddings_in_span(client: Any, values: Any, options: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """Embed values in a span, unless tracing is off, `values` is empty, or the client already has an open span."""
    if not is_tracing() or not len(values) or _embedding.get() is client:
        return await call()
    from agentbench.agents.telemetry.spans import EmbeddingSpan  # noqa: PLC0415 - OpenTelemetry

    token = _embedding.set(client)
    try:
        return await EmbeddingSpan(client, values, options).call(call)
    finally:
        _embedding.reset(token)


async def _await(reply: Any) -> Any:
    return await reply if hasattr(reply, "__await__") else reply


def _as_stream(reply: Any, fold: Callable[[Any], Any]) -> ResponseStream[Any, Any]:
    """Convert a reply to a `ResponseStream`. It is a stream, an async iterable, or an awaitable of either."""
    if isinstance(reply, ResponseStream):
        return reply
    if hasattr(reply, "__aiter__"):
        return ResponseStream(reply, finalizer=fold)

    async def open_stream() -> ResponseStream[Any, Any]:
        return _as_stream(await reply, fold)

    return ResponseStream.from_awaitable(open_stream())
