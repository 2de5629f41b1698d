"""The secrets that a client holds, which must not get into a file."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import MemberDescriptorType
from typing import Any, cast

from agentbench._secrets import is_secret, is_secret_name

__all__ = ["REDACTED", "contains_secret", "find_secrets", "mask_secrets"]

REDACTED = "[redacted]"

# Plain text counts as a secret only by the name of its attribute, and only where it is too long to be a stray word.
_SHORTEST_PLAIN = 8
_DEEPEST = 6
_MOST_OBJECTS = 20_000
_QUOTINGS = 3
"""How often a text may be quoted: in the line, in the arguments of a call before that, in a text within those."""


def find_secrets(*holders: object) -> frozenset[str]:
    """Return the secrets that objects hold, themselves or in what they are made of.

    These are all `SecretString`s (and what else offers `get_secret_value`), and text of eight characters and more under
    a name like `api_key`. Properties are not read and nothing is called.
    """
    found: set[str] = set()
    visited: set[int] = set()
    queue: deque[tuple[object, str, int]] = deque((holder, "", 0) for holder in holders)  # near ones come first
    while queue and len(visited) < _MOST_OBJECTS:
        value, name, depth = queue.popleft()
        if is_secret(value):
            found.add(str(cast(Any, value).get_secret_value()))
        elif isinstance(value, str):
            if len(value) >= _SHORTEST_PLAIN and is_secret_name(name):
                found.add(value)
        elif depth < _DEEPEST and id(value) not in visited and not _is_leaf(value):
            visited.add(id(value))
            queue.extend((part, part_name or name, depth + 1) for part_name, part in _parts(value))
    return frozenset(found - {""})


def _is_leaf(value: object) -> bool:
    return value is None or isinstance(value, (bytes, int, float, type)) or type(value).__name__ == "module"


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """The values that an object is made of, with their names."""
    if isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in list(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (("", part) for part in list(value))
    # A function holds what it closes over: a factory `lambda: Client(key)` holds the key.
    for cell in getattr(value, "__closure__", None) or ():
        with suppress(ValueError):  # not filled yet
            yield "", cell.cell_contents
    yield from list(getattr(value, "__dict__", {}).items())
    for name, slot in _slots(cast(Any, type(value))):
        with suppress(AttributeError):  # not set
            yield name, slot.__get__(value)


@lru_cache(maxsize=1024)
def _slots(cls: type) -> list[tuple[str, MemberDescriptorType]]:
    entries = [entry for base in cls.__mro__ for entry in base.__dict__.items()]
    return [(name, slot) for name, slot in entries if isinstance(slot, MemberDescriptorType) and name[:2] != "__"]


def contains_secret(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a text contains one of the secrets, as it is or quoted as JSON quotes it."""
    return any(form in text for secret in secrets for form in _quoted_forms(secret))


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret in it replaced."""
    for form in sorted({form for secret in secrets for form in _quoted_forms(secret)}, key=len, reverse=True):
        text = text.replace(form, REDACTED)
    return text


def _quoted_forms(secret: str) -> Iterator[str]:
    """A secret as it may be in a line: quoted up to three times, in both ways that JSON writes other scripts."""
    for ascii_only in (False, True):
        form = secret
        for _ in range(_QUOTINGS + 1):
            yield form
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
