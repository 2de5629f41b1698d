"""What must not get into a file: keys by their name, secrets that a client holds, text that a user wants gone."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any

from agentbench.messages.content import KINDS

__all__ = ["REDACTED", "Redaction", "find_secret", "held_secrets", "mask_secrets", "without_secret_keys"]

REDACTED = "[redacted]"

_SECRET_NAMES = ("authorization", "api_key", "apikey", "headers", "password", "token")
_SECRET_NAME = re.compile(rf"(?:^|_)(?:{'|'.join(_SECRET_NAMES)})(?:_|$)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Plain text counts as a secret only by the name of its attribute, and only where it is too long to be a stray word.
_SHORTEST_PLAIN = 8
_DEEPEST = 6
_MOST_OBJECTS = 20_000
_QUOTINGS = 3
"""How often a text may be quoted: in the line, in the arguments of a call before that, in a text within those."""


_WORDS: dict[str, Collection[object]] = {
    "type": [*KINDS, "message", "chat_response", "chat_response_update", "citation", "text_span"],
    "role": ["system", "developer", "user", "assistant", "tool"],
    "finish_reason": ["stop", "length", "tool_calls", "content_filter"],
}


def is_secret_key(name: object) -> bool:
    """Tell whether a key is named like something that is never written, in any case, with `-` for `_` or without."""
    text = str(name)
    spellings = (text, _CAMEL.sub("_", text))  # of `passWord` and `accessToken`
    return any(_SECRET_NAME.search(spelling.lower().replace("-", "_")) for spelling in spellings)


def without_secret_keys(value: Any) -> Any:
    """Return a plain value without every key, however deep, that is named like a secret."""
    if isinstance(value, dict):
        return {key: without_secret_keys(item) for key, item in value.items() if not is_secret_key(key)}
    if isinstance(value, list):
        return [without_secret_keys(item) for item in value]
    return value


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
    if isinstance(value, str) and len(value) >= _SHORTEST_PLAIN and is_secret_key(name):
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


class Redaction:
    """Replaces text by `[redacted]`.

    Args:
        patterns: Text that is meant as it stands, and compiled patterns.

    Raises:
        TypeError: If one is neither.
    """

    __slots__ = ("_patterns",)

    def __init__(self, patterns: str | re.Pattern[str] | Iterable[str | re.Pattern[str]]) -> None:
        given: tuple[object, ...] = (patterns,) if isinstance(patterns, (str, re.Pattern)) else tuple(patterns)
        self._patterns = tuple(_compiled(pattern) for pattern in given if pattern != "")

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def text(self, text: str) -> str:
        """Return a text with everything replaced that a pattern finds; what was replaced before stays as it is."""
        for pattern in self._patterns:
            text = REDACTED.join(pattern.sub(REDACTED, piece) for piece in text.split(REDACTED))
        return text

    def value(self, value: Any) -> Any:
        """Return a plain value with the texts in it replaced. Keys stay, and the words that say what something is."""
        if not self._patterns:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                key: item if key in _WORDS and item in _WORDS[key] else self.value(item) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def updates(self, updates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a stream's updates with their texts replaced, also where a text lies across several of them."""
        if not self._patterns:
            return updates
        runs: dict[tuple[object, ...], list[tuple[dict[str, Any], str]]] = {}
        copied: list[dict[str, Any]] = []
        call_id = ""
        for update in updates:
            contents = [dict(content) for content in update.get("contents", ())]
            copied.append({**update, "contents": contents} if contents else dict(update))
            for content in contents:
                call_id = content.get("call_id") or call_id  # only the first piece of a call has it
                for name in ("text", "arguments", "protected_data"):
                    if isinstance(content.get(name), str):
                        place = (name, update.get("message_id"), *_call_of(content, call_id))
                        runs.setdefault(place, []).append((content, name))
        for run in runs.values():
            self._replace_across(run)
        return [self.value(update) for update in copied]

    def _replace_across(self, run: list[tuple[dict[str, Any], str]]) -> None:
        pieces = [content[name] for content, name in run]
        whole = self.text("".join(pieces))
        if whole != "".join(map(self.text, pieces)):
            # What was found lies across pieces: the first one gets all of the text, so that none of it stays behind.
            for content, name in run:
                content[name] = ""
            content, name = run[0]
            content[name] = whole


def _compiled(pattern: object) -> re.Pattern[str]:
    if isinstance(pattern, str):
        return re.compile(re.escape(pattern))
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return pattern
    message = f"redact holds {type(pattern).__name__}; expected text, and patterns for text of `re.compile`."
    raise TypeError(message)


def _call_of(content: dict[str, Any], call_id: str) -> tuple[object, ...]:
    """Which call a piece of arguments belongs to: by its index in the stream where there is one, else the newest."""
    if content.get("type") != "function_call":
        return (content.get("type"),)
    index = (content.get("additional_properties") or {}).get("tool_call_index")
    return ("function_call", call_id if index is None else index)
