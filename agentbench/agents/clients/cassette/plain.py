"""Messages, tools, options and answers as a cassette writes them: plain JSON values, less what is never written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbench._secrets import is_secret, is_secret_name, without_secrets
from agentbench.agents.clients.cassette.secrets import REDACTED
from agentbench.serialization.plain import object_to_plain, to_plain

__all__ = ["Plain", "options_without_secrets", "plain_answer", "plain_message", "plain_options", "plain_tools"]

_NEVER_WRITTEN = frozenset({"tools", "user", "metadata", "response_format"})
_PARTS = ("messages", "contents", "function_call", "inputs", "outputs", "items", "output")

Plain = dict[str, Any]


def _plain(value: Any) -> Any:
    return to_plain(value, _object_to_plain)


def _object_to_plain(value: Any) -> Any:
    return REDACTED if is_secret(value) else object_to_plain(value, _object_to_plain, _class_name)


def _class_name(value: Any) -> Plain:
    """Return the class of an object without a plain form; an address in memory would differ in every run."""
    kind, cls = ("class", value) if isinstance(value, type) else ("object", type(value))
    return {kind: f"{cls.__module__}.{cls.__qualname__}"}


def plain_message(message: Any) -> Plain:
    """Return role, author and contents of a message of a request; not its id, times, usage or properties."""
    plain: Plain = {"role": str(message.role)}
    if message.author_name is not None:
        plain["author_name"] = str(message.author_name)
    plain["contents"] = contents = [_plain(content.to_dict()) for content in message.contents]
    for content in contents:
        _drop_empty(content)
        # The library's own notes, and a result whose one item repeats what `result` says.
        properties = {k: v for k, v in content.pop("additional_properties", {}).items() if not k.startswith("_")}
        if properties:
            content["additional_properties"] = properties
        if content.get("items") == [{"type": "text", "text": content.get("result")}]:
            del content["items"]
    return plain


def plain_answer(answer: Any) -> Plain:
    """Return the `to_dict()` of a response or an update, less empty fields and those that belong to the request."""
    plain: Plain = _plain(answer.to_dict())
    for name in ("raw_representation", "response_format"):
        plain.pop(name, None)
    _drop_empty(plain)
    return plain


def _drop_empty(part: Plain) -> None:
    """Remove empty properties, and what services sent with annotations, from a part of an answer and its parts."""
    if not part.get("additional_properties", True):
        del part["additional_properties"]
    for annotation in _mappings(part.get("annotations")):
        annotation.pop("raw_representation", None)
    for name in _PARTS:
        inner = part.get(name)
        for each in _mappings([inner] if isinstance(inner, dict) else inner):
            if "type" in each:
                _drop_empty(each)


def _mappings(values: Any) -> Iterable[Plain]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


def plain_tools(tools: Any) -> list[Any]:
    """Return name, description and parameters of each function, and the other tools without their secrets."""
    return [_plain_tool(tool) for tool in (tools if isinstance(tools, Sequence) else [] if tools is None else [tools])]


def _plain_tool(tool: Any) -> Any:
    if isinstance(tool, Mapping):
        return without_secrets(_plain(tool))
    parameters = getattr(tool, "parameters", None)
    plain = {
        "name": str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__)),
        "description": str(getattr(tool, "description", None) or ""),
    }
    return {**plain, "parameters": _plain(parameters())} if callable(parameters) else plain


def plain_options(options: Mapping[str, Any], *, model: str | None) -> Plain:
    """Return the options that were sent, less the tools, who the user is, metadata, and those with secret names."""
    plain: Plain = {} if model is None else {"model": model}
    sent = {name: value for name, value in options.items() if value is not None}
    plain.update((name, _plain(value)) for name, value in sent.items() if name not in _NEVER_WRITTEN)
    choice = plain.get("tool_choice")
    if isinstance(choice, dict) and set(choice) == {"mode"}:
        plain["tool_choice"] = choice["mode"]  # `{"mode": "auto"}` is what `"auto"` means
    if "response_format" in sent:
        schema = getattr(sent["response_format"], "model_json_schema", None)
        plain["response_format"] = _plain(schema() if callable(schema) else sent["response_format"])
    return options_without_secrets(plain)


def options_without_secrets(options: Plain) -> Plain:
    """Return options without secret entries, but for those of `response_format`: its fields may be called `token`."""
    return {
        name: value if name == "response_format" else without_secrets(value)
        for name, value in options.items()
        if not is_secret_name(name)
    }
