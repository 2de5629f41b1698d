"""Convert requests and answers to the JSON values in a cassette, without secrets, and to the form that is compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from types import MemberDescriptorType, ModuleType
from typing import Any, cast

from agentbench._secrets import is_secret, is_secret_name, mask_secrets, without_secrets
from agentbench.agents.clients.scripted.script import PerMessage
from agentbench.agents.clients.scripted.scripted import ModelCall
from agentbench.messages.content.fields import KINDS
from agentbench.messages.message import Message
from agentbench.serialization.class_names import class_name
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

    def answer(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Redact an answer, `{"updates": [...]}` or `{"response": {...}}`, and mask secrets."""
        if "updates" in answer:
            return {"updates": self.updates(answer["updates"])}
        messages = answer["response"].get("messages", [])
        response = self.value(to_plain(answer["response"], mask=True))
        return {"response": {**response, "messages": self.updates(messages)} if messages else response}

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


# ---- plain values


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


# ---- the form that is compared


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
