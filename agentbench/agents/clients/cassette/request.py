"""Requests as they are compared, and the keys under which their answers are found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from agentbench._secrets import without_secrets
from agentbench.agents.clients.cassette.plain import Plain, options_without_secrets
from agentbench.agents.clients.cassette.redaction import Redaction

__all__ = ["Match", "Matcher", "prompt_of"]

Match = Callable[[Plain], Mapping[str, Any]]

_WITH_ARGUMENTS = frozenset({"function_call", "mcp_server_tool_call", "search_tool_call"})
_WITH_IDS_OF_CALLS = frozenset({"function_call", "function_approval_request", "function_approval_response"})
_NESTED_LISTS = ("inputs", "outputs", "items", "output")
_FUNCTION = frozenset({"name", "description", "parameters"})

_MOST_MESSAGES = 20_000
"""How many keys of messages are cached; one more, and the cache starts empty."""


class Matcher:
    """Brings requests into the form in which they are compared, and makes keys that are equal where the forms are.

    Ids of calls are numbered by first appearance, arguments of calls are parsed, and what only describes (usage, keys
    of `additional_properties` that start with `_`) is gone.

    Args:
        match: Rewrites the form; `None`: it stays as it is.
        redaction: Replaces texts before they are compared.
    """

    def __init__(self, match: Match | None, redaction: Redaction) -> None:
        self._match = match
        self._redaction = redaction
        self._message_keys: dict[int, tuple[Plain, str, list[str]]] = {}

    def canonical(self, request: Plain) -> Plain:
        """Return the form of a request, in which nothing of the request itself is.

        Raises:
            TypeError: `match` returned no mapping.
        """
        ids: dict[str, str] = {}
        request = self._redaction.value(request)
        canonical: Plain = {
            "messages": [_canonical_message(message, ids) for message in request["messages"]],
            "tools": [_whole_numbers(_tool_without_secrets(tool)) for tool in request["tools"]],
            "options": _whole_numbers(options_without_secrets(request["options"])),
        }
        if self._match is None:
            return canonical
        rewritten: object = self._match(canonical)
        if not isinstance(rewritten, Mapping):
            message = f"match returned {type(rewritten).__name__}; expected the request, a mapping."
            raise TypeError(message)
        return {str(name): _whole_numbers(value) for name, value in rewritten.items()}

    def key(self, request: Plain) -> str:
        """Return the key of a request, whose messages must not change afterwards.

        It is made of the keys of its messages, which are cached: a long conversation grows only at its end. The calls
        of a request are numbered from its first message on, so a message alone does not know their numbers. Its own
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
    messages = request.get("messages") or []
    by_users = [message for message in messages if message.get("role") == "user"]
    last = (by_users or messages or [{}])[-1]
    return " ".join(str(item["text"]) for item in last.get("contents", ()) if item.get("type") == "text")


def _hash(canonical: Mapping[str, Any]) -> str:
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _whole_numbers(value: Any) -> Any:
    """A copy in which `0.0` is `0`: both mean the same to a model."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_numbers(item) for item in value]
    return value


def _tool_without_secrets(tool: Any) -> Any:
    """A tool without secret entries: fewer names were known when older cassettes were written."""
    if isinstance(tool, dict) and not tool.keys() <= _FUNCTION:  # a parameter of a function may be called `token`
        return without_secrets(tool)
    return tool


def _canonical_message(message: Plain, ids: dict[str, str]) -> Plain:
    """A message as it is compared; new ids of calls are added to `ids` with their numbers."""
    contents = [_canonical_content(item, ids) for item in message["contents"] if item.get("type") != "usage"]
    return {**_whole_numbers({**message, "contents": ()}), "contents": contents}


def _canonical_content(content: Plain, ids: dict[str, str]) -> Plain:
    canonical = {
        name: value if type(value) is str else _whole_numbers(value)
        for name, value in content.items()
        if name != "additional_properties"
    }
    kind = content.get("type")
    for name in ("call_id", "id") if kind in _WITH_IDS_OF_CALLS else ("call_id",):
        if isinstance(content.get(name), str):
            canonical[name] = ids.setdefault(content[name], f"call-{len(ids) + 1}")
    if kind in _WITH_ARGUMENTS and isinstance(content.get("arguments"), str):
        canonical["arguments"] = _parse(content["arguments"])
    if isinstance(content.get("function_call"), dict):
        canonical["function_call"] = _canonical_content(content["function_call"], ids)
    for name in _NESTED_LISTS:
        if isinstance(content.get(name), list):
            canonical[name] = [
                _canonical_content(item, ids) if isinstance(item, dict) and "type" in item else _whole_numbers(item)
                for item in content[name]
            ]
    properties = content.get("additional_properties")
    if isinstance(properties, dict):
        public = {name: value for name, value in properties.items() if not name.startswith("_")}
        if public:
            canonical["additional_properties"] = _whole_numbers(public)
    return canonical


def _parse(arguments: str) -> Any:
    try:
        return _whole_numbers(json.loads(arguments or "{}"))
    except ValueError:
        return arguments
