"""Text that must not be in a cassette, replaced before anything is compared or written: pure."""

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
        patterns: Text that is replaced as it is, and compiled patterns.

    Raises:
        TypeError: One is neither.
    """

    __slots__ = ("_patterns",)

    def __init__(self, patterns: str | re.Pattern[str] | Iterable[str | re.Pattern[str]]) -> None:
        self._patterns: list[re.Pattern[str]] = []
        for pattern in [patterns] if isinstance(patterns, (str, re.Pattern)) else patterns:
            compiled: object = re.compile(re.escape(pattern)) if isinstance(pattern, str) else pattern
            if not (isinstance(compiled, re.Pattern) and isinstance(compiled.pattern, str)):
                message = f"redact holds {type(pattern).__name__}; expected text, and compiled patterns for text."
                raise TypeError(message)
            if pattern != "":
                self._patterns.append(compiled)

    def text(self, text: str) -> str:
        """Return a text with everything replaced that a pattern finds; what was replaced before stays as it is."""
        for pattern in self._patterns:
            text = REDACTED.join(pattern.sub(REDACTED, piece) for piece in text.split(REDACTED))
        return text

    def value(self, value: Any) -> Any:
        """Return a plain value with the texts in it replaced; keys stay, and the words that say what something is."""
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
                kind, index = content.get("type"), None
                if kind == "function_call":  # pieces of one call have its index, where the service sends one
                    index = (content.get("additional_properties") or {}).get("tool_call_index", call_id)
                for name in ("text", "arguments", "protected_data"):
                    if isinstance(content.get(name), str):
                        run = runs.setdefault((name, update.get("message_id"), kind, index), [])
                        run.append((content, name))
        for run in runs.values():
            pieces = [content[name] for content, name in run]
            redacted = self.text("".join(pieces))
            if redacted != "".join(map(self.text, pieces)):
                # A match lies across pieces: the first one gets all of the text, so that none of it stays behind.
                for content, name in run:
                    content[name] = ""
                first, name = run[0]
                first[name] = redacted
        return [self.value(update) for update in copied]
