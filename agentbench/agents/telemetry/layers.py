"""Mixins that put spans around clients and agents of any make.

Over a client that makes its own spans (it says so with `MAKES_OWN_SPANS`), a mixin takes its keywords and does nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, cast

from agentbench.agents.telemetry.attributes import as_list
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.observability import is_tracing

_embedding: ContextVar[Any] = ContextVar("agentbench-embedding", default=None)
"""The client whose span is open; a class that asks its base class, or itself for parts, gets one span."""


class _Client(Protocol):
    def get_response(self, *args: Any, **kwargs: Any) -> Any: ...


class _Agent(Protocol):
    def run(self, *args: Any, **kwargs: Any) -> Any: ...


class _Embedder(Protocol):
    def get_embeddings(self, *args: Any, **kwargs: Any) -> Awaitable[Any]: ...


class ChatTelemetryLayer:
    """Spans around `get_response` of the class that comes next: `class Traced(ChatTelemetryLayer, MyClient)`.

    Args:
        *args: For the next class.
        otel_provider_name: The name under which the service is reported; by default the class' `OTEL_PROVIDER_NAME`.
        **kwargs: For the next class.
    """

    def __init__(self, *args: Any, otel_provider_name: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if otel_provider_name is not None:
            self.otel_provider_name: str | None = otel_provider_name

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        """Ask the next class, within a span.

        Args:
            messages: What the model gets.
            stream: Whether updates are wanted.
            options: Of the call.
            **more: For the next class, as `stream` and `options` are where they are given.

        Returns:
            What the next class gives: an awaitable, or a stream.
        """
        inner = cast("_Client", super()).get_response
        given = {**({"stream": True} if stream else {}), **({} if options is None else {"options": options}), **more}

        def ask() -> Any:
            return inner(messages, **given)

        if getattr(super(), "MAKES_OWN_SPANS", False) or not is_tracing():
            return ask()
        from agentbench.agents.telemetry.spans import traced_chat, traced_chat_stream  # noqa: PLC0415 - OpenTelemetry

        if stream:
            return traced_chat_stream(self, messages, options, lambda: _as_stream(ask(), ChatResponse.from_updates))
        return traced_chat(self, messages, options, lambda: _awaited(ask()))


class AgentSpans:
    """Spans around `run` of the class that comes next: `Agent` is made with it.

    Args:
        *args: For the next class.
        otel_agent_provider_name: The name under which the agent is reported; by default `AGENT_PROVIDER_NAME`.
        otel_provider_name: The same.
        **kwargs: For the next class.
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

    def run(self, messages: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Run the next class, within a span.

        Args:
            messages: The input.
            *args: For the next class.
            **kwargs: For the next class.

        Returns:
            What the next class gives: an awaitable, or a stream if `stream=True`.
        """
        inner = cast("_Agent", super()).run

        def run() -> Any:
            return inner(messages, *args, **kwargs)

        if not is_tracing():
            return run()
        from agentbench.agents.telemetry.spans import (  # noqa: PLC0415 - OpenTelemetry
            traced_agent_run,
            traced_agent_stream,
        )

        options, session = _with_tools(kwargs.get("options"), kwargs.get("tools")), kwargs.get("session")
        if kwargs.get("stream"):
            return traced_agent_stream(
                self, messages, options, session, lambda: _as_stream(run(), AgentResponse.from_updates)
            )
        return traced_agent_run(self, messages, options, session, lambda: _awaited(run()))


class AgentTelemetryLayer(AgentSpans):
    """Spans around `run` of the class that comes next: `class Traced(AgentTelemetryLayer, RawAgent)`.

    A class of its own, so that it may also stand before `Agent`, where it adds its keywords and no second span. The
    arguments are those of `AgentSpans`.
    """


class EmbeddingSpans:
    """Spans around `get_embeddings` of the class that comes next: embedding clients of ours are made with it.

    Args:
        *args: For the next class.
        otel_provider_name: The name under which the service is reported; by default the class' `OTEL_PROVIDER_NAME`.
        **kwargs: For the next class.
    """

    def __init__(self, *args: Any, otel_provider_name: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if otel_provider_name is not None:
            self.otel_provider_name: str | None = otel_provider_name

    async def get_embeddings(self, values: Any, *args: Any, **kwargs: Any) -> Any:
        """Ask the next class, within a span.

        Args:
            values: What is embedded.
            *args: For the next class.
            **kwargs: For the next class.
        """
        inner = cast("_Embedder", super()).get_embeddings
        return await embeddings_in_span(self, values, kwargs.get("options"), lambda: inner(values, *args, **kwargs))


async def embeddings_in_span(client: Any, values: Any, options: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Ask for embeddings within a span, unless nothing is traced, there are no values, or the client is in one already.

    Args:
        client: Who is asked.
        values: What is embedded.
        options: Of the call.
        ask: Does the work.
    """
    if not is_tracing() or not len(values) or _embedding.get() is client:
        return await ask()
    from agentbench.agents.telemetry.spans import traced_embeddings  # noqa: PLC0415 - OpenTelemetry

    token = _embedding.set(client)
    try:
        return await traced_embeddings(client, options, ask)
    finally:
        _embedding.reset(token)


class EmbeddingTelemetryLayer(EmbeddingSpans):
    """Spans around `get_embeddings` of the class that comes next: `class Traced(EmbeddingTelemetryLayer, MyClient)`.

    A class of its own, so that it may also stand before an embedding client of ours, where it adds its keywords and no
    second span. The arguments are those of `EmbeddingSpans`.
    """


def _with_tools(options: Any, tools: Any) -> Any:
    """The options of a run with the tools of that run among them, as its span shows them."""
    if tools is None:
        return options
    given = dict(options) if isinstance(options, Mapping) else {}
    return {**given, "tools": [*as_list(given.get("tools")), *as_list(tools)]}


async def _awaited(made: Any) -> Any:
    return await made if hasattr(made, "__await__") else made


def _as_stream(made: Any, fold: Callable[[Any], Any]) -> ResponseStream[Any, Any]:
    """A stream of ours of what a client or an agent gave for one: a stream, an async iterable, or a promise of one."""
    if isinstance(made, ResponseStream):
        return made
    if hasattr(made, "__aiter__"):
        return ResponseStream(made, finalizer=fold)
    return ResponseStream.from_awaitable(_opened(made, fold))


async def _opened(made: Awaitable[Any], fold: Callable[[Any], Any]) -> ResponseStream[Any, Any]:
    return _as_stream(await made, fold)
