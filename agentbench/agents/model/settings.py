"""Settings shared by a client and its layers: limits of the tool loop, and middleware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.middleware.bases import MiddlewareType
from agentbench.agents.middleware.sorting import SortedMiddleware, flat_middleware, sort_middleware
from agentbench.exceptions import MiddlewareException

if TYPE_CHECKING:
    from agentbench.agents.middleware.bases import MiddlewareInput

Middleware = tuple[Callable[..., Any], ...]


class ClientSettings:
    """Editable settings, created at first use because subclasses may not call the constructor."""

    function_invocation_configuration: FunctionInvocationConfiguration = cast(
        "Any", cached_property(lambda _: normalize_function_invocation_configuration())
    )
    chat_middleware: list[Any] = cast("Any", cached_property(lambda _: []))
    function_middleware: list[Any] = cast("Any", cached_property(lambda _: []))

    @property
    def middleware(self) -> MiddlewareInput:
        """All middleware in one list. Assigning sorts the members into the two lists and keeps their order."""
        chat, function = flat_middleware(self.chat_middleware), flat_middleware(self.function_middleware)
        return [*chat, *(one for one in function if not any(one is other for other in chat))]

    @middleware.setter
    def middleware(self, middleware: MiddlewareInput) -> None:
        kinds = [(one, _sort_for_client([one])) for one in flat_middleware(middleware)]
        self.chat_middleware = [one for one, kind in kinds if kind.chat]
        self.function_middleware = [one for one, kind in kinds if kind.function]


def sort_client_middleware(
    chat: Sequence[Any], function: Sequence[Any], *middleware: Any
) -> tuple[Middleware, Middleware]:
    """Return a request's chat and function middleware: the client's lists, then the others by kind."""
    kinds = _sort_for_client(*middleware)
    return (*_members("chat", chat), *kinds.chat), (*_members("function", function), *kinds.function)


def _sort_for_client(*middleware: Any, otherwise: MiddlewareType | None = None) -> SortedMiddleware:
    kinds = sort_middleware(*middleware, otherwise=otherwise)
    if kinds.agent:
        message = (
            f"A chat client got the agent middleware {kinds.agent[0]!r}, but it only calls models and tools: "
            "pass agent middleware to the agent or to its run."
        )
        raise MiddlewareException(message)
    return kinds


def _members(kind: str, middleware: Sequence[Any]) -> list[Callable[..., Any]]:
    """Return the callables for the members of a client's list, which must all be of one kind."""
    functions: list[Callable[..., Any]] = []
    for one in flat_middleware(middleware):
        calls: Middleware = getattr(_sort_for_client([one], otherwise=MiddlewareType(kind)), kind)
        if not calls:
            message = (
                f"{kind}_middleware of a client contains {one!r}. Expected only {kind} middleware: use the other list."
            )
            raise MiddlewareException(message)
        functions += calls
    return functions
