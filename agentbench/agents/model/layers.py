"""The tool loop and the chat middleware as mixins, for clients that do not derive from `BaseChatClient`.

`BaseChatClient` has both built in; there, a mixin only accepts its keyword arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, cast

from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.loop.loop import answer, stream_answer
from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.model.request import ModelCalls, RequestArguments, sort_arguments, tool_loop
from agentbench.agents.model.settings import ClientSettings
from agentbench.messages.options import OptionsCoT


class _ClientLayer(ClientSettings, Generic[OptionsCoT]):
    """Accepts the middleware of both layers. Lists and configuration may be edited between requests."""

    def __init__(self, *args: Any, middleware: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if middleware is not None:
            self.middleware = middleware


class ChatMiddlewareLayer(_ClientLayer[OptionsCoT], Generic[OptionsCoT]):
    """Runs chat middleware around each `get_response` of the next class.

    Args:
        middleware: Chat middleware, outermost first.
        *args, **kwargs: Arguments for the next class.

    Raises:
        MiddlewareException: `middleware` contains an object that is neither chat nor function middleware.

    Example:
        class Parrot:
            async def get_response(self, messages, *, stream=False, options=None, **kwargs):
                return ChatResponse(text=messages[-1].text)


        class Logged(ChatMiddlewareLayer, Parrot):
            pass


        response = await Logged(middleware=[]).get_response("hello")
    """

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        """Call the next class inside chat middleware; arguments as in `SupportsChatGetResponse`."""
        inner: Callable[..., Any] = cast("Any", super()).get_response
        if isinstance(self, BaseChatClient):
            return inner(messages, stream=stream, options=options, **more)
        arguments, other = _sort_keywords(self.chat_middleware, (), options, more)
        has_layer = _is_before(self, ChatMiddlewareLayer, FunctionInvocationLayer)
        keywords = _keywords_for_next(arguments, other, arguments.function, has_layer=has_layer)
        calls = ModelCalls(self, _as_hook(inner, keywords), arguments.chat, is_limited=not has_layer)
        loop = tool_loop(messages, arguments, None, enabled=False)
        return stream_answer(loop, calls) if stream else answer(loop, calls)


class FunctionInvocationLayer(_ClientLayer[OptionsCoT], Generic[OptionsCoT]):
    """Runs the tool loop around the `get_response` of the next class.

    Args:
        middleware: Function middleware, outermost first, and chat middleware for a `ChatMiddlewareLayer`.
        function_invocation_configuration: Limits of the loop; see `FunctionInvocationConfiguration`.
        *args, **kwargs: Arguments for the next class.

    Raises:
        MiddlewareException: `middleware` contains an object that is neither chat nor function middleware.
        ValueError: The configuration is invalid.

    Example:
        class Parrot:
            async def get_response(self, messages, *, stream=False, options=None, **kwargs):
                return ChatResponse(text=messages[-1].text)


        class WithTools(FunctionInvocationLayer, Parrot):
            pass


        response = await WithTools().get_response("hello")
    """

    FUNCTION_INVOCATION_ENABLED = True

    def __init__(
        self,
        *args: Any,
        function_invocation_configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if function_invocation_configuration is not None:
            self.function_invocation_configuration = normalize_function_invocation_configuration(
                function_invocation_configuration
            )

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        """Call the next class until the model requests no more tools; arguments as in `SupportsChatGetResponse`."""
        inner: Callable[..., Any] = cast("Any", super()).get_response
        if isinstance(self, BaseChatClient):
            return inner(messages, stream=stream, options=options, **more)
        arguments, other = _sort_keywords((), self.function_middleware, options, more)
        has_layer = _is_before(self, FunctionInvocationLayer, ChatMiddlewareLayer)
        keywords = _keywords_for_next(arguments, other, arguments.chat, has_layer=has_layer)
        configuration = self.function_invocation_configuration
        loop = tool_loop(messages, arguments, configuration, enabled=self.FUNCTION_INVOCATION_ENABLED)
        calls = ModelCalls(self, _as_hook(inner, keywords), is_limited=not has_layer)
        return stream_answer(loop, calls) if stream else answer(loop, calls)


def _sort_keywords(
    chat: Sequence[Any], function: Sequence[Any], options: Any, keywords: dict[str, Any]
) -> tuple[RequestArguments, dict[str, Any]]:
    """Return the arguments of a request, and the other keywords with a value."""
    names = ("middleware", "function_invocation_kwargs", "client_kwargs")
    middleware, for_tools, client_kwargs = (keywords.pop(name, None) for name in names)
    arguments = sort_arguments(chat, function, middleware, options, for_tools, client_kwargs)
    return arguments, {name: value for name, value in keywords.items() if value is not None}


def _keywords_for_next(
    arguments: RequestArguments, other: dict[str, Any], middleware: tuple[Any, ...], *, has_layer: bool
) -> dict[str, Any]:
    """Return the keywords for the next class; keywords for layers are passed only if a later class is a layer."""
    client_kwargs, keywords = dict(arguments.client_kwargs), dict(other)
    if has_layer:
        client_kwargs.update({"middleware": middleware} if middleware else {})
        client_kwargs.update({"session": arguments.session} if arguments.session is not None else {})
        client_kwargs.update({} if arguments.standing is None else {"standing_approvals": arguments.standing})
        if arguments.for_tools:
            keywords["function_invocation_kwargs"] = arguments.for_tools
    if client_kwargs:
        keywords["client_kwargs"] = client_kwargs
    return keywords


def _as_hook(get_response: Callable[..., Any], keywords: Mapping[str, Any]) -> Callable[..., Any]:
    def call(*, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        return get_response(messages, stream=stream, options=options, **keywords)

    return call


def _is_before(layer: object, cls: type, other: type) -> bool:
    """Return whether `other` is a layer between `cls` and the class that calls the model."""
    order = type(layer).__mro__
    return other in order and order.index(other) > order.index(cls)
