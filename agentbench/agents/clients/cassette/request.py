"""A request to a model in the form in which requests are compared, and the key under which it is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from agentbench._secrets import without_secrets
from agentbench.agents.clients.cassette.plain import Plain, options_without_secrets, plain_options, plain_tools

__all__ = ["Match", "canonical_message", "canonical_request", "key_of", "prompt_of", "request_as_sent"]

Match = Callable[[Plain], Mapping[str, Any]]

_WITH_ARGUMENTS = frozenset({"function_call", "mcp_server_tool_call", "search_tool_call"})
_IDS_OF_CALLS = frozenset({"function_call", "function_approval_request", "function_approval_response"})
_NESTED_LISTS = ("inputs", "outputs", "items", "output")


def request_as_sent(messages: list[Plain], options: Mapping[str, Any], *, model: str | None) -> Plain:
    """A request as it is written: `messages`, `tools`, `options`, all plain JSON values."""
    return {
        "messages": messages,
        "tools": plain_tools(options.get("tools")),
        "options": plain_options(options, model=model),
    }


def canonical_request(request: Plain, match: Match | None = None) -> Plain:
    """A request as it is compared.

    Ids of calls are numbered by first appearance, arguments of calls are parsed, and what only describes (usage, keys
    of `additional_properties` that start with `_`) is gone.

    Args:
        request: As it was sent, or as it was read. It is not changed, and nothing of it is in the form.
        match: Rewrites the form.

    Raises:
        TypeError: If `match` returns no mapping.
    """
    ids: dict[str, str] = {}
    canonical: Plain = {
        "messages": [canonical_message(message, ids) for message in request["messages"]],
        "tools": [_numbers(_without_secrets(tool)) for tool in request["tools"]],
        "options": _numbers(options_without_secrets(request["options"])),
    }
    if match is None:
        return canonical
    rewritten: object = match(canonical)
    if not isinstance(rewritten, Mapping):
        message = f"match returned {type(rewritten).__name__}; expected the request, a mapping, changed or as it was."
        raise TypeError(message)
    return {str(name): _numbers(value) for name, value in rewritten.items()}


def _without_secrets(tool: Any) -> Any:
    """A tool of a service without secret entries: fewer names were known when older cassettes were written."""
    if not isinstance(tool, dict) or tool.keys() <= {"name", "description", "parameters"}:
        return tool  # a parameter of a function may well be called `token`
    return without_secrets(tool)


def key_of(canonical: Mapping[str, Any]) -> str:
    """A short key: equal for equal requests, whatever the order of the keys in them."""
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def prompt_of(request: Mapping[str, Any]) -> str:
    """The text of the last message that a user wrote; without one, of the last message."""
    messages = request.get("messages") or []
    asked = [message for message in messages if message.get("role") == "user"]
    last = (asked or messages or [{}])[-1]
    return " ".join(str(item["text"]) for item in last.get("contents", ()) if item.get("type") == "text")


def _numbers(value: Any) -> Any:
    """`0.0` asks for what `0` asks for."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return value


def canonical_message(message: Plain, ids: dict[str, str]) -> Plain:
    """A message of a request as it is compared.

    Args:
        message: As it was sent, or as it was read.
        ids: How the ids of calls are numbered; those that are new are added.
    """
    contents = [_content(item, ids) for item in message["contents"] if item.get("type") != "usage"]
    return {**_numbers({**message, "contents": ()}), "contents": contents}


def _content(content: Plain, ids: dict[str, str]) -> Plain:
    canonical = {
        name: value if type(value) is str else _numbers(value)
        for name, value in content.items()
        if name != "additional_properties"
    }
    kind = content.get("type")
    if isinstance(content.get("call_id"), str):
        canonical["call_id"] = _number(content["call_id"], ids)
    if kind in _IDS_OF_CALLS and isinstance(content.get("id"), str):
        canonical["id"] = _number(content["id"], ids)
    if kind in _WITH_ARGUMENTS and isinstance(content.get("arguments"), str):
        canonical["arguments"] = _parsed(content["arguments"])
    if isinstance(content.get("function_call"), dict):
        canonical["function_call"] = _content(content["function_call"], ids)
    for name in _NESTED_LISTS:
        if isinstance(content.get(name), list):
            canonical[name] = [
                _content(item, ids) if isinstance(item, dict) and "type" in item else _numbers(item)
                for item in content[name]
            ]
    properties = content.get("additional_properties")
    kept = {k: v for k, v in properties.items() if not k.startswith("_")} if isinstance(properties, dict) else {}
    return {**canonical, "additional_properties": _numbers(kept)} if kept else canonical


def _number(call_id: str, ids: dict[str, str]) -> str:
    return ids.setdefault(call_id, f"call-{len(ids) + 1}")


def _parsed(arguments: str) -> Any:
    if not arguments:
        return {}
    try:
        return _numbers(json.loads(arguments))
    except ValueError:
        return arguments
