"""The loop and the chat middleware as mixins, for clients of any make.

Over a `BaseChatClient`, which does all of it itself, a mixin takes its keywords and does nothing else. Over a class
with a `get_response` of its own it does its part around that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.loop.loop import ToolLoop, answer
from agentbench.agents.loop.streaming import stream_answer
from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.model.model_call import CallSettings, ModelCalls
from agentbench.agents.model.request import Given, loop_request, take_apart


class ChatMiddlewareLayer:
    """Chat middleware around each `get_response` of the class that comes next.

    Args:
        *args: For the next class.
        middleware: Chat middleware, outermost first.
        **kwargs: For the next class.
    """

    middleware: Any = ()

    def __init__(self, *args: Any, middleware: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if middleware is not None:
            take_apart(middleware)
            self.middleware = middleware

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        """Ask the next class, with chat middleware around it; arguments as in `SupportsChatGetResponse`."""
        inner: Callable[..., Any] = cast("Any", super()).get_response
        if isinstance(self, BaseChatClient):
            return inner(messages, stream=stream, options=options, **more)
        arguments = _Arguments.of(self, options, more)
        given, chat = arguments.given, arguments.given.chat
        inner = _asked_with(
            inner, arguments.passed_on(given.function, to_layer=_comes_later(self, ChatMiddlewareLayer))
        )
        settings = CallSettings(self, inner, (*take_apart(self.middleware)[0], *chat), is_traced=False)
        request = loop_request(messages, given, None, enabled=False)
        return _run(ToolLoop(request), ModelCalls(settings), stream=stream)


class FunctionInvocationLayer:
    """The loop between a model and its tools, around the `get_response` of the class that comes next.

    Args:
        *args: For the next class.
        middleware: Function middleware, outermost first; and chat middleware, for a `ChatMiddlewareLayer`.
        function_invocation_configuration: How far the loop may go.
        **kwargs: For the next class.
    """

    middleware: Any = ()
    function_invocation_configuration: Any = None
    FUNCTION_INVOCATION_ENABLED = True

    def __init__(
        self,
        *args: Any,
        middleware: Any = None,
        function_invocation_configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if middleware is not None:
            take_apart(middleware)
            self.middleware = middleware
        if function_invocation_configuration is not None:
            self.function_invocation_configuration = normalize_function_invocation_configuration(
                function_invocation_configuration
            )

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        """Ask the next class until it has no more calls; arguments as in `SupportsChatGetResponse`."""
        inner: Callable[..., Any] = cast("Any", super()).get_response
        if isinstance(self, BaseChatClient):
            return inner(messages, stream=stream, options=options, **more)
        arguments = _Arguments.of(self, options, more)
        given = arguments.given
        function = (*take_apart(self.middleware)[1], *given.function)
        inner = _asked_with(
            inner, arguments.passed_on(given.chat, to_layer=_comes_later(self, FunctionInvocationLayer))
        )
        settings = CallSettings(self, inner, is_traced=False)
        request = loop_request(
            messages,
            given._replace(function=function),
            self.function_invocation_configuration,
            enabled=self.FUNCTION_INVOCATION_ENABLED,
        )
        return _run(ToolLoop(request), ModelCalls(settings), stream=stream)


class _Arguments(NamedTuple):
    """The arguments of a request to a layer.

    Attributes:
        given: Taken apart; its middleware is that of the request alone.
        more: Those that the layer has no use for, as far as they have a value.
    """

    given: Given
    more: dict[str, Any]

    @classmethod
    def of(cls, layer: Any, options: Any, more: dict[str, Any]) -> _Arguments:
        given = Given.of(
            None,
            more.pop("middleware", None),
            options,
            more.pop("function_invocation_kwargs", None),
            more.pop("client_kwargs", None),
        )
        return cls(given, {name: value for name, value in more.items() if value is not None})

    def passed_on(self, middleware: tuple[Any, ...], *, to_layer: bool) -> dict[str, Any]:
        """Return the keywords for the next class; what only layers know is for one that comes later."""
        client_kwargs = dict(self.given.client_kwargs)
        passed = dict(self.more)
        if to_layer:
            client_kwargs.update({"middleware": middleware} if middleware else {})
            client_kwargs.update({"session": self.given.session} if self.given.session is not None else {})
            if self.given.arguments:
                passed["function_invocation_kwargs"] = self.given.arguments
        if client_kwargs:
            passed["client_kwargs"] = client_kwargs
        return passed


def _asked_with(get_response: Callable[..., Any], passed: Mapping[str, Any]) -> Callable[..., Any]:
    def ask(*, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        return get_response(messages, stream=stream, options=options, **passed)

    return ask


def _run(loop: ToolLoop, calls: ModelCalls, *, stream: bool) -> Any:
    return stream_answer(loop, calls) if stream else answer(loop, calls)


def _comes_later(layer: object, than: type) -> bool:
    """Whether the other layer stands between this one and the class that asks the model."""
    order = type(layer).__mro__
    other = FunctionInvocationLayer if than is ChatMiddlewareLayer else ChatMiddlewareLayer
    return other in order and order.index(other) > order.index(than)
