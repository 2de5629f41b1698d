"""The switch that keeps clients off the network: the environment variable `AGENTBENCH_OFFLINE`."""

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
    """Whether the environment asks to stay off the network; read anew each time. Unknown words are told."""
    said = os.environ.get(OFFLINE_VARIABLE, "")
    asks = read_flag(said)
    if asks is None:
        _warn_of(said)
    return bool(asks)


@lru_cache(maxsize=8)
def _warn_of(word: str) -> None:
    """Tell once that a word says nothing."""
    logger.warning(
        "%s is %r, so clients may go to the network. Expected true, 1, yes, on, false, 0, no or off.",
        OFFLINE_VARIABLE,
        word,
    )


def needs_network(client: Any) -> bool:
    """Whether a client would leave this machine: its class says that it needs the network, and its host is not here."""
    return bool(getattr(client, "NEEDS_NETWORK", False)) and not _is_here(client.service_url())


def require_network(client: Any) -> None:
    """Let a client through that may talk to its service now.

    Raises:
        ChatClientException: It would leave this machine while the environment asks to stay off the network.
    """
    if getattr(client, "NEEDS_NETWORK", False) and is_offline() and needs_network(client):
        message = (
            f"{type(client).__name__} would go to the network, but {OFFLINE_VARIABLE} is set to "
            f"{os.environ.get(OFFLINE_VARIABLE)!r}. Unset {OFFLINE_VARIABLE}, or use a client that works offline: "
            "OfflineChatClient, ScriptedChatClient, or CassetteChatClient with recorded answers."
        )
        raise ChatClientException(message)


def _is_here(url: str) -> bool:
    """Whether an address is on this machine's loopback."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
