"""One call of a model and what stands around it: chat middleware, span, compaction, the network switch, the hook."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench.agents.compaction.projection import apply_compaction
from agentbench.agents.loop.loop import own_copy
from agentbench.agents.middleware.contexts import ChatContext
from agentbench.agents.middleware.pipeline import run_pipeline, with_stream_hooks
from agentbench.agents.model.network import require_network
from agentbench.agents.model.replies import BuildStream, ChatStream, response_of, stream_of
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate
from agentbench.observability import is_tracing

if TYPE_CHECKING:
    from agentbench.agents.compaction.protocols import CompactionStrategy, TokenizerProtocol

logger = logging.getLogger("agentbench")

Hook = Callable[..., Any]


class CallSettings(NamedTuple):
    """What the calls of one request share.

    Attributes:
        client: Whose model is called.
        hook: Called with `messages`, `stream`, `options` and the keywords of the request; returns any shape of reply.
        middleware: Chat middleware, outermost first.
        kwargs: Further keywords for the hook.
        function_kwargs: What the run hands to its tools, for chat middleware to see.
        compaction_strategy: Acts on the working list.
        tokenizer: Likewise.
        is_traced: Whether a span is made here.
    """

    client: Any
    hook: Hook
    middleware: Sequence[Callable[..., Any]] = ()
    kwargs: Mapping[str, Any] = {}
    function_kwargs: Mapping[str, Any] = {}
    compaction_strategy: CompactionStrategy | None = None
    tokenizer: TokenizerProtocol | None = None
    is_traced: bool = True

    @property
    def compacts(self) -> bool:
        """Whether messages are marked, so that the working list has to be made of copies."""
        return self.compaction_strategy is not None or self.tokenizer is not None


class ModelCalls:
    """Calls the model of one request, once per round."""

    __slots__ = ("_settings",)

    def __init__(self, settings: CallSettings) -> None:
        self._settings = settings

    async def respond(self, messages: list[Message], options: dict[str, Any]) -> ChatResponse[Any]:
        """Ask for an answer; neither the list nor the options are changed by what stands around the call."""
        settings = self._settings
        if not settings.middleware:
            return await self._respond(messages, dict(options), settings.kwargs)
        context = self._context(messages, options, stream=False)

        async def innermost() -> None:
            given = self._as_given(context, messages)
            context.result = await self._respond(given, _options_of(context), context.kwargs)

        await run_pipeline(settings.middleware, context, innermost)
        if context.result is None:
            _warn_of_nothing()
            return ChatResponse()
        return await response_of(context.result, self._builder(options))

    async def open(self, messages: list[Message], options: dict[str, Any]) -> ChatStream:
        """Ask for a streamed answer; likewise."""
        settings = self._settings
        if not settings.middleware:
            return await self._open(messages, dict(options), settings.kwargs)
        context = self._context(messages, options, stream=True)

        async def innermost() -> None:
            given = self._as_given(context, messages)
            context.result = await self._open(given, _options_of(context), context.kwargs)

        try:
            await run_pipeline(settings.middleware, context, innermost)
        except BaseException:
            if isinstance(context.result, ResponseStream):
                await context.result.aclose()
            raise
        if context.result is None:
            _warn_of_nothing()
            context.result = ResponseStream(_nothing(), finalizer=ChatResponse.from_updates)
        return _with_hooks(context, self._finalizer(options))

    # ------------------------------------------------------------------------------------------- within the middleware

    async def _respond(
        self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatResponse[Any]:
        settings = self._settings
        if not settings.is_traced or not is_tracing():
            return await self._asked(messages, options, kwargs)
        from agentbench.agents.telemetry.spans import traced_chat  # noqa: PLC0415 - loads OpenTelemetry

        return await traced_chat(settings.client, messages, options, lambda: self._asked(messages, options, kwargs))

    async def _open(self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]) -> ChatStream:
        settings = self._settings
        if not settings.is_traced or not is_tracing():
            return await self._opened(messages, options, kwargs)
        from agentbench.agents.telemetry.spans import traced_chat_stream  # noqa: PLC0415 - loads OpenTelemetry

        return traced_chat_stream(
            settings.client,
            messages,
            options,
            lambda: ResponseStream.from_awaitable(self._opened(messages, options, kwargs)),
        )

    async def _asked(
        self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatResponse[Any]:
        settings = self._settings
        seen = await self._compacted(messages, options) if settings.compacts else list(messages)
        require_network(settings.client)
        reply = settings.hook(messages=seen, stream=False, options=options, **kwargs)
        if iscoroutine(reply):
            reply = await reply
        return reply if isinstance(reply, ChatResponse) else await response_of(reply, self._builder(options))

    async def _opened(self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]) -> ChatStream:
        settings = self._settings
        seen = await self._compacted(messages, options) if settings.compacts else list(messages)
        require_network(settings.client)
        reply = settings.hook(messages=seen, stream=True, options=options, **kwargs)
        return await stream_of(reply, self._builder(options))

    async def _compacted(self, messages: list[Message], options: Mapping[str, Any]) -> list[Message]:
        """Return what the model gets, as a list of its own; a service that keeps the conversation gets everything."""
        settings = self._settings
        if not options.get("conversation_id"):
            strategy, tokenizer = settings.compaction_strategy, settings.tokenizer
            messages = await apply_compaction(messages, strategy=strategy, tokenizer=tokenizer)
        return list(messages)

    def _builder(self, options: Mapping[str, Any]) -> BuildStream:
        response_format = options.get("response_format")
        own = getattr(self._settings.client, "_build_response_stream", None)
        if own is None:
            return lambda updates: build_response_stream(updates)
        return lambda updates: own(updates, response_format=response_format)

    def _finalizer(self, options: Mapping[str, Any]) -> Callable[[Sequence[ChatResponseUpdate]], ChatResponse[Any]]:
        response_format = options.get("response_format")
        own = getattr(self._settings.client, "_finalize_response_updates", None)
        if own is None:
            return lambda updates: ChatResponse.from_updates(updates, output_format_type=response_format)
        return lambda updates: own(updates, response_format=response_format)

    # -------------------------------------------------------------------------------------------------- the middleware

    def _context(self, messages: list[Message], options: dict[str, Any], *, stream: bool) -> ChatContext:
        settings = self._settings
        return ChatContext(
            settings.client,
            list(messages),
            dict(options),
            stream,
            kwargs=dict(settings.kwargs),
            function_invocation_kwargs=dict(settings.function_kwargs),
        )

    def _as_given(self, context: ChatContext, working: list[Message]) -> list[Message]:
        """Return the messages that middleware lets through.

        As long as it changed nothing that is the working list itself, so that marks and summaries hold for later
        rounds. Where messages are marked, those that middleware brought are copied.
        """
        messages = context.messages
        if not self._settings.compacts:
            return list(messages)
        if len(messages) == len(working) and all(map(_is, messages, working)):
            return working
        ours = set(map(id, working))
        return [message if id(message) in ours else own_copy(message) for message in messages]


def build_response_stream(
    updates: AsyncIterable[ChatResponseUpdate] | Awaitable[AsyncIterable[ChatResponseUpdate]],
    finalizer: Callable[[Sequence[ChatResponseUpdate]], ChatResponse[Any]] = ChatResponse.from_updates,
) -> ChatStream:
    """Return a stream of updates, or of the promise of them; by default its final response is their fold."""
    return ResponseStream(updates, finalizer=finalizer)


def _with_hooks(
    context: ChatContext, finalizer: Callable[[Sequence[ChatResponseUpdate]], ChatResponse[Any]]
) -> ChatStream:
    """Return the stream of a call with the hooks of its middleware: the response says what a reader has read.

    Args:
        context: As the middleware left it.
        finalizer: Makes the response of updates that were changed.
    """
    transforms, stream = context.stream_transform_hooks, context.result
    if transforms and isinstance(stream, ResponseStream):
        for transform in transforms:
            stream.with_transform_hook(transform)
        context.stream_transform_hooks = []
        stream = stream.with_finalizer(finalizer)
    return with_stream_hooks(stream, context)


def _options_of(context: ChatContext) -> dict[str, Any]:
    return dict(context.options or {})


def _is(one: object, other: object) -> bool:
    return one is other


async def _nothing() -> AsyncIterator[ChatResponseUpdate]:
    return
    yield


def _warn_of_nothing() -> None:
    logger.warning(
        "A chat middleware neither called call_next() nor set context.result; the answer of the model is empty."
    )
