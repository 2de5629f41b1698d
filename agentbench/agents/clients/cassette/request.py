"""Convert requests and answers to the JSON values in a cassette, and requests to the form that is compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench._secrets import is_secret_name, without_secrets
from agentbench.agents.clients.cassette.secrets import Redaction
from agentbench.serialization.class_names import class_name
from agentbench.serialization.plain import to_plain

Plain = dict[str, Any]
Match = Callable[[Plain], Mapping[str, Any]]

_NEVER_WRITTEN = frozenset({"tools", "user", "metadata", "response_format"})
_PARTS = ("messages", "contents", "function_call", "inputs", "outputs", "items", "output")

_WITH_ARGUMENTS = frozenset({"function_call", "mcp_server_tool_call", "search_tool_call"})
_WITH_IDS_OF_CALLS = frozenset({"function_call", "function_approval_request", "function_approval_response"})
_FUNCTION = frozenset({"name", "description", "parameters"})


def plain_message(message: Any) -> Plain:
    """Return role, author and contents of a request message, without id, times, usage and properties."""
    plain: Plain = {"role": str(message.role)}
    if message.author_name is not None:
        plain["author_name"] = str(message.author_name)
    plain["contents"] = contents = list(map(_plain, message.contents))
    for content in contents:
        _drop_empty(content)
        # Omits internal notes, and the items of a result whose only item repeats `result`.
        properties = _public(content.pop("additional_properties", {}))
        if properties:
            content["additional_properties"] = properties
        if content.get("items") == [{"type": "text", "text": content.get("result")}]:
            del content["items"]
    return plain


def plain_answer(answer: Any) -> Plain:
    """Return the `to_dict()` of a response or update, without empty fields and fields of the request."""
    plain: Plain = _plain(answer.to_dict())
    for name in ("raw_representation", "response_format"):
        plain.pop(name, None)
    _drop_empty(plain)
    return plain


def plain_tools(tools: Any) -> list[Any]:
    """Return name, description and parameters of functions, and other tools without secrets."""
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
    """Return the options that were sent, without tools, user, metadata, and options with secret names."""
    plain: Plain = {} if model is None else {"model": model}
    sent = {name: value for name, value in options.items() if value is not None}
    plain.update((name, _plain(value)) for name, value in sent.items() if name not in _NEVER_WRITTEN)
    choice = plain.get("tool_choice")
    if isinstance(choice, dict) and set(choice) == {"mode"}:
        plain["tool_choice"] = choice["mode"]  # `{"mode": "auto"}` means the same as `"auto"`
    if "response_format" in sent:
        schema = getattr(sent["response_format"], "model_json_schema", None)
        plain["response_format"] = _plain(schema() if callable(schema) else sent["response_format"])
    return _options_without_secrets(plain)


def prompt_of(request: Mapping[str, Any]) -> str:
    """Return the text of the last user message; without one, of the last message."""
    messages = request.get("messages") or [{}]
    last = next((message for message in reversed(messages) if message.get("role") == "user"), messages[-1])
    return " ".join(str(item.get("text") or "") for item in last.get("contents", ()) if item.get("type") == "text")


def _plain(value: Any) -> Any:
    return to_plain(value, other=_describe_object)


def _describe_object(value: Any) -> Plain:
    """Return the class of an object that cannot be converted, because its memory address differs in every run."""
    kind, cls = ("class", value) if isinstance(value, type) else ("object", type(value))
    return {kind: class_name(cls)}


def _public(properties: Mapping[str, Any]) -> Plain:
    return {name: value for name, value in properties.items() if not name.startswith("_")}


def _drop_empty(part: Plain) -> None:
    """Remove empty properties and the raw data of annotations from an answer's part, recursively."""
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


def _options_without_secrets(options: Plain) -> Plain:
    """Return options without secret entries, except in `response_format`, whose fields may be named `token`."""
    return {
        name: value if name == "response_format" else without_secrets(value)
        for name, value in options.items()
        if not is_secret_name(name)
    }


class Matcher:
    """Makes the canonical form of requests (numbered ids, parsed arguments, no usage), and its key."""

    def __init__(self, match: Match | None, redaction: Redaction) -> None:
        self._match = match
        self._redaction = redaction
        # By `id()` of a message: the message (kept alive so that its `id()` is not reused), its key, its call ids.
        self._message_keys: dict[int, tuple[Plain, str, list[str]]] = {}

    def canonical(self, request: Plain) -> Plain:
        """Return the canonical form of a request, a copy rewritten by `match`."""
        ids: dict[str, str] = {}
        request = self._redaction.value(request)
        canonical: Plain = {
            "messages": [_canonical_message(message, ids) for message in request["messages"]],
            "tools": [_canonical(_tool_without_secrets(tool)) for tool in request["tools"]],
            "options": _canonical(_options_without_secrets(request["options"])),
        }
        if self._match is None:
            return canonical
        rewritten: object = self._match(canonical)
        if not isinstance(rewritten, Mapping):
            message = f"match returned {type(rewritten).__name__}; expected the request, a mapping."
            raise TypeError(message)
        return {str(name): _canonical(value) for name, value in rewritten.items()}

    def key(self, request: Plain) -> str:
        """Return the key of a request. Its messages must not change afterwards, because their keys are cached."""
        if self._match is not None:
            return _hash(self.canonical(request))
        numbers: dict[str, int] = {}
        messages = []
        for message in request["messages"]:
            if id(message) not in self._message_keys:
                ids: dict[str, str] = {}
                key = _hash(_canonical_message(self._redaction.value(message), ids))
                self._message_keys[id(message)] = (message, key, list(ids))
            _, key, call_ids = self._message_keys[id(message)]
            messages.append((key, *[numbers.setdefault(call_id, len(numbers)) for call_id in call_ids]))
        return _hash({**self.canonical({**request, "messages": []}), "messages": messages})


def _hash(canonical: Mapping[str, Any]) -> str:
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _tool_without_secrets(tool: Any) -> Any:
    """Return a tool without secret entries; older cassettes were written with fewer secret names."""
    if isinstance(tool, dict) and not tool.keys() <= _FUNCTION:  # a parameter of a function may be named `token`
        return without_secrets(tool)
    return tool


def _canonical_message(message: Plain, ids: dict[str, str]) -> Plain:
    contents = [_canonical(item, ids) for item in message["contents"] if item.get("type") != "usage"]
    return {**_canonical({**message, "contents": ()}), "contents": contents}


def _canonical(value: Any, ids: dict[str, str] | None = None) -> Any:
    """Return a copy with `0` instead of `0.0`, which means the same. With `ids`, contents are canonical too."""
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
    """Return the canonical form of a content; new call ids are added to `ids` with their numbers."""
    canonical, kind = {}, content["type"]
    for name, value in content.items():
        if name == "additional_properties":
            public = _public(value)
            if public:
                canonical[name] = _canonical(public)
        elif isinstance(value, str) and (name == "call_id" or (name == "id" and kind in _WITH_IDS_OF_CALLS)):
            canonical[name] = ids.setdefault(value, f"call-{len(ids) + 1}")
        elif isinstance(value, str) and name == "arguments" and kind in _WITH_ARGUMENTS:
            try:
                canonical[name] = _canonical(json.loads(value or "{}"))
            except (ValueError, RecursionError):
                canonical[name] = value
        else:
            canonical[name] = _canonical(value, None if name == "arguments" else ids)
    return canonical
