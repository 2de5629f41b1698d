"""Model, address and credentials of a client, and where they are found."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import SplitResult, unquote, urlsplit

from agentbench._secrets import mask_text
from agentbench.exceptions import SettingNotFoundError
from agentbench.settings import SecretString, load_settings

ApiKey = str | SecretString | Callable[[], str | Awaitable[str]]

PREFIX = "OPENAI_"

# Endings of names that only a private network knows.
_PRIVATE_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


class OpenAISettings(TypedDict, total=False):
    """Settings of the clients; `api_key` is set by `OPENAI_API_KEY`, and so on.

    Example:
        from agentbench import OpenAISettings, load_settings

        settings = load_settings(OpenAISettings, env_prefix="OPENAI_")
    """

    api_key: SecretString | None
    org_id: str | None
    base_url: str | None
    api: str | None
    model: str | None
    chat_model: str | None
    chat_completion_model: str | None
    responses_model: str | None
    embedding_model: str | None


@dataclass(frozen=True)
class Target:
    """The model, its address without credentials, and the credentials; `None` is the SDK's own default."""

    model: str
    api_key: SecretString | Callable[[], str | Awaitable[str]] | None = None
    org_id: str | None = None
    base_url: str | None = None
    api: str | None = None  # that clients with a choice speak
    basic: SecretString | None = None  # of the header `Authorization`, where the address held a name and a password


def find_target(model: str | None, model_fields: Sequence[str], *, connected: bool = False, **arguments: Any) -> Target:
    """Return model, named by one of `model_fields`, address and credentials; these two only if not `connected`."""
    settings = load_settings(OpenAISettings, env_prefix=PREFIX, model=model, **arguments)
    chosen = model or next((name for name in map(settings.get, model_fields) if name), None)
    if not isinstance(chosen, str):
        variables = " or ".join(PREFIX + name.upper() for name in model_fields)
        message = f"No model is set. Pass model=..., or set the environment variable {variables}."
        raise SettingNotFoundError(message)
    if connected:
        return Target(chosen, api=settings["api"])
    url, basic = split_credentials(settings["base_url"]) if settings["base_url"] else (None, None)
    key = settings["api_key"]
    if not callable(key):
        key = None if key is None or not key.strip() else validate_key(key)
    if key is None and basic is None and not (url and is_private(url)):
        message = (
            f"No API key is set. Pass api_key=..., or set the environment variable {PREFIX}API_KEY. "
            "Only servers on this machine or in a private network (base_url=...) need none."
        )
        raise SettingNotFoundError(message)
    return Target(chosen, key, settings["org_id"] or None, url, settings["api"], basic)


def validate_key(key: str) -> SecretString:
    """Return the key as it can be sent in a header, or raise a `ValueError` that does not show it."""
    trimmed = key.strip()
    wrong = re.search(r"[^!-~]", trimmed)
    if wrong is not None:
        message = (
            f"The API key holds a character at position {wrong.start()} that no key has (a blank, a line break, or one "
            "beyond ASCII). Copy the key once more."
        )
        raise ValueError(message)
    return SecretString(trimmed)


def is_private(url: str) -> bool:
    """Return whether an address is on this machine or in a private network."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host != "" and ("." not in host or host.endswith(_PRIVATE_ENDINGS))
    return address.is_private or address.is_loopback or address.is_link_local


def split_credentials(url: str) -> tuple[str, SecretString | None]:
    """Return an address without name and password, which would come into logs, and the header that replaces them."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"base_url is {mask_text(url.rpartition('@')[2])!r}. Expected an address such as 'http://localhost:8000/v1'."
        raise ValueError(message)
    if parts.username is None and parts.password is None:
        return url.strip(), None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return without_credentials(url.strip()), SecretString(f"Basic {base64.b64encode(pair.encode()).decode('ascii')}")


def without_credentials(url: str) -> str:
    """Return an address without name and password."""
    return re.sub(r"^(\w+://)[^/?#]*@", r"\1", url)
