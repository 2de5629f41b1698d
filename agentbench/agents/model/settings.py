"""Settings of clients: limits of the tool loop, middleware, and whether the network may be used."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench.agents.loop.configuration import (
    FunctionInvocationConfiguration,
    normalize_function_invocation_configuration,
)
from agentbench.agents.middleware.contexts import MiddlewareType
from agentbench.agents.middleware.sorting import SortedMiddleware, flat_middleware, sort_middleware
from agentbench.exceptions import ChatClientException, MiddlewareException
from agentbench.settings import read_flag

if TYPE_CHECKING:
    from agentbench.agents.middleware.contexts import MiddlewareInput

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


logger = logging.getLogger("agentbench")

OFFLINE_VARIABLE: Final = "AGENTBENCH_OFFLINE"


def is_offline() -> bool:
    """Return whether the environment currently forbids the network. Unknown values are logged once."""
    word = os.environ.get(OFFLINE_VARIABLE, "")
    flag = read_flag(word)
    if flag is None:
        _warn_of(word)
    return bool(flag)


@lru_cache(maxsize=8)
def _warn_of(word: str) -> None:
    logger.warning(
        "%s is %r, so clients may use the network. Expected true, 1, yes, on, false, 0, no or off.",
        OFFLINE_VARIABLE,
        word,
    )


def needs_network(client: Any) -> bool:
    """Return whether a client needs the network: its class says so, and its host is another machine."""
    return bool(getattr(client, "NEEDS_NETWORK", False)) and not _is_here(client.service_url())


def require_network(client: Any) -> None:
    """Raise a `ChatClientException` if a client needs the network and the environment forbids it."""
    if getattr(client, "NEEDS_NETWORK", False) and is_offline() and needs_network(client):
        message = (
            f"{type(client).__name__} needs the network, but {OFFLINE_VARIABLE} is set to "
            f"{os.environ.get(OFFLINE_VARIABLE)!r}. Unset {OFFLINE_VARIABLE}, or use a client that works offline: "
            "OfflineChatClient, ScriptedChatClient, or CassetteChatClient with recorded answers."
        )
        raise ChatClientException(message)


def service_key(client: Any) -> str:
    """Return the service and the model of a client as text; equal for equal clients in other objects and processes.

    A client without a URL is identified by the name of its class.
    """
    read_url = getattr(client, "service_url", None)
    url = read_url() if callable(read_url) else "Unknown"
    model = getattr(client, "model", None)
    service = type(client).__name__ if url == "Unknown" else url
    return f"{service} {model}" if isinstance(model, str) else service


def _is_here(url: str) -> bool:
    """Return whether a URL points to the loopback interface."""
    # Loaded here, because only clients of services are asked for their URL.
    import ipaddress  # noqa: PLC0415
    from urllib.parse import urlsplit  # noqa: PLC0415

    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
