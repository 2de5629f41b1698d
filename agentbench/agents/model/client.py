"""The base class of chat clients: subclasses call the model, and this class does everything else."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Awaitable, Collection, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, TypedDict, Unpack, cast, overload

from agentbench._secrets import without_secrets
from agentbench.agents.arguments import check_mapping, constructor_keywords, describe, unexpected_keyword
from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.loop.loop import answer, stream_answer
from agentbench.agents.model.request import ChatStream, ModelCalls, continue_strategy, sort_arguments, tool_loop
from agentbench.agents.model.settings import ClientSettings
from agentbench.agents.tools.collection import validate_tools
from agentbench.messages.options import OptionsCoT
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate
from agentbench.observability.switches import is_tracing
from agentbench.serialization.mixin import SerializationMixin

if TYPE_CHECKING:
    from agentbench.agents.agent.agent import Agent, AgentArguments
    from agentbench.agents.compaction.grouping import CompactionStrategy, TokenizerProtocol
    from agentbench.agents.middleware.contexts import MiddlewareInput
    from agentbench.messages.inputs import AgentRunInputs


class ClientLayers(TypedDict, total=False):
    """The arguments of `BaseChatClient`, which every client accepts."""

    middleware: MiddlewareInput
    function_invocation_configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None
    compaction_strategy: CompactionStrategy | None
    tokenizer: TokenizerProtocol | None
    additional_properties: Mapping[str, Any] | None
    otel_provider_name: str | None


class RequestKeywords(TypedDict, total=False):
    """The keywords of `get_response` besides `stream`."""

    options: Mapping[str, Any] | None
    compaction_strategy: CompactionStrategy | None
    tokenizer: TokenizerProtocol | None
    function_invocation_kwargs: Mapping[str, Any] | None
    client_kwargs: Mapping[str, Any] | None
    middleware: MiddlewareInput


class BaseChatClient(ClientSettings, SerializationMixin, ABC, Generic[OptionsCoT]):
    """The base class of chat clients: adds tools, middleware, compaction and spans to a subclass's model calls.

    A subclass implements `_inner_get_response` and may declare its options in brackets:
    `class MyClient(BaseChatClient[MyOptions])`. It does not have to call `super().__init__()`. The attributes may be
    edited; each request reads them when it starts.

    Args:
        middleware: Chat and function middleware, outermost first; available as `chat_middleware` and
            `function_middleware`.
        function_invocation_configuration: Limits of the loop between the model and its tools; see
            `FunctionInvocationConfiguration`.
        compaction_strategy: Shortens long conversations for the model.
        tokenizer: Counts tokens for the strategy.
        additional_properties: Additional values that the application stores with the client.
        otel_provider_name: Name of the service in spans; by default `OTEL_PROVIDER_NAME`.
        **unknown: Any other keyword raises an error that suggests a known one.

    Raises:
        MiddlewareException: `middleware` contains an object that is neither chat nor function middleware.
        TypeError: A keyword is unknown.
        ValueError: The configuration is invalid.

    Example:
        class Shout(BaseChatClient):
            async def _inner_get_response(self, *, messages, stream, options, **kwargs):
                return ChatResponse(text=messages[-1].text.upper())


        response = await Shout().get_response("hello")
    """

    OTEL_PROVIDER_NAME: ClassVar[str] = "unknown"
    STORES_BY_DEFAULT: ClassVar[bool] = False
    """Whether the service stores conversations by default."""
    FUNCTION_INVOCATION_ENABLED: ClassVar[bool] = True
    """If false, tool calls are returned to the caller instead of being executed."""
    NEEDS_NETWORK: ClassVar[bool] = False
    """Whether the service is on another machine. If so, calls raise while `AGENTBENCH_OFFLINE` is set."""
    MAKES_OWN_SPANS: ClassVar[bool] = True
    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = {
        "additional_properties",
        "compaction_strategy",
        "tokenizer",
        "chat_middleware",
        "function_middleware",
        "function_invocation_configuration",
        "otel_provider_name",
    }

    # Defaults for subclasses that do not call this constructor.
    additional_properties: dict[str, Any] = cast("Any", cached_property(lambda _: {}))
    compaction_strategy: CompactionStrategy | None = None
    tokenizer: TokenizerProtocol | None = None
    otel_provider_name: str | None = None

    def __init__(
        self,
        *,
        middleware: MiddlewareInput = None,
        function_invocation_configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None = None,
        compaction_strategy: CompactionStrategy | None = None,
        tokenizer: TokenizerProtocol | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        otel_provider_name: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise unexpected_keyword(type(self).__name__, next(iter(unknown)), constructor_keywords(type(self)))
        self.middleware = middleware
        self.function_invocation_configuration = normalize_function_invocation_configuration(
            function_invocation_configuration
        )
        if compaction_strategy is not None:
            self.compaction_strategy = compaction_strategy
        if tokenizer is not None:
            self.tokenizer = tokenizer
        if additional_properties is not None:
            self.additional_properties = dict(additional_properties)
        if otel_provider_name is not None:
            self.otel_provider_name = otel_provider_name

    @abstractmethod
    def _inner_get_response(
        self, *, messages: Sequence[Any], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        """Call the model once.

        Args:
            messages: The messages for the model, in a new list.
            stream: Whether the caller wants updates.
            options: The options of the call, in a new dict.
            **kwargs: The `client_kwargs` of the request.

        Returns:
            A `ChatResponse`, a stream of `ChatResponseUpdate`, or an awaitable of either, whatever `stream` is.
        """

    def service_url(self) -> str:
        """Return the URL of the service."""
        return "Unknown"

    def _build_response_stream(
        self,
        stream: AsyncIterable[ChatResponseUpdate] | Awaitable[AsyncIterable[ChatResponseUpdate]],
        *,
        response_format: Any = None,
    ) -> ChatStream:
        """Return a stream whose final response is made by `_finalize_response_updates`."""
        return ResponseStream(
            stream, finalizer=partial(self._finalize_response_updates, response_format=response_format)
        )

    def _finalize_response_updates(
        self, updates: Sequence[ChatResponseUpdate], *, response_format: Any = None
    ) -> ChatResponse[Any]:
        """Combine updates into a response."""
        return ChatResponse.from_updates(updates, output_format_type=response_format)

    async def _validate_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return a checked copy of options; see `validate_chat_options`."""
        return await validate_chat_options(options)

    @overload
    def get_response(
        self, messages: AgentRunInputs, *, stream: Literal[False] = ..., **more: Unpack[RequestKeywords]
    ) -> Awaitable[ChatResponse[Any]]: ...

    @overload
    def get_response(
        self, messages: AgentRunInputs, *, stream: Literal[True], **more: Unpack[RequestKeywords]
    ) -> ChatStream: ...

    @overload
    def get_response(
        self, messages: AgentRunInputs, *, stream: bool = ..., **more: Unpack[RequestKeywords]
    ) -> Awaitable[ChatResponse[Any]] | ChatStream: ...

    def get_response(  # noqa: PLR0913 - the public signature
        self,
        messages: AgentRunInputs,
        *,
        stream: bool = False,
        options: Mapping[str, Any] | None = None,
        compaction_strategy: CompactionStrategy | None = None,
        tokenizer: TokenizerProtocol | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        middleware: MiddlewareInput = None,
    ) -> Awaitable[ChatResponse[Any]] | ChatStream:
        """Answer messages, and run the tools that the model calls.

        Args:
            messages: The conversation, or one text, content or message.
            stream: Whether to return a stream of updates. The request starts with the first update.
            options: Options as in `ChatOptions`; not modified.
            compaction_strategy: Strategy for this request, instead of the client's.
            tokenizer: Tokenizer for this request, instead of the client's.
            function_invocation_kwargs: Values for tools, available in the `kwargs` of their context.
            client_kwargs: Keyword arguments for `_inner_get_response`, except `session`, `middleware` and
                `function_invocation_configuration`, which are used by this method.
            middleware: Chat and function middleware for this request, inside the client's.

        Returns:
            An awaitable of the response, or a stream of its updates.

        Raises:
            MiddlewareException: `middleware` contains an object that is neither chat nor function middleware.
            TypeError: An argument has the wrong type.
            ValueError: Two tools have the same name, or the configuration is invalid.
        """
        is_traced = is_tracing()
        arguments = sort_arguments(
            self.chat_middleware,
            self.function_middleware,
            middleware,
            options,
            function_invocation_kwargs,
            client_kwargs,
        )
        strategy, tokenizer = compaction_strategy or self.compaction_strategy, tokenizer or self.tokenizer
        continued = None if strategy is None or is_traced else continue_strategy(strategy, arguments)
        begin = list if continued is None else continued.begin
        loop = tool_loop(
            messages,
            arguments,
            self.function_invocation_configuration,
            enabled=self.FUNCTION_INVOCATION_ENABLED,
            own_messages=None if strategy is None and tokenizer is None else begin,
        )
        calls = ModelCalls(
            self,
            self._inner_get_response,
            arguments.chat,
            arguments.client_kwargs,
            arguments.for_tools,
            compaction_strategy=continued or strategy,
            tokenizer=tokenizer,
            is_traced=is_traced,
        )
        return stream_answer(loop, calls) if stream else answer(loop, calls)

    def as_agent(self, **arguments: Unpack[AgentArguments]) -> Agent:
        """Create an agent with this client.

        Args:
            **arguments: The arguments of `Agent` except the client: `instructions`, `name`, `description`, `id`,
                `tools`, `default_options`, `context_providers`, `middleware`, `compaction_strategy` and so on.

        Example:
            agent = EchoChatClient().as_agent(name="echo", instructions="Repeat what you hear.")
        """
        agents = import_module("agentbench.agents.agent.agent")  # agents are made of clients, not the reverse
        agent: Agent = agents.Agent(self, **arguments)
        return agent

    def to_dict(self, *, exclude: Collection[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """Return the public attributes and additional properties by name, without secrets."""
        found = super().to_dict(exclude=exclude, exclude_none=exclude_none)
        found.update({key: value for key, value in self.additional_properties.items() if key not in (exclude or ())})
        return cast("dict[str, Any]", without_secrets(found))

    def __repr__(self) -> str:
        model = getattr(self, "model", None)
        return f"{type(self).__name__}({f'model={model!r}' if isinstance(model, str) else ''})"


# Name of an option -> minimum and maximum; a maximum of 0 means an integer without a maximum.
_RANGES: Mapping[str, tuple[float, float]] = {
    "frequency_penalty": (-2.0, 2.0),
    "presence_penalty": (-2.0, 2.0),
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "max_tokens": (1, 0),
}


async def validate_chat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Check options, and return a copy with numbers as floats and with tools validated by `validate_tools`.

    Args:
        options: Options as in `ChatOptions`; not modified.

    Raises:
        TypeError: A numeric option has the wrong type.
        ValueError: A number is out of range: temperature 0 to 2, top_p 0 to 1, penalties -2 to 2, max_tokens greater
            than 0.

    Example:
        options = await validate_chat_options({"temperature": 1, "max_tokens": 100})
    """
    check_mapping("options", options, '{"temperature": 0.2}')
    checked = dict(options)
    for name, (least, most) in _RANGES.items():
        value = checked.get(name)
        if value is None:
            continue
        expected = f"Expected a number from {least:g} to {most:g}." if most else "Expected an integer greater than 0."
        if isinstance(value, bool) or not hasattr(value, "__float__" if most else "__index__"):
            message = f"The option {name} is {describe(value)}. {expected}"
            raise TypeError(message)
        if not least <= value <= (most or math.inf):  # NaN is outside every range
            message = f"The option {name} is {value!r}. {expected}"
            raise ValueError(message)
        if most:
            checked[name] = float(value)
    if checked.get("tools") is not None:
        checked["tools"] = await validate_tools(checked["tools"])
    return checked
