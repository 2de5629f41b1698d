"""Keep secrets of the client, and text that the user wants to redact, out of a cassette."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import MemberDescriptorType, ModuleType
from typing import Any, cast

from agentbench._secrets import is_secret, is_secret_name, mask_secrets
from agentbench.agents.clients.scripted.per_message import PerMessage
from agentbench.agents.clients.scripted.scripted import ModelCall
from agentbench.messages.content.fields import KINDS
from agentbench.messages.message import Message
from agentbench.serialization.plain import to_plain

REDACTED = "[redacted]"

# Plain text is a secret only if its attribute has a secret name and it is too long to be a common word.
_SHORTEST_PLAIN = 8
_DEEPEST = 6
_MOST_OBJECTS = 20_000
_QUOTINGS = 3  # in the line, in the arguments of a call, and in a text within those

# Under these keys, these words describe the value and are not replaced.
_WORDS: dict[str, Collection[object]] = {
    "type": [*KINDS, "message", "chat_response", "chat_response_update", "citation", "text_span"],
    "role": ["system", "developer", "user", "assistant", "tool"],
    "finish_reason": ["stop", "length", "tool_calls", "content_filter"],
}


class SecretFinder:
    """Finds every `SecretString` in objects at any depth, and longer text under names like `api_key`."""

    def __init__(self) -> None:
        # By `id()`, depth and name of a copy: the copy (kept alive so that its `id()` is not reused), its secrets.
        self._of_copies: dict[tuple[int, int, str], tuple[object, frozenset[str]]] = {}

    def __call__(self, *holders: object) -> frozenset[str]:
        """Return the secrets in objects."""
        return self._find([(holder, "", 0, False) for holder in holders])

    def _find(self, start: Iterable[tuple[object, str, int, bool]]) -> frozenset[str]:
        found: set[str] = set()
        visited: set[int] = set()
        queue = deque(start)  # breadth first
        while queue and len(visited) < _MOST_OBJECTS:
            value, name, depth, is_copy = queue.popleft()
            if is_secret(value):
                found.add(str(cast(Any, value).get_secret_value()))
            elif isinstance(value, str):
                if len(value) >= _SHORTEST_PLAIN and is_secret_name(name):
                    found.add(value)
            elif value is None or isinstance(value, (bytes, int, float, type, ModuleType)):
                continue
            elif depth < _DEEPEST and id(value) not in visited:
                visited.add(id(value))
                if isinstance(value, ModelCall) or (is_copy and isinstance(value, Message)):
                    found |= self._find_in_copy(value, name, depth)
                else:
                    queue.extend(_parts(value, name, depth + 1, is_copy=is_copy or isinstance(value, PerMessage)))
        return frozenset(found - {""})

    def _find_in_copy(self, copy: object, name: str, depth: int) -> frozenset[str]:
        key = id(copy), depth, name
        if key not in self._of_copies:
            self._of_copies[key] = copy, self._find(_parts(copy, name, depth + 1, is_copy=True))
        return self._of_copies[key][1]


def _parts(value: object, name: str, depth: int, *, is_copy: bool) -> Iterator[tuple[object, str, int, bool]]:
    # All header values count, whatever their names.
    of_headers = "headers" in name.lower()
    return (
        (part, name if of_headers else part_name or name, depth, is_copy) for part_name, part in _named_parts(value)
    )


def _named_parts(value: object) -> Iterator[tuple[str, object]]:
    """Yield the attributes and items of an object with their names, without reading properties."""
    if isinstance(value, PerMessage):
        yield from (("", made) for made in value.made())
        return
    if isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in list(value.items()))
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (("", part) for part in list(value))
    # Includes the closure of a function: a factory `lambda: Client(key)` contains the key.
    for cell in getattr(value, "__closure__", None) or ():
        with suppress(ValueError):  # cell not filled yet
            yield "", cell.cell_contents
    yield from list(getattr(value, "__dict__", {}).items())
    for name, slot in _slots(cast(Any, type(value))):
        with suppress(AttributeError):  # attribute not set
            yield name, slot.__get__(value)


@lru_cache(maxsize=1024)
def _slots(cls: type) -> list[tuple[str, MemberDescriptorType]]:
    entries = [entry for base in cls.__mro__ for entry in base.__dict__.items()]
    return [(name, slot) for name, slot in entries if isinstance(slot, MemberDescriptorType) and name[:2] != "__"]


def contains_secret(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a text contains one of the secrets, plain or escaped as in JSON."""
    return any(form in text for secret in secrets for form in _quoted_forms(secret))


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace every secret in a text."""
    for form in sorted({form for secret in secrets for form in _quoted_forms(secret)}, key=len, reverse=True):
        text = text.replace(form, REDACTED)
    return text


def _quoted_forms(secret: str) -> Iterator[str]:
    for ascii_only in (False, True):
        form = secret
        for _ in range(_QUOTINGS + 1):
            yield form
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]


class Redaction:
    """Replaces matches of texts and compiled patterns by `[redacted]`."""

    def __init__(self, patterns: str | re.Pattern[str] | Iterable[str | re.Pattern[str]]) -> None:
        self._patterns: list[re.Pattern[str]] = []
        for pattern in [patterns] if isinstance(patterns, (str, re.Pattern)) else patterns:
            compiled: object = re.compile(re.escape(pattern)) if isinstance(pattern, str) else pattern
            if not (isinstance(compiled, re.Pattern) and isinstance(compiled.pattern, str)):
                message = f"redact contains {type(pattern).__name__}; expected texts and compiled text patterns."
                raise TypeError(message)
            if pattern != "":
                self._patterns.append(compiled)

    def text(self, text: str) -> str:
        """Replace the matches of all patterns in a text; earlier replacements are kept."""
        for pattern in self._patterns:
            text = REDACTED.join(pattern.sub(REDACTED, piece) for piece in text.split(REDACTED))
        return text

    def value(self, value: Any) -> Any:
        """Redact the texts in a plain value, but not its keys."""
        if not self._patterns:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                key: item if key in _WORDS and item in _WORDS[key] else self.value(item) for key, item in value.items()
            }
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def updates(self, updates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Redact updates or messages, including texts split across pieces, and mask secrets."""
        runs: dict[tuple[object, ...], list[tuple[dict[str, Any], str, str]]] = {}
        copied: list[dict[str, Any]] = []
        call_id = ""
        for update in updates:
            copy = self.value(to_plain(update, mask=True))
            copied.append(copy)
            for content, original in zip(copy.get("contents", ()), update.get("contents", ()), strict=True):
                call_id = content.get("call_id") or call_id  # only the first piece of a call has it
                kind, index = content.get("type"), None
                if kind == "function_call":  # pieces of one call have the same index, if the service sends one
                    index = (content.get("additional_properties") or {}).get("tool_call_index", call_id)
                for name in ("text", "arguments", "protected_data"):
                    if isinstance(original.get(name), str):
                        run = runs.setdefault((name, update.get("message_id"), kind, index), [])
                        run.append((content, name, original[name]))
        for run in runs.values():
            pieces = [self.text(piece) for *_, piece in run]
            whole = self.text(str(mask_secrets("".join(piece for *_, piece in run))))
            if whole != "".join(pieces):
                # If a match is split across pieces, the first piece gets the whole redacted text.
                pieces = [whole, *[""] * (len(run) - 1)]
            for (content, name, _), piece in zip(run, pieces, strict=True):
                content[name] = piece
        return copied
