r"""The lines of a cassette, read and written: pure.

A cassette is UTF-8 JSON Lines. The first line says what it is; then messages and sets of tools, each once and with a
name; then calls, which use the names. Lines only follow what they name, and a name means the nearest line above that
gave it, so two branches of a repository that both recorded can be merged by keeping both.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from agentbench.agents.clients.cassette.recorded import RecordedCall

__all__ = ["FORMAT", "BadLineError", "Tape", "header_line", "parse_line", "pruned_lines"]

FORMAT = 1

_SURROGATE = re.compile("[\ud800-\udfff]")

Plain = dict[str, Any]


class BadLineError(ValueError):
    """A line is not one of a cassette; the message says why."""


class Tape:
    """What has been read of a cassette so far.

    Attributes:
        header: The first line, `None` before it was read.
        calls: The calls, in the order of the file.
        lines: How many lines were read.
    """

    def __init__(self) -> None:
        self.header: Plain | None = None
        self.calls: list[RecordedCall] = []
        self.lines = 0
        self._messages: dict[str, Plain] = {}
        self._tools: dict[str, list[Any]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._last = {"m": 0, "t": 0, "call": 0}

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, line: bytes) -> None:
        """Take one more line.

        Raises:
            BadLineError: It is not a line of a cassette; nothing has changed.
        """
        values = parse_line(line)
        if self.header is None:
            self._read_header(values)
        elif "message" in values:
            self._read_named("m", values, "message", {name: values[name] for name in values if name != "message"})
        elif "tools" in values and "functions" in values:
            self._read_named("t", values, "tools", values["functions"])
        elif "call" in values:
            self._read_call(values)
        else:
            _refuse(f"it has the keys {', '.join(values) or 'of an empty object'}; expected message, tools or call")
        self.lines += 1

    def _read_header(self, values: Plain) -> None:
        if "cassette" not in values:
            _refuse('the first line has no "cassette"')
        if values["cassette"] != FORMAT:
            _refuse(f"it is a cassette of format {values['cassette']!r}; this version reads format {FORMAT}")
        self.header = values

    def _read_named(self, kind: str, values: Plain, key: str, value: Any) -> None:
        name = values[key]
        if not isinstance(name, str):
            _refuse(f"its {key} is {name!r}; expected a name")
        if kind == "m" and not _is_message(value):
            _refuse(f"message {name} has no role and list of contents")
        if kind == "t" and not isinstance(value, list):
            _refuse(f"the functions of tools {name} are not a list")
        known: dict[str, Any] = self._messages if kind == "m" else self._tools
        if name in known:
            self._names.pop((kind, _text(known[name])), None)
        known[name] = value
        self._names[kind, _text(value)] = name
        self._count(kind, name)

    def _read_call(self, values: Plain) -> None:
        number, names = values["call"], values.get("messages")
        if not isinstance(number, int) or not isinstance(names, list):
            _refuse("a call needs a number and a list of messages")
        if isinstance(values.get("updates"), list) == isinstance(values.get("response"), dict):
            _refuse(f"call {number} needs either a list of updates or a response")
        if not isinstance(values.get("options", {}), dict):
            _refuse(f"the options of call {number} are not an object")
        request = {
            "messages": [self._known(self._messages, name, number) for name in names],
            "tools": self._known(self._tools, values["tools"], number) if "tools" in values else [],
            "options": values.get("options", {}),
        }
        self.calls.append(RecordedCall(number, self.lines + 1, request, values.get("response"), values.get("updates")))
        self._last["call"] = max(self._last["call"], number)

    def _known(self, known: dict[str, Any], name: Any, number: int) -> Any:
        try:
            return known[name]
        except (KeyError, TypeError):
            _refuse(f"call {number} names {name!r}, and no line above gives that name")

    def _count(self, kind: str, name: str) -> None:
        digits = name.removeprefix(kind)
        if digits.isdecimal():
            self._last[kind] = max(self._last[kind], int(digits))

    # ------------------------------------------------------------------------------------------------------- writing

    def lines_for(self, request: Plain, answer: Plain, *, number: int | None = None) -> list[str]:
        """The lines that a call adds, without line ends. They count as read only when they have been read.

        Args:
            request: As it was sent.
            answer: `{"updates": [...]}` or `{"response": {...}}`.
            number: Of the call; by default the next one.
        """
        lines: list[str] = []
        new: dict[tuple[str, str], str] = {}
        names = [self._name("m", message, new, lines) for message in request["messages"]]
        call: Plain = {"call": self._last["call"] + 1 if number is None else number, "messages": names}
        if request["tools"]:
            call["tools"] = self._name("t", request["tools"], new, lines)
        lines.append(_text({**call, "options": request["options"], **answer}))
        return lines

    def _name(self, kind: str, value: Any, new: dict[tuple[str, str], str], lines: list[str]) -> str:
        key = kind, _text(value)
        name = self._names.get(key) or new.get(key)
        if name is None:
            name = new[key] = f"{kind}{self._last[kind] + 1 + sum(1 for other, _ in new if other == kind)}"
            lines.append(_text({"message": name, **value} if kind == "m" else {"tools": name, "functions": value}))
        return name


def header_line(*, client: str, model: str | None, stores_by_default: bool = False) -> str:
    """The first line. That the service keeps conversations is said only where it is so."""
    header: Plain = {
        "cassette": FORMAT,
        "agentbench": sys.modules["agentbench"].__version__,
        "client": client,
        "model": model,
    }
    return _text({**header, "stores_by_default": True} if stores_by_default else header)


def pruned_lines(header: Plain, calls: Iterable[RecordedCall]) -> list[str]:
    """The lines of a cassette that holds only some calls, under the numbers that they had."""
    tape = Tape()
    lines = [_text(header)]
    tape.read(lines[0].encode())
    for call in calls:
        answer = {"response": call.response} if call.updates is None else {"updates": call.updates}
        for line in tape.lines_for(call.request, answer, number=call.number):
            tape.read(line.encode())
            lines.append(line)
    return lines


def parse_line(line: bytes) -> Plain:
    """Read one line as an object.

    Raises:
        BadLineError: It is not UTF-8, not JSON, or not an object.
    """
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        _refuse("it is not UTF-8 text")
    except ValueError as error:
        _refuse(f"it is not JSON ({error})")
    if not isinstance(values, dict):
        _refuse(f"it is {type(values).__name__}; expected an object")
    return values


def _is_message(value: Plain) -> bool:
    contents = value.get("contents")
    return (
        isinstance(value.get("role"), str)
        and isinstance(contents, list)
        and all(isinstance(content, dict) for content in contents)
    )


def _text(value: Any) -> str:
    # A lone half of a surrogate pair is no UTF-8; written as an escape it comes back as it was.
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(value, ensure_ascii=False))


def _refuse(reason: str) -> NoReturn:
    raise BadLineError(reason) from None
