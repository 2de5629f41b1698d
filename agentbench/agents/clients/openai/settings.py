"""Model, address and credentials of a client, and where they are found."""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict
from urllib.parse import SplitResult, unquote, urlsplit

from agentbench.exceptions import SettingNotFoundError
from agentbench.settings import SecretString, load_settings

ApiKey = str | SecretString | Callable[[], "str | Awaitable[str]"]

PREFIX = "OPENAI_"

# Endings of names that only a private network knows.
_PRIVATE_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


class OpenAISettings(TypedDict, total=False):
    """What may be set by variables; `api_key` by `OPENAI_API_KEY`, and so on."""

    api_key: SecretString | None
    org_id: str | None
    base_url: str | None
    model: str | None
    chat_model: str | None
    chat_completion_model: str | None
    responses_model: str | None
    embedding_model: str | None


@dataclass(frozen=True)
class Target:
    """The model, its address, and the credentials.

    Attributes:
        model: The model, or the deployment.
        api_key: The key, or a function that returns it before each request; `None`: the server needs none.
        org_id: The organisation that pays.
        base_url: The address without credentials; `None`: the SDK's own default.
        basic: Value of the header `Authorization`, where the address held a name and a password.
    """

    model: str
    api_key: SecretString | Callable[[], str | Awaitable[str]] | None = None
    org_id: str | None = None
    base_url: str | None = None
    basic: SecretString | None = None


def find_target(  # noqa: PLR0913 - one argument per setting
    model: str | None,
    model_fields: Sequence[str],
    *,
    api_key: ApiKey | None = None,
    org_id: str | None = None,
    base_url: str | None = None,
    env_file_path: str | os.PathLike[str] | None = None,
    env_file_encoding: str | None = None,
    connected: bool = False,
) -> Target:
    """Find model, address and credentials: in arguments, else a `.env` file, else the environment.

    Args:
        model: The model; `None`: from the settings.
        model_fields: Fields of the settings that may name the model, in order.
        api_key: The key; `None`: from the settings.
        org_id: The organisation; `None`: from the settings.
        base_url: The address; `None`: from the settings.
        env_file_path: A file of settings.
        env_file_encoding: Of that file.
        connected: Whether there is a connection already, so that neither key nor address is needed.

    Raises:
        SettingNotFoundError: There is no model, or no key for a server that may need one.
        ValueError: The address is none, or the key holds characters that cannot be sent.
    """
    settings = load_settings(
        OpenAISettings,
        env_prefix=PREFIX,
        env_file_path=env_file_path,
        env_file_encoding=env_file_encoding,
        model=model,
        api_key=api_key,
        org_id=org_id,
        base_url=base_url,
    )
    chosen = model or next((name for name in map(settings.get, model_fields) if name), None)
    if not isinstance(chosen, str):
        variables = " or ".join(PREFIX + name.upper() for name in model_fields)
        message = f"No model is set. Pass model=..., or set the environment variable {variables}."
        raise SettingNotFoundError(message)
    if connected:
        return Target(chosen)
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
    return Target(chosen, key, settings["org_id"] or None, url, basic)


def validate_key(key: str) -> SecretString:
    """Return the key as it can be sent in a header.

    Raises:
        ValueError: It holds blanks, line breaks or characters beyond ASCII. The message does not show it.
    """
    trimmed = key.strip()
    for position, character in enumerate(trimmed):
        if not "!" <= character <= "~":
            message = (
                f"The API key holds a character at position {position} that no key has (a blank, a line break, or one "
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
    """Take name and password out of an address, because HTTP libraries write addresses into their logs.

    Returns:
        The address without them, and the header `Authorization` that replaces them.

    Raises:
        ValueError: This is no address of a server.
    """
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"base_url is {url.rpartition('@')[2]!r}. Expected an address such as 'http://localhost:8000/v1'."
        raise ValueError(message)
    if parts.username is None and parts.password is None:
        return url.strip(), None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return without_credentials(url.strip()), SecretString(f"Basic {base64.b64encode(pair.encode()).decode('ascii')}")


def without_credentials(url: str) -> str:
    """Return an address without credentials, for errors and logs."""
    return re.sub(r"^(\w+://)[^/?#]*@", r"\1", url)
