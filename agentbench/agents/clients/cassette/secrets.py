"""What must not get into a file: keys by their name, and secrets that a client holds."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MemberDescriptorType

from agentbench._secrets import is_secret_name

__all__ = ["REDACTED", "find_secret", "held_secrets", "mask_secrets"]

REDACTED = "[redacted]"

# Plain text counts as a secret only by the name of its attribute, and only where it is too long to be a stray word.
_SHORTEST_PLAIN = 8
_DEEPEST = 6
_MOST_OBJECTS = 20_000
_QUOTINGS = 3
"""How often a text may be quoted: in the line, in the arguments of a call before that, in a text within those."""


def held_secrets(*holders: object) -> frozenset[str]:
    """Find the secrets that objects hold, themselves or in what they are made of.

    These are all `SecretString`s (and what else offers `get_secret_value`), and text of eight characters and more under
    a name like `api_key`. Properties are not read and nothing is called.
    """
    found: set[str] = set()
    seen: set[int] = set()
    waiting: deque[tuple[object, str, int]] = deque((holder, "", 0) for holder in holders)  # what is near comes first
    while waiting and len(seen) < _MOST_OBJECTS:
        value, name, depth = waiting.popleft()
        text = _secret_text(value, name)
        if text is not None:
            found.add(text)
        elif depth < _DEEPEST and not _is_leaf(value) and id(value) not in seen:
            seen.add(id(value))
            waiting.extend((part, part_name or name, depth + 1) for part_name, part in _parts(value))
    return frozenset(found - {""})


def _secret_text(value: object, name: str) -> str | None:
    reveal = getattr(type(value), "get_secret_value", None)
    if callable(reveal):
        return str(reveal(value))
    if isinstance(value, str) and len(value) >= _SHORTEST_PLAIN and is_secret_name(name):
        return value
    return None


def _is_leaf(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes, int, float, type)) or type(value).__name__ == "module"


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """What an object is made of, with the names of its parts."""
    if isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in list(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (("", part) for part in list(value))
    # A function holds what it closes over: a factory `lambda: Client(key)` holds the key.
    for cell in getattr(value, "__closure__", None) or ():
        with suppress(ValueError):  # not filled yet
            yield "", cell.cell_contents
    yield from list(getattr(value, "__dict__", {}).items())
    for cls in type(value).__mro__:
        for name, part in list(cls.__dict__.items()):
            if isinstance(part, MemberDescriptorType) and not name.startswith("__"):  # what `__slots__` makes
                with suppress(AttributeError):  # not set
                    yield name, part.__get__(value)


def find_secret(text: str, secrets: Iterable[str]) -> bool:
    """Tell whether a text holds one of the secrets, as it is or quoted as JSON quotes it."""
    return any(form in text for secret in secrets for form in _forms(secret))


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret in it replaced."""
    for form in sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True):
        text = text.replace(form, REDACTED)
    return text


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in a line: quoted up to three times, in both ways that JSON writes other scripts."""
    for ascii_only in (False, True):
        form = secret
        for _ in range(_QUOTINGS + 1):
            yield form
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
