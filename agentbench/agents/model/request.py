"""What a caller handed to `get_response`, taken apart and put together for the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from agentbench.agents.arguments import check_run_arguments
from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.loop.loop import Request
from agentbench.agents.middleware.sorting import sort_middleware
from agentbench.agents.tools.collection import normalize_tools
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import MiddlewareException
from agentbench.messages.inputs import AgentRunInputs, normalize_messages

_NOTHING: Mapping[str, Any] = {}
_COMPLETE = normalize_function_invocation_configuration().keys()
_USED_HERE = ("session", "middleware", "function_invocation_configuration")


class Given(NamedTuple):
    """The arguments of a request.

    Attributes:
        chat: Chat middleware, outermost first.
        function: Function middleware, likewise.
        options: A dict of its own, its tools normalised.
        arguments: What the run hands to its tools.
        client_kwargs: For the client's hook.
        session: Of the run, if any.
        configuration: What this request has otherwise than its client.
    """

    chat: tuple[Callable[..., Any], ...]
    function: tuple[Callable[..., Any], ...]
    options: dict[str, Any]
    arguments: Mapping[str, Any]
    client_kwargs: Mapping[str, Any]
    session: Any
    configuration: Mapping[str, Any] | None

    @classmethod
    def of(
        cls,
        own_middleware: Any,
        middleware: Any,
        options: Mapping[str, Any] | None,
        function_invocation_kwargs: Mapping[str, Any] | None,
        client_kwargs: Mapping[str, Any] | None,
    ) -> Given:
        """Take the arguments of `get_response` apart.

        Args:
            own_middleware: The client's.
            middleware: Of the request; it comes after that of `client_kwargs`.
            options: As given.
            function_invocation_kwargs: As given; the option `additional_function_arguments` is stronger.
            client_kwargs: As given.

        Raises:
            MiddlewareException: Some middleware is neither for calls of a model nor for calls of a tool.
            TypeError: Options or keywords are no mapping.
        """
        check_run_arguments(None, options, function_invocation_kwargs, client_kwargs)
        own_options = dict(options) if options else {}
        arguments = function_invocation_kwargs or _NOTHING
        if own_options:
            more = own_options.pop("additional_function_arguments", None)
            if more:
                arguments = {**arguments, **more}
            tools = own_options.get("tools")
            if tools is not None:
                is_normal = type(tools) is list and all(isinstance(tool, FunctionTool) for tool in tools)
                own_options["tools"] = list(tools) if is_normal else normalize_tools(tools)
        if not client_kwargs:
            chat, function = take_apart(own_middleware, middleware)
            return cls(chat, function, own_options, arguments, _NOTHING, None, None)
        session = client_kwargs.get("session")
        chat, function = take_apart(own_middleware, client_kwargs.get("middleware"), middleware)
        return cls(
            chat,
            function,
            own_options,
            arguments if session is None else {**arguments, "session": session},
            {key: value for key, value in client_kwargs.items() if key not in _USED_HERE},
            session,
            client_kwargs.get("function_invocation_configuration"),
        )


def take_apart(*middleware: Any) -> tuple[tuple[Callable[..., Any], ...], tuple[Callable[..., Any], ...]]:
    """Return the chat and the function middleware among what was given.

    Raises:
        MiddlewareException: Something is of another kind, or of none.
    """
    if not any(one is not None and one != () for one in middleware):
        return (), ()
    found = sort_middleware(*middleware)
    if found.agent:
        message = (
            f"A chat client was given the agent middleware {found.agent[0]!r}. It calls models and tools, and runs no "
            "agent: give agent middleware to the agent, or to its run."
        )
        raise MiddlewareException(message)
    return found.chat, found.function


def loop_request(
    messages: AgentRunInputs,
    given: Given,
    configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None,
    *,
    enabled: bool = True,
    own_messages: bool = False,
) -> Request:
    """Return what the loop is started with.

    Args:
        messages: As given.
        given: The other arguments.
        configuration: The client's; what the request has otherwise is stronger.
        enabled: `False`: the model is asked once, whatever the configuration says.
        own_messages: Whether messages are marked on their way.

    Raises:
        ValueError: The configuration is not valid.
    """
    if given.configuration or configuration is None or not configuration.keys() >= _COMPLETE:
        # What a client keeps was checked when it was made; this is new, or was put there since.
        configuration = normalize_function_invocation_configuration(
            {**(configuration or {}), **(given.configuration or {})}
        )
    checked = cast("FunctionInvocationConfiguration", configuration)
    if not enabled:
        checked = {**checked, "enabled": False}
    return Request(
        normalize_messages(messages),
        given.options,
        checked,
        given.function,
        given.session,
        given.arguments,
        own_messages,
    )
