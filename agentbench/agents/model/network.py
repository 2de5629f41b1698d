"""The environment variable `AGENTBENCH_OFFLINE`, which forbids clients to use the network."""

from __future__ import annotations

import ipaddress
import logging
import os
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from agentbench.exceptions import ChatClientException
from agentbench.settings import read_flag

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


def _is_here(url: str) -> bool:
    """Return whether a URL points to the loopback interface."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
