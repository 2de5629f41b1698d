"""Find the model, URL and credentials of a client."""

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

# Suffixes of host names in private networks.
_PRIVATE_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


class OpenAISettings(TypedDict, total=False):
    """Settings of the clients; `api_key` is set by `OPENAI_API_KEY`, and so on.

    Example:
        from agentbench import load_settings
        from agentbench.openai import OpenAISettings

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
    """The model, the URL without credentials, and the credentials; `None` means the SDK's default."""

    model: str
    api_key: SecretString | Callable[[], str | Awaitable[str]] | None = None
    org_id: str | None = None
    base_url: str | None = None
    api: str | None = None
    """The API to use, for clients that support several."""
    basic: SecretString | None = (
        None  # value of the `Authorization` header, if the URL contained user name and password
    )


def find_target(model: str | None, model_fields: Sequence[str], *, connected: bool = False, **arguments: Any) -> Target:
    """Return the model (from one of `model_fields`) and, unless `connected`, URL and credentials."""
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
            "In a notebook, ApiKey of agentbench.notebook asks for it. Only servers on this machine or in a private "
            "network (base_url=...) need none."
        )
        raise SettingNotFoundError(message)
    return Target(chosen, key, settings["org_id"] or None, url, settings["api"], basic)


def validate_key(key: str) -> SecretString:
    """Return the key in a form for headers, or raise a `ValueError` that does not show it."""
    trimmed = key.strip()
    wrong = re.search(r"[^!-~]", trimmed)
    if wrong is not None:
        message = (
            f"The API key contains an invalid character at position {wrong.start()} (a space, a line break, or a "
            "character outside ASCII). Copy the key again."
        )
        raise ValueError(message)
    return SecretString(trimmed)


def is_private(url: str) -> bool:
    """Return whether a URL is on this machine or in a private network."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host != "" and ("." not in host or host.endswith(_PRIVATE_ENDINGS))
    return address.is_private or address.is_loopback or address.is_link_local


def split_credentials(url: str) -> tuple[str, SecretString | None]:
    """Split user name and password from a URL, so that they are not logged; return them as a header value."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = (
            f"base_url is {mask_text(url.rpartition('@')[2])!r}. Expected a URL such as 'http://localhost:8000/v1'."
        )
        raise ValueError(message)
    if parts.username is None and parts.password is None:
        return url.strip(), None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return without_credentials(url.strip()), SecretString(f"Basic {base64.b64encode(pair.encode()).decode('ascii')}")


def without_credentials(url: str) -> str:
    """Return a URL without user name and password."""
    return re.sub(r"^(\w+://)[^/?#]*@", r"\1", url)
