"""What messages, tools and options are in a cassette: plain JSON values, without what must never be written."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from agentbench._secrets import is_secret, is_secret_name, without_secrets
from agentbench.agents.clients.cassette.secrets import REDACTED

__all__ = [
    "options_without_secrets",
    "plain_answer",
    "plain_content",
    "plain_message",
    "plain_options",
    "plain_tools",
    "to_plain",
]

_NEVER_WRITTEN = frozenset({"tools", "user", "metadata"})
_NESTED = ("function_call", "inputs", "outputs", "items", "output")

Plain = dict[str, Any]


def to_plain(value: Any) -> Any:
    """Return a JSON value that says the same; an object that JSON knows nothing of becomes the name of its class.

    An address in memory, as a `repr` has it, would make every run another request.
    """
    if is_secret(value):
        return REDACTED
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((to_plain(item) for item in value), key=repr)
    return _object_as_plain(value)


def _object_as_plain(value: Any) -> Any:
    if isinstance(value, type):
        return {"class": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    for method in ("to_dict", "model_dump"):
        dump = getattr(value, method, None)
        if callable(dump):
            return to_plain(dump())
    if dataclasses.is_dataclass(value):
        return {item.name: to_plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    return {"object": f"{type(value).__module__}.{type(value).__qualname__}"}


def plain_message(message: Any) -> Plain:
    """A message of a request: role, author if it has one, contents. Not its id, times, usage or properties."""
    plain: Plain = {"role": str(message.role)}
    if message.author_name is not None:
        plain["author_name"] = str(message.author_name)
    plain["contents"] = [_as_asked(plain_content(content)) for content in message.contents]
    return plain


def plain_content(content: Any) -> Plain:
    """A piece of content, without fields that are empty."""
    return _slim(to_plain(content.to_dict()))


def _slim(content: Plain) -> Plain:
    if not content.get("additional_properties", True):
        del content["additional_properties"]
    for annotation in _mappings(content.get("annotations")):
        annotation.pop("raw_representation", None)
    for name in _NESTED:
        nested = content.get(name)
        for inner in _mappings([nested] if isinstance(nested, dict) else nested):
            if "type" in inner:
                _slim(inner)
    return content


def _as_asked(content: Plain) -> Plain:
    """Without notes of the library's own, and a result whose one item says what `result` says only once."""
    properties = {k: v for k, v in content.pop("additional_properties", {}).items() if not k.startswith("_")}
    if properties:
        content["additional_properties"] = properties
    if content.get("items") == [{"type": "text", "text": content.get("result")}]:
        del content["items"]
    return content


def _mappings(values: Any) -> Iterable[Plain]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


def plain_answer(answer: Any) -> Plain:
    """A response or an update: its `to_dict()`, without what is empty anyway and what belongs to the request."""
    plain: Plain = to_plain(answer.to_dict())
    for name in ("raw_representation", "response_format"):
        plain.pop(name, None)
    for message in _mappings(plain.get("messages")):
        _slim_message(message)
    if "messages" in plain and not plain.get("additional_properties", True):
        del plain["additional_properties"]
    for content in _mappings(plain.get("contents")):
        _slim(content)
    return plain


def _slim_message(message: Plain) -> None:
    if not message.get("additional_properties", True):
        del message["additional_properties"]
    for content in _mappings(message.get("contents")):
        _slim(content)


def plain_tools(tools: Any) -> list[Any]:
    """The tools of a request: name, description and parameters of functions; mappings less their secrets."""
    if tools is None:
        return []
    given = tools if isinstance(tools, Sequence) and not isinstance(tools, str) else [tools]
    return [_plain_tool(tool) for tool in given]


def _plain_tool(tool: Any) -> Any:
    if isinstance(tool, Mapping):
        return without_secrets(to_plain(tool))
    parameters = getattr(tool, "parameters", None)
    plain = {
        "name": str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__)),
        "description": str(getattr(tool, "description", None) or ""),
    }
    return {**plain, "parameters": to_plain(parameters())} if callable(parameters) else plain


def plain_options(options: Mapping[str, Any], *, model: str | None) -> Plain:
    """Every option that was sent, less the tools, who the user is, metadata, and what is named like a secret.

    Args:
        options: As the client's hook gets them.
        model: What `model` is where the options say nothing.
    """
    plain: Plain = {} if model is None else {"model": model}
    for name, value in options.items():
        if value is None or name in _NEVER_WRITTEN:
            continue
        if name == "response_format":
            plain[name] = _schema(value)
        elif name == "tool_choice":
            plain[name] = _tool_choice(value)
        else:
            plain[name] = to_plain(value)
    schema = plain.pop("response_format", None)
    return options_without_secrets(plain if schema is None else {**plain, "response_format": schema})


def options_without_secrets(options: Plain) -> Plain:
    """Options without secret entries, but for those of `response_format`: a field of it may well be called `token`."""
    return {
        name: value if name == "response_format" else without_secrets(value)
        for name, value in options.items()
        if not is_secret_name(name)
    }


def _schema(response_format: Any) -> Any:
    model_json_schema = getattr(response_format, "model_json_schema", None)
    return to_plain(model_json_schema() if callable(model_json_schema) else response_format)


def _tool_choice(choice: Any) -> Any:
    """`{"mode": "auto"}` is what `"auto"` means."""
    plain = to_plain(choice)
    return plain["mode"] if isinstance(plain, dict) and set(plain) == {"mode"} else plain
