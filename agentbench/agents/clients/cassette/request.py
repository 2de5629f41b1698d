"""Requests as they are compared, and the keys under which their answers are found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from agentbench._secrets import without_secrets
from agentbench.agents.clients.cassette.plain import Plain, options_without_secrets
from agentbench.agents.clients.cassette.secrets import Redaction

__all__ = ["Match", "Matcher", "prompt_of"]

Match = Callable[[Plain], Mapping[str, Any]]

_WITH_ARGUMENTS = frozenset({"function_call", "mcp_server_tool_call", "search_tool_call"})
_WITH_IDS_OF_CALLS = frozenset({"function_call", "function_approval_request", "function_approval_response"})
_FUNCTION = frozenset({"name", "description", "parameters"})

_MOST_MESSAGES = 20_000
"""How many keys of messages are cached; one more, and the cache starts empty."""


class Matcher:
    """Brings requests into the form in which they are compared, and makes keys that are equal where the forms are.

    Ids of calls are numbered by first appearance, arguments of calls are parsed, and what only describes (usage, keys
    of `additional_properties` that start with `_`) is gone.
    """

    def __init__(self, match: Match | None, redaction: Redaction) -> None:
        self._match = match
        self._redaction = redaction
        self._message_keys: dict[int, tuple[Plain, str, list[str]]] = {}

    def canonical(self, request: Plain) -> Plain:
        """Return the form of a request: a copy, rewritten by `match`."""
        ids: dict[str, str] = {}
        request = self._redaction.value(request)
        canonical: Plain = {
            "messages": [_canonical_message(message, ids) for message in request["messages"]],
            "tools": [_canonical(_tool_without_secrets(tool)) for tool in request["tools"]],
            "options": _canonical(options_without_secrets(request["options"])),
        }
        if self._match is None:
            return canonical
        rewritten: object = self._match(canonical)
        if not isinstance(rewritten, Mapping):
            message = f"match returned {type(rewritten).__name__}; expected the request, a mapping."
            raise TypeError(message)
        return {str(name): _canonical(value) for name, value in rewritten.items()}

    def key(self, request: Plain) -> str:
        """Return the key of a request, whose messages must not change afterwards: their keys are cached.

        A message alone does not know the numbers of its calls, which count from the first message on. Its own
        numbering, and the numbers that these calls have in the request, say as much.
        """
        if self._match is not None:
            return _hash(self.canonical(request))
        numbers: dict[str, int] = {}
        messages = []
        for message in request["messages"]:
            _, key, ids = self._message_keys.get(id(message)) or self._add_message_key(message)
            messages.append((key, *[numbers.setdefault(call_id, len(numbers)) for call_id in ids]))
        return _hash({**self.canonical({**request, "messages": []}), "messages": messages})

    def _add_message_key(self, message: Plain) -> tuple[Plain, str, list[str]]:
        ids: dict[str, str] = {}
        key = _hash(_canonical_message(self._redaction.value(message), ids))
        if len(self._message_keys) >= _MOST_MESSAGES:
            self._message_keys.clear()
        # The message itself is stored too, so that no other one gets its id.
        self._message_keys[id(message)] = entry = (message, key, list(ids))
        return entry


def prompt_of(request: Mapping[str, Any]) -> str:
    """Return the text of the last message that a user wrote; without one, of the last message."""
    messages = request.get("messages") or [{}]
    last = next((message for message in reversed(messages) if message.get("role") == "user"), messages[-1])
    return " ".join(str(item["text"]) for item in last.get("contents", ()) if item.get("type") == "text")


def _hash(canonical: Mapping[str, Any]) -> str:
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _tool_without_secrets(tool: Any) -> Any:
    """Return a tool without secret entries: fewer names were known when older cassettes were written."""
    if isinstance(tool, dict) and not tool.keys() <= _FUNCTION:  # a parameter of a function may be called `token`
        return without_secrets(tool)
    return tool


def _canonical_message(message: Plain, ids: dict[str, str]) -> Plain:
    contents = [_canonical(item, ids) for item in message["contents"] if item.get("type") != "usage"]
    return {**_canonical({**message, "contents": ()}), "contents": contents}


def _canonical(value: Any, ids: dict[str, str] | None = None) -> Any:
    """Return a copy in which `0.0` is `0`: both mean the same to a model. With `ids`, contents are canonical too."""
    if type(value) is str:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_canonical(item, ids) for item in value]
    if not isinstance(value, Mapping):
        return value
    if ids is not None and isinstance(value.get("type"), str):
        return _canonical_content(value, ids)
    return {str(name): _canonical(item) for name, item in value.items()}


def _canonical_content(content: Mapping[str, Any], ids: dict[str, str]) -> Plain:
    """Return a content as it is compared; new ids of calls are added to `ids` with their numbers."""
    canonical, kind = {}, content["type"]
    for name, value in content.items():
        if name == "additional_properties":
            public = {key: item for key, item in value.items() if not key.startswith("_")}
            if public:
                canonical[name] = _canonical(public)
        elif isinstance(value, str) and (name == "call_id" or (name == "id" and kind in _WITH_IDS_OF_CALLS)):
            canonical[name] = ids.setdefault(value, f"call-{len(ids) + 1}")
        elif isinstance(value, str) and name == "arguments" and kind in _WITH_ARGUMENTS:
            try:
                canonical[name] = _canonical(json.loads(value or "{}"))
            except ValueError:
                canonical[name] = value
        else:
            canonical[name] = _canonical(value, None if name == "arguments" else ids)
    return canonical
