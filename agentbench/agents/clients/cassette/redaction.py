"""Text that a user wants gone, replaced before anything is compared or written: pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from agentbench.agents.clients.cassette.secrets import REDACTED
from agentbench.messages.content.fields import KINDS

__all__ = ["Redaction"]

_WORDS: dict[str, Collection[object]] = {
    "type": [*KINDS, "message", "chat_response", "chat_response_update", "citation", "text_span"],
    "role": ["system", "developer", "user", "assistant", "tool"],
    "finish_reason": ["stop", "length", "tool_calls", "content_filter"],
}


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
