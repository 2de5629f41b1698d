r"""Parse the lines of a cassette into recorded calls, and make lines for new calls.

A cassette is UTF-8 JSON Lines. The first line describes the file. Messages and sets of tools follow, each once and
with a name, and calls, which refer to the names. A line only refers to names above it, and a name means the nearest
such line, so two branches of a repository that both recorded can be merged by taking the lines of both.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from types import NoneType
from typing import Any

from agentbench._display import shorten
from agentbench.agents.clients.cassette.request import Plain, prompt_of
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from agentbench.observability.instruments import VERSION

_FORMAT = 1

_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_CHARACTERS = 60
_UNREADABLE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


class BadLineError(ValueError):
    """A line is not part of a cassette; the message says why."""


@dataclass(frozen=True, eq=False)
class StoredCall:
    """A model call in a cassette, as plain JSON values; calls and lines are counted from 1.

    A streamed answer is in `updates`, any other answer in `response`, in the form of `to_dict()`.
    """

    number: int
    line: int
    request: Plain = field(repr=False)
    response: Plain | None = field(default=None, repr=False)
    updates: list[Plain] | None = field(default=None, repr=False)

    def to_response(self) -> ChatResponse[Any]:
        """Return the answer as a new response; the updates of a streamed answer are combined."""
        if self.updates is None:
            return ChatResponse.from_dict(copy.deepcopy(self.response or {}))
        return ChatResponse.from_updates([ChatResponseUpdate.from_dict(copy.deepcopy(one)) for one in self.updates])

    @property
    def prompt(self) -> str:
        """The text of the last user message of the request."""
        return prompt_of(self.request)

    @property
    def answer(self) -> str:
        """The text of the answer; tool calls are shown as `name(arguments)`."""
        response = self.to_response()
        contents = [content for message in response.messages for content in message.contents]
        parts = ["".join([content.text or "" for content in contents if content.type == "text"]).strip()]
        for call in (content for content in contents if content.type == "function_call"):
            arguments = call.arguments
            written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
            parts.append(f"{call.name or '?'}({written})")
        return " ".join(filter(None, parts))

    def __repr__(self) -> str:
        prompt, answer = (shorten(text, _MOST_CHARACTERS) for text in (self.prompt, self.answer))
        return f"<call {self.number}: {prompt} -> {answer}>"


class CassetteLines:
    """The lines read so far, and the names of messages and tools for later lines."""

    def __init__(self) -> None:
        self.header: Plain | None = None
        self.calls: list[StoredCall] = []
        self.count = 0
        self._named: dict[str, dict[str, Any]] = {"m": {}, "t": {}}
        self._names: dict[tuple[str, str], str] = {}

    def read(self, line: bytes) -> None:
        """Add a line, or raise `BadLineError` without a change if it is not part of a cassette."""
        values = parse_line(line)
        try:
            if self.header is None:
                version = values.get("cassette")
                if version != _FORMAT:
                    other = (
                        f"the cassette has format {version!r}, but this version of agentbench reads format {_FORMAT}"
                    )
                    raise BadLineError(other if "cassette" in values else 'the first line has no "cassette"')
                if not isinstance(values.get("model"), (str, NoneType)):
                    raise TypeError
                self.header = values
            elif "message" in values:
                message = {name: value for name, value in values.items() if name != "message"}
                if not all(type(content) is dict for content in message["contents"]):
                    raise TypeError
                Message.from_dict(copy.deepcopy(message))
                self._add_name("m", values["message"], {**message, "role": str(message["role"])})
            elif "functions" in values:
                if not isinstance(values["functions"], list):
                    raise TypeError
                self._add_name("t", values["tools"], values["functions"])
            else:
                self._read_call(values)
        except BadLineError:
            raise
        except _UNREADABLE:
            reason = f"it has the keys {', '.join(values) or '(none)'}; expected a message, tools or a call"
            raise BadLineError(reason) from None
        self.count += 1

    def _add_name(self, kind: str, name: Any, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError
        if name in self._named[kind]:
            self._names.pop((kind, _as_text(self._named[kind][name])), None)
        self._named[kind][name] = value
        self._names[kind, _as_text(value)] = name

    def _read_call(self, values: Plain) -> None:
        number, tools = int(values["call"]), values.get("tools")
        used = [("m", name) for name in values["messages"]] + ([("t", tools)] if tools else [])
        unknown = next((name for kind, name in used if name not in self._named[kind]), None)
        if unknown is not None:
            reason = f"call {number} refers to {unknown!r}, but no line above has that name"
            raise BadLineError(reason)
        response, updates = values.get("response"), values.get("updates")
        if isinstance(updates, list) == isinstance(response, dict):
            reason = f"call {number} needs either a list of updates or a response"
            raise BadLineError(reason)
        request = {
            "messages": [self._named["m"][name] for name in values["messages"]],
            "tools": self._named["t"][tools] if tools else [],
            "options": dict(values.get("options", {})),
        }
        call = StoredCall(number, self.count + 1, request, response, updates)
        try:
            repr(call)  # parses the whole answer
        except _UNREADABLE as error:
            reason = f"the answer of call {number} cannot be read ({error})"
            raise BadLineError(reason) from error
        self.calls.append(call)

    def lines_for(self, request: Plain, answer: Plain, *, number: int | None = None) -> list[str]:
        """Return the lines for a call, by default with the next number; they count once they have been read."""
        lines: list[str] = []
        new: dict[tuple[str, str], str] = {}

        def name_of(kind: str, value: Any) -> str:
            key, named = (kind, _as_text(value)), self._named[kind]
            name = self._names.get(key) or new.get(key)
            if name is None:
                free = (f"{kind}{number}" for number in count(len(named) + 1))
                name = new[key] = next(name for name in free if name not in named and name not in new.values())
                line = {"message": name, **value} if kind == "m" else {"tools": name, "functions": value}
                lines.append(_as_text(line))
            return name

        if number is None:
            number = 1 + max((call.number for call in self.calls), default=0)
        call: Plain = {"call": number, "messages": [name_of("m", message) for message in request["messages"]]}
        if request["tools"]:
            call["tools"] = name_of("t", request["tools"])
        return [*lines, _as_text({**call, "options": request["options"], **answer})]


def header_line(*, client: str, model: str | None, stores_by_default: bool = False) -> str:
    """Return the first line of a cassette."""
    header = {"cassette": _FORMAT, "agentbench": VERSION, "client": client, "model": model}
    return _as_text({**header, "stores_by_default": True} if stores_by_default else header)


def pruned_lines(header: Plain, calls: Iterable[StoredCall]) -> list[str]:
    """Return the lines of a cassette with only these calls, which keep their numbers."""
    pruned = CassetteLines()
    lines = [_as_text(header)]
    pruned.read(lines[0].encode())
    for call in calls:
        answer = {"response": call.response} if call.updates is None else {"updates": call.updates}
        for line in pruned.lines_for(call.request, answer, number=call.number):
            pruned.read(line.encode())
            lines.append(line)
    return lines


def parse_line(line: bytes) -> Plain:
    """Parse a line as a JSON object; raise `BadLineError` if it is not one."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = f"it is not JSON ({error})"
        raise BadLineError(reason) from None
    if not isinstance(values, dict):
        reason = f"it is a JSON {type(values).__name__}; expected an object"
        raise BadLineError(reason)
    return values


def _as_text(value: Any) -> str:
    # UTF-8 cannot encode a lone half of a surrogate pair, but an escape sequence can.
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(value, ensure_ascii=False))
