"""Which names and which values are secret: the one list by which spans, logs, cassettes, errors and views mask."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = ["is_secret", "is_secret_class", "is_secret_name", "is_secret_parameter", "without_secrets"]

# Whole words of a name, so that `token` is secret and `max_tokens` is not.
_WORDS = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "headers",
        "jwt",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
        "token",
    }
)
_PARTS = ("api_key", "apikey", "access_key", "private_key", "client_secret", "headers")

_SEPARATORS = re.compile(r"[\W_\d]+")
_SEPARATORS_AND_HUMPS = re.compile(r"[\W_\d]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_secret_name(name: object) -> bool:
    """Return whether a key of a mapping, a field, an option or a header names a value that must not be displayed.

    Case, `-`, `_` and digits do not count, and names may be written in humps: `X-API-Key`, `accessToken`.
    """
    if isinstance(name, bytes):
        name = name.decode("latin-1")
    return isinstance(name, str) and _is_secret_text(name)


@lru_cache(maxsize=4096)
def _is_secret_text(name: str) -> bool:
    # `passWord` is one word, `clientSecret` are two: both ways of reading count.
    spellings = [separators.sub("_", name).lower() for separators in (_SEPARATORS, _SEPARATORS_AND_HUMPS)]
    # How many there are is not secret: `input_token_count`.
    return not spellings[1].endswith("_count") and any(
        any(part in spelling for part in _PARTS) or not _WORDS.isdisjoint(spelling.split("_")) for spelling in spellings
    )


def is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of a database address is secret; such names run words together (`sslpassword`)."""
    lowered = name.lower()
    return is_secret_name(name) or "key" in lowered or any(word in lowered for word in _WORDS)


def is_secret(value: object) -> bool:
    """Return whether a value is secret by its class, as `SecretString` and pydantic's `SecretStr` are."""
    return is_secret_class(type(value))


def is_secret_class(cls: object) -> bool:
    """Return whether a class hides its values: they are revealed by `get_secret_value()` alone."""
    return isinstance(cls, type) and callable(getattr(cls, "get_secret_value", None))


def without_secrets(value: Any) -> Any:
    """Return a copy of a plain value without the entries under secret names, with secret values as their `repr`."""
    if is_secret(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): without_secrets(item) for key, item in value.items() if not is_secret_name(key)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [without_secrets(item) for item in value]
    return value
