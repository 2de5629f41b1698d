"""One `get_response` request: its arguments, the model calls that the tool loop makes, and their answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import iscoroutine
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from agentbench._call_limiter import CallLimiter, in_force, note_answer
from agentbench.agents.arguments import check_run_arguments
from agentbench.agents.compaction.grouping import apply_compaction
from agentbench.agents.history.pending_calls import ResolvedStart
from agentbench.agents.history.unique_calls import with_unique_calls
from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.loop.loop import ToolLoop, own_copy
from agentbench.agents.middleware.contexts import ChatContext
from agentbench.agents.middleware.sorting import run_pipeline, with_stream_hooks
from agentbench.agents.model.recording import recorder
from agentbench.agents.model.settings import Middleware, require_network, service_key, sort_client_middleware
from agentbench.agents.sessions.session import COMPACTED, RESOLVED_START, AgentSession
from agentbench.agents.tools.collection import normalize_tools
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import ChatClientInvalidResponseException
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    from agentbench.agents.compaction.continued import ContinuedWindow
    from agentbench.agents.compaction.grouping import CompactionStrategy
    from agentbench.agents.loop.tool_approval import StandingApprovals

ChatStream: TypeAlias = ResponseStream[ChatResponseUpdate, ChatResponse[Any]]
BuildStream: TypeAlias = Callable[[AsyncIterable[ChatResponseUpdate]], ChatStream]


async def response_of(reply: Any, build_stream: BuildStream) -> ChatResponse[Any]:
    """Convert a reply (a response, stream, iterable of updates, or an awaitable of one of them) to a response."""
    stream = await _await_reply(reply)
    if isinstance(stream, ChatResponse):
        return stream
    if not isinstance(stream, ResponseStream):
        stream = build_stream(stream)
    try:
        final: ChatResponse[Any] = await stream.get_final_response()
    finally:
        await stream.aclose()
    if not isinstance(final, ChatResponse):
        raise _invalid(final)
    return final


async def stream_of(reply: Any, build_stream: BuildStream) -> ChatStream:
    """Convert a reply to a stream; see `response_of`."""
    reply = await _await_reply(reply)
    if isinstance(reply, ResponseStream):
        return reply
    if isinstance(reply, ChatResponse):
        return response_as_stream(reply)
    return build_stream(reply)


async def _await_reply(reply: Any) -> Any:
    """Await a reply if necessary, and return the response, stream or async iterable. Streams are not awaited."""
    while not (isinstance(reply, (ChatResponse, ResponseStream)) or hasattr(reply, "__aiter__")):
        if not isinstance(reply, Awaitable):
            raise _invalid(reply)
        reply = await reply
    return reply


def response_as_stream(response: ChatResponse[Any]) -> ChatStream:
    """Convert a response to a stream with one update per message; its final response is the response itself."""

    async def updates() -> AsyncIterator[ChatResponseUpdate]:
        # Pieces with the same id would be combined into one call.
        for update in with_unique_calls(response).to_updates():
            yield update

    return ResponseStream(updates(), finalizer=lambda _: response)


def _invalid(reply: object) -> ChatClientInvalidResponseException:
    message = (
        f"The client's reply has type {type(reply).__name__}. Expected a ChatResponse, a ResponseStream, an "
        "async iterable of ChatResponseUpdate, or an awaitable of one of them: see BaseChatClient._inner_get_response."
    )
    return ChatClientInvalidResponseException(message)


# ---- requests


logger = logging.getLogger("agentbench")

_Finalizer = Callable[[Sequence[ChatResponseUpdate]], ChatResponse[Any]]

_EMPTY: Mapping[str, Any] = {}
_DEFAULT_CONFIGURATION = normalize_function_invocation_configuration()
_USED_HERE = ("session", "middleware", "function_invocation_configuration", "standing_approvals")


class RequestArguments(NamedTuple):
    """The sorted arguments of a request: middleware outermost first, options with normalized tools."""

    chat: Middleware
    function: Middleware
    options: dict[str, Any]
    for_tools: Mapping[str, Any]
    client_kwargs: Mapping[str, Any]
    session: Any
    configuration: Mapping[str, Any] | None
    standing: StandingApprovals | None


def sort_arguments(
    chat_middleware: Sequence[Any],
    function_middleware: Sequence[Any],
    middleware: Any,
    options: Mapping[str, Any] | None,
    function_invocation_kwargs: Mapping[str, Any] | None,
    client_kwargs: Mapping[str, Any] | None,
) -> RequestArguments:
    """Sort the arguments of `get_response`; `chat_middleware` and `function_middleware` are the client's."""
    check_run_arguments(None, options, function_invocation_kwargs, client_kwargs)
    own_options = dict(options) if options else {}
    for_tools = function_invocation_kwargs or _EMPTY
    if own_options:
        more = own_options.pop("additional_function_arguments", None)
        if more:
            for_tools = {**for_tools, **more}
        tools = own_options.get("tools")
        if tools is not None:
            is_normal = type(tools) is list and all(isinstance(tool, FunctionTool) for tool in tools)
            own_options["tools"] = list(tools) if is_normal else normalize_tools(tools)
    client_kwargs = client_kwargs or _EMPTY
    session = client_kwargs.get("session")
    in_kwargs = client_kwargs.get("middleware")
    chat: Middleware = ()
    function: Middleware = ()
    if chat_middleware or function_middleware or in_kwargs is not None or middleware is not None:
        chat, function = sort_client_middleware(chat_middleware, function_middleware, in_kwargs, middleware)
    return RequestArguments(
        chat,
        function,
        own_options,
        for_tools if session is None else {**for_tools, "session": session},
        {key: value for key, value in client_kwargs.items() if key not in _USED_HERE},
        session,
        client_kwargs.get("function_invocation_configuration"),
        client_kwargs.get("standing_approvals"),
    )


def tool_loop(
    messages: AgentRunInputs,
    arguments: RequestArguments,
    configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None,
    *,
    enabled: bool = True,
    own_messages: Callable[[list[Message]], list[Message]] | None = None,
) -> ToolLoop:
    """Return the tool loop of a request; with `own_messages` it copies messages, because compaction marks them."""
    checked = _DEFAULT_CONFIGURATION
    if configuration != checked:  # it may have been edited and become invalid
        checked = normalize_function_invocation_configuration(configuration)
    if arguments.configuration:
        checked = normalize_function_invocation_configuration({**checked, **arguments.configuration})
    if not enabled:
        checked = {**checked, "enabled": False}
    resolved_start: ResolvedStart | None = None
    if isinstance(arguments.session, AgentSession) and not arguments.options.get("conversation_id"):
        # If requests overlap, the later one reads everything.
        resolved_start = vars(arguments.session).pop(RESOLVED_START, None)
        if resolved_start is not None and not (type(messages) is list and resolved_start.begins(messages)):
            resolved_start = None
    count = 0 if resolved_start is None else len(resolved_start.messages)  # number of messages that need no check
    input_messages = normalize_messages(cast("list[Message]", messages)[count:] if count else messages)
    if count:
        input_messages[:0] = cast("list[Message]", messages)[:count]
    loop = ToolLoop(
        input_messages,
        arguments.options,
        checked,
        arguments.function,
        arguments.session,
        arguments.for_tools,
        own_messages=own_messages,
    )
    loop.resolved_start, loop.standing = resolved_start, arguments.standing
    return loop


def continue_strategy(strategy: CompactionStrategy, arguments: RequestArguments) -> ContinuedWindow | None:
    """Return a form of the strategy that continues where the last turn of the session ended; `None` if it has none.

    Middleware and services that store conversations get all messages, also those that the strategy excludes.
    """
    gets_all = arguments.chat or arguments.options.get("conversation_id")
    if gets_all or not isinstance(arguments.session, AgentSession):
        return None
    from agentbench.agents.compaction.continued import ContinuedWindow  # noqa: PLC0415 - few agents compact
    from agentbench.agents.compaction.strategies import SlidingWindowStrategy  # noqa: PLC0415 - as above

    if type(strategy) is not SlidingWindowStrategy:  # subclasses may do anything
        return None
    return ContinuedWindow(strategy, vars(arguments.session).setdefault(COMPACTED, {}))


@dataclass(slots=True, eq=False)
class ModelCalls:
    """Calls the model inside middleware, span, compaction and offline check."""

    client: Any
    hook: Callable[..., Any]
    middleware: Middleware = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    for_tools: Mapping[str, Any] = field(default_factory=dict)
    compaction_strategy: Any = None
    tokenizer: Any = None
    is_traced: bool = False
    is_limited: bool = True
    """Whether the calls count for the limiter in force; not those of a layer around the layer that sends them."""

    async def respond(self, messages: list[Message], options: dict[str, Any]) -> ChatResponse[Any]:
        """Return an answer. Middleware and compaction do not change the list or the options."""
        if not self.middleware:
            return await self._respond(messages, dict(options), self.kwargs)
        context = self._context(messages, options, stream=False)

        async def innermost() -> None:
            context.result = await self._respond(*self._arguments_of(context, messages))

        await run_pipeline(self.middleware, context, innermost)
        if context.result is None:
            _warn_of_no_result()
            return ChatResponse()
        return await response_of(context.result, self._build_stream(options))

    async def open(self, messages: list[Message], options: dict[str, Any]) -> ChatStream:
        """Return a streamed answer. Middleware and compaction do not change the list or the options."""
        if not self.middleware:
            return await self._open(messages, dict(options), self.kwargs)
        context = self._context(messages, options, stream=True)

        async def innermost() -> None:
            context.result = await self._open(*self._arguments_of(context, messages))

        try:
            await run_pipeline(self.middleware, context, innermost)
        except BaseException:
            if isinstance(context.result, ResponseStream):
                await context.result.aclose()
            raise
        if context.result is None:
            _warn_of_no_result()
            context.result = ResponseStream(_no_updates(), finalizer=ChatResponse.from_updates)
        stream = context.result
        if context.stream_transform_hooks and isinstance(stream, ResponseStream):
            # The response is made from the transformed updates, so that it equals what the reader has read.
            for transform in context.stream_transform_hooks:
                stream.with_transform_hook(transform)
            context.stream_transform_hooks = []
            context.result = stream.with_finalizer(self._finalizer(options))
        return with_stream_hooks(context.result, context)

    def _respond(
        self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]
    ) -> Awaitable[ChatResponse[Any]]:
        if not self.is_traced:
            return self._call(messages, options, kwargs)
        from agentbench.agents.telemetry.spans import ChatSpan  # noqa: PLC0415 - loads OpenTelemetry

        span = ChatSpan(self.client, messages, options)
        return span.call(lambda: self._call(messages, options, kwargs))

    async def _open(self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]) -> ChatStream:
        if not self.is_traced:
            return await self._call_streamed(messages, options, kwargs)
        from agentbench.agents.telemetry.spans import ChatSpan  # noqa: PLC0415 - loads OpenTelemetry

        span = ChatSpan(self.client, messages, options)
        return span.stream(lambda: ResponseStream.from_awaitable(self._call_streamed(messages, options, kwargs)))

    async def _call(
        self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatResponse[Any]:
        sent = await self._compact(messages, options) if self._has_compaction else list(messages)
        if self.is_limited and (recording := recorder.get()) is not None and recording.covers(self.client):
            compacted = self._compacted(is_limited=True)
            return await recording.respond(
                self.client,
                sent,
                options,
                lambda: compacted._call(sent, dict(options), kwargs),  # noqa: SLF001 - its own class
            )
        if getattr(self.client, "NEEDS_NETWORK", False):
            require_network(self.client)
        if self.is_limited and (limiter := in_force.get()) is not None:
            calls = self._compacted(is_limited=False)
            answer = await limiter.call(service_key(self.client), lambda: calls._call(sent, dict(options), kwargs))  # noqa: SLF001 - its own class
            note_answer(answer)
            return answer
        reply = self.hook(messages=sent, stream=False, options=options, **kwargs)
        if iscoroutine(reply):
            reply = await reply
        return reply if isinstance(reply, ChatResponse) else await response_of(reply, self._build_stream(options))

    async def _call_streamed(
        self, messages: list[Message], options: dict[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatStream:
        sent = await self._compact(messages, options) if self._has_compaction else list(messages)
        if self.is_limited and (recording := recorder.get()) is not None and recording.covers(self.client):
            compacted = self._compacted(is_limited=True)
            stream: ChatStream = await recording.open(
                self.client,
                sent,
                options,
                lambda: compacted._call_streamed(sent, dict(options), kwargs),  # noqa: SLF001 - its own class
            )
            return stream
        if getattr(self.client, "NEEDS_NETWORK", False):
            require_network(self.client)
        if self.is_limited and (limiter := in_force.get()) is not None:
            calls = self._compacted(is_limited=False)
            return limited_stream(
                limiter,
                service_key(self.client),
                lambda: calls._call_streamed(sent, dict(options), kwargs),  # noqa: SLF001 - its own class
            )
        reply = self.hook(messages=sent, stream=True, options=options, **kwargs)
        return await stream_of(reply, self._build_stream(options))

    def _compacted(self, *, is_limited: bool) -> ModelCalls:
        """Return the calls that send compacted messages as they are, each time as a new list."""
        return replace(self, is_limited=is_limited, compaction_strategy=None, tokenizer=None)

    @property
    def _has_compaction(self) -> bool:
        return self.compaction_strategy is not None or self.tokenizer is not None

    async def _compact(self, messages: list[Message], options: Mapping[str, Any]) -> list[Message]:
        """Return the compacted messages for the model; a service that stores the conversation gets all messages."""
        if not options.get("conversation_id"):
            messages = await apply_compaction(messages, strategy=self.compaction_strategy, tokenizer=self.tokenizer)
        return list(messages)

    def _build_stream(self, options: Mapping[str, Any]) -> BuildStream:
        build = getattr(self.client, "_build_response_stream", None)
        if build is None:
            return partial(ResponseStream, finalizer=ChatResponse.from_updates)
        return partial(build, response_format=options.get("response_format"))

    def _finalizer(self, options: Mapping[str, Any]) -> _Finalizer:
        response_format = options.get("response_format")
        finalize = getattr(self.client, "_finalize_response_updates", None)
        if finalize is None:
            return partial(ChatResponse.from_updates, output_format_type=response_format)
        return partial(finalize, response_format=response_format)

    def _context(self, messages: list[Message], options: dict[str, Any], *, stream: bool) -> ChatContext:
        return ChatContext(
            self.client,
            list(messages),
            dict(options),
            stream,
            kwargs=dict(self.kwargs),
            function_invocation_kwargs=dict(self.for_tools),
        )

    def _arguments_of(self, context: ChatContext, working: list[Message]) -> tuple[list[Message], dict[str, Any], Any]:
        """Return the messages, options and keywords that the middleware passes on.

        With compaction the messages are the working list itself unless middleware changed them, because marks must stay
        for later rounds.
        """
        messages = list(context.messages)
        if self._has_compaction:
            if len(messages) == len(working) and all(map(is_, messages, working)):
                messages = working
            else:
                working_ids = set(map(id, working))
                messages = [message if id(message) in working_ids else own_copy(message) for message in messages]
        return messages, dict(context.options or {}), context.kwargs


def limited_stream(limiter: CallLimiter, service: str, send: Callable[[], Awaitable[ChatStream]]) -> ChatStream:
    """Return a stream that waits for a place and keeps it until it has ended, failed or been closed.

    A rejection is sent again only before the first update. The final response is that of the stream sent last.
    """
    stream: ChatStream | None = None

    async def begin() -> ChatResponseUpdate | None:
        nonlocal stream
        stream = await send()
        try:
            return await anext(stream, None)
        except BaseException:
            await stream.aclose()
            raise

    async def updates() -> AsyncIterator[ChatResponseUpdate]:
        update, place = await limiter.open(service, begin)
        inner = cast("ChatStream", stream)
        try:
            while update is not None:
                yield update
                update = await anext(inner, None)
        except BaseException as error:
            place.end(error)
            raise
        else:
            place.end(succeeded=True)
            note_answer(await inner.get_final_response())
        finally:
            await inner.aclose()

    return ResponseStream(updates(), finalizer=lambda _: cast("ChatStream", stream).get_final_response())


async def _no_updates() -> AsyncIterator[ChatResponseUpdate]:
    return
    yield


def _warn_of_no_result() -> None:
    logger.warning("A chat middleware neither called call_next() nor set context.result; the answer is empty.")
