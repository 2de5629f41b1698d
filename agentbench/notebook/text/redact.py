"""Copies of values in which secrets are masked, for tables and questions on the page and in saved notebooks."""

import dataclasses
import html
import json
import re
import reprlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from agentbench._secrets import is_secret, is_secret_name
from agentbench.messages.content.content import EDITED_ARGUMENTS, Content, question_in
from agentbench.messages.message import Message
from agentbench.messages.record import Record
from agentbench.messages.response import AgentResponse
from agentbench.notebook.text.escape import MASK, PREVIEW_LIMIT, esc
from agentbench.notebook.text.phrases import count_text

__all__ = [
    "asked_of",
    "decision_text",
    "fields_of",
    "hide_secrets",
    "line_preview",
    "mask_secrets",
    "preview",
    "said_text",
    "secrets_in",
    "server_question",
]

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_DEPTH = 50
_CUT = "…"
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")

_LEAST_SECRET = 5  # characters: what is shorter is in many words
# A name and what stands behind it: `name=value`, `name: "value"`, or the cells of a row in HTML.
_NAMED_VALUE = re.compile(
    r"""(?<![\w-])([\w-]{2,40})
        (\\?['"]?\s*[:=]\s*\\?['"]?|</th>\s*<td[^>]*>\s*)
        ((?:Bearer\s+|Basic\s+)?[^\s'"<>,;&(){}\[\]\\]+)""",
    re.VERBOSE,
)

_SHORT = frozenset({int, float, bool, type(None)})
_SHORT_TEXT = 200
_FEW = 20


def mask_secrets(value: object, *, key: object = None) -> object:
    """Return `value` with every secret in it replaced by `•••`.

    Secret is what sits under a key or field whose name says so, and every object that hides itself behind
    `get_secret_value`. What holds no secret is returned itself, not a copy; containers that do are copied, and other
    objects that do become their text. Values inside themselves, or 50 levels deep, become `…`. `key` is the name under
    which the value itself is stored, if it has one.
    """
    if value is not None and is_secret_name(key):
        return MASK
    return value if type(value) in _PLAIN else _Masker().mask(value, _DEPTH)


def secrets_in(values: Iterable[object]) -> list[str]:
    """Return the texts in some values that `mask_secrets` masks, and those in columns of tables with secret names."""
    masker = _Masker()
    for value in values:
        masker.mask(value, _DEPTH)
    return sorted((text for text in masker.found if len(text) >= _LEAST_SECRET), key=len, reverse=True)


def hide_secrets(part: Any, secrets: Sequence[str]) -> Any:
    """Return a copy of texts in dictionaries and lists with `secrets` masked, as text or HTML, and named ones too."""
    if isinstance(part, str):
        for secret in secrets:
            if secret in part:
                part = part.replace(secret, MASK)
        return _NAMED_VALUE.sub(lambda m: f"{m[1]}{m[2]}{MASK}" if is_secret_name(m[1]) else m[0], part)
    if isinstance(part, dict):
        return {name: hide_secrets(item, secrets) for name, item in part.items()}
    return [hide_secrets(item, secrets) for item in part] if isinstance(part, (list, tuple)) else part


def preview(value: object, *, limit: int = PREVIEW_LIMIT, in_line: bool = False) -> str:
    """Return one value of a user's as short text for `esc`.

    Strings and what a message, a response or an agent says are as they are; `in_line` a table is its size and columns.
    Everything else is its `repr`. Secrets in it are masked as `mask_secrets` does, and a `repr` that raises is named
    instead of raised: a view must not fail because of what it shows.
    """
    asked = asked_of(value)
    if asked is not value and isinstance(asked, Mapping) and "question" in asked:
        rest = {name: each for name, each in asked.items() if name != "question"}
        about = preview(rest.get("context", rest), limit=limit, in_line=in_line) if rest else ""
        return f"{asked['question']} {about}".rstrip()
    value = asked
    if isinstance(value, str):
        return MASK if is_secret(value) else value
    return said_text(value) or _Previewer(limit, in_line=in_line).repr(value)


def asked_of(value: object) -> Any:
    """Return what a request asks: of a pause of a state graph its question, of others the value itself."""
    ask = getattr(type(value), "_question_", None)
    return value if ask is None else ask(value)


def said_text(value: object) -> str:
    """Return what a message, its content or an agent's answer says; empty for other values."""
    said = getattr(value, "agent_response", None) if dataclasses.is_dataclass(value) else value
    if not isinstance(said, (Record, Content)):
        return ""
    text = getattr(said, "text", None)
    if text or not isinstance(said, (AgentResponse, Message, Content)):
        return str(text or "")
    if isinstance(said, Content):
        contents = [said]
    else:
        messages = said.messages if isinstance(said, AgentResponse) else [said]
        contents = [content for message in messages for content in message.contents]
    # A call and the request to approve it are told once, as the request, which comes later.
    pairs = [(part.function_call or part, part) for part in contents]
    calls = {call.call_id: part for call, part in pairs if call.type == "function_call"}
    return ", ".join(map(_call_text, calls.values()))


def _call_text(content: Content) -> str:
    """Return the call that a content makes, or asks a person to approve, secrets masked."""
    if content.approved is None and (question := server_question(content)):
        return question
    call = content.function_call or content
    edited = content.additional_properties.get(EDITED_ARGUMENTS)
    arguments = call.arguments if edited is None else edited
    given = mask_secrets({"arguments": arguments or {}})["arguments"]  # type: ignore[index]  # a mapping stays one
    verb = "calls" if content is call else "to call"
    if content.approved is not None:
        verb = f"{decision_text(content)}:"
    return f"{verb} {call.name} with {given if isinstance(given, str) else _Previewer(400, in_line=True).repr(given)}"


def server_question(request: Content) -> str:
    """Return the question of a server to a person; empty for other requests."""
    asked = question_in(request)
    return f"The server {asked['server']} asks: {asked['message']}" if asked else ""


def decision_text(answer: Content, call: Content | None = None) -> str:
    """Return how a person decided about a call: `rejected`, `approved`, or `approved with copies: 50`.

    The answer to a server's question is `declined`, `answered`, or `answered with day: Friday`.

    Args:
        answer: The approval, or the result of an approved call.
        call: The call as the model wrote it; by default that of the approval.
    """
    no, yes = ("declined", "answered") if question_in(answer) else ("rejected", "approved")
    if answer.approved is False:
        return no
    edited, call = answer.additional_properties.get(EDITED_ARGUMENTS), call or answer.function_call
    given = (call and call.parse_arguments()) or {}
    if not isinstance(edited, Mapping) or edited == given:
        return yes
    changed = {name: value for name, value in edited.items() if name not in given or given[name] != value}
    facts = [f"{line_preview(name)}: {line_preview(mask_secrets(value, key=name))}" for name, value in changed.items()]
    missing = [line_preview(name) for name in given if name not in edited]
    words = [f"{word} {', '.join(some)}" for word, some in (("with", facts), ("without", missing)) if some]
    return f"{yes} {' and '.join(words)}"


def line_preview(value: object, limit: int = 120) -> str:
    """Return a value as one line of at most `limit` characters, secrets masked, cut with `…`.

    Line ends and tabs become spaces; control, bidirectional and invisible characters are spelled out.
    """
    if type(value) is str:
        text = value
    elif _is_short_and_plain(value):
        text = repr(value)
    else:
        text = preview(value, limit=limit, in_line=True)
    if not text.isprintable():
        text = esc(" ".join(text[: 4 * limit].split()), into="line", limit=None)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_short_and_plain(value: Any) -> bool:
    """Whether a value's `repr` is cheap and shows no secret; most values in tables are like that."""
    if type(value) not in (dict, list, tuple):
        return type(value) in _SHORT
    if len(value) > _FEW or (type(value) is dict and any(map(is_secret_name, value))):
        return False
    items = value.values() if type(value) is dict else value
    return all(type(item) in _SHORT or (type(item) is str and len(item) < _SHORT_TEXT) for item in items)


def fields_of(value: object) -> Iterator[tuple[str, object]]:
    """Yield names and values of a mapping, dataclass, pydantic model or plain object; nothing for other values."""
    if isinstance(value, Mapping):
        yield from ((str(name), item) for name, item in value.items())
        return
    names = _field_names(value)
    if names is None and hasattr(value, "__dict__") and not isinstance(value, type):
        names = [name for name in vars(value) if not name.startswith("_")]
    # A field may be declared and never set.
    yield from ((name, getattr(value, name)) for name in names or () if hasattr(value, name))


def _field_names(value: object) -> Sequence[str] | None:
    if isinstance(value, type):
        return None
    if isinstance(value, tuple):
        return getattr(value, "_fields", None)
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.repr]
    declared = getattr(type(value), "model_fields", None)
    return list(declared) if isinstance(declared, Mapping) else None


class _Masker:
    """One walk over a value. What is met twice is masked once, so that shared parts cost nothing."""

    def __init__(self) -> None:
        self._results: dict[int, object] = {}
        self.found: set[str] = set()  # secret texts

    def mask(self, value: object, depth: int) -> object:
        if type(value) in _PLAIN:
            return value
        if is_secret(value):
            self._note(value)
            return MASK
        if depth == 0:
            return _CUT
        if id(value) not in self._results:
            self._results[id(value)] = _CUT  # what is found here on the way down is inside itself
            self._results[id(value)] = self._inside(value, depth - 1)
        return self._results[id(value)]

    def _inside(self, value: object, depth: int) -> object:
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        table: Any = value
        if type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "columns"):
            self._note([table[name].tolist() for name in table.columns if is_secret_name(name)])
        names = tuple(value.set_fields()) if isinstance(value, (Record, Content)) else _field_names(value)
        if names is None:
            return self._items(value, depth) if isinstance(value, (list, tuple, deque, Set)) else value
        before = {name: getattr(value, name, None) for name in names}
        after = self._mapping(before, depth)
        if after is before:
            return value
        return f"{type(value).__name__}({', '.join(f'{name}={preview(item)}' for name, item in after.items())})"

    def _mapping(self, value: Mapping[Any, object], depth: int) -> Mapping[Any, object]:
        changed = dict(value)
        for name, item in value.items():
            if item is not None and is_secret_name(name):
                self._note(item)
                changed[name] = MASK
            else:
                changed[name] = self.mask(item, depth)
        if type(arguments := changed.get("arguments")) is str:
            changed["arguments"] = self._arguments(arguments, depth)
        return changed if any(changed[name] is not item for name, item in value.items()) else value

    def _note(self, secret: Any) -> None:
        """Add the texts in what is masked to those that were found."""
        if is_secret(secret):
            secret = secret.get_secret_value()
        if isinstance(secret, str):
            self.found |= {secret, html.escape(secret), html.escape(secret, quote=False)}
            self.found |= {json.dumps(secret)[1:-1], repr(secret)[1:-1]}
        elif isinstance(secret, (list, tuple, Mapping)):
            for item in secret.values() if isinstance(secret, Mapping) else secret:
                self._note(item)

    def _arguments(self, text: str, depth: int) -> str:
        """Mask the arguments of a call, which models write as JSON."""
        try:
            read = json.loads(text or "{}")
        except (ValueError, RecursionError):
            return _CUT  # a piece of a stream: the name of a secret may be in another one
        inside = _Masker()  # what was read is gone soon, and others get its id
        masked = inside.mask(read, depth)
        self.found |= inside.found
        return text if masked is read else json.dumps(masked, ensure_ascii=False)

    def _items(self, value: "list[object] | tuple[object, ...] | deque[object] | Set[object]", depth: int) -> object:
        pairs = [(item, self.mask(item, depth)) for item in value]
        if all(old is new for old, new in pairs):
            return value
        if isinstance(value, Set):  # masked parts may be unhashable
            return {new if new is old else preview(new) for old, new in pairs}
        return next(kind(new for _, new in pairs) for kind in (list, tuple, deque) if isinstance(value, kind))


class _Previewer(reprlib.Repr):
    """`repr` that stops early on large values and masks what sits under a secret's name."""

    def __init__(self, limit: int, *, in_line: bool) -> None:
        super().__init__()
        self.in_line = in_line
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = limit
        self.maxlong = 80

    def repr1(self, x: object, level: int) -> str:
        if is_secret(x):
            return MASK
        if text := said_text(x):
            role = getattr(x, "role", None)
            return f"{role}: {self.repr_str(text, level)}" if role else self.repr_str(text, level)
        if isinstance(x, Mapping) and type(x) is not dict:
            return f"{type(x).__name__}({self.repr_dict(dict(x), level)})"
        return super().repr1(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        try:
            mask = _Masker().mask(x, _DEPTH)
            if mask is not x:
                return mask if isinstance(mask, str) else super().repr1(mask, level)
            text = _table_text(x) if self.in_line and type(x).__module__.partition(".")[0] == "pandas" else repr(x)
        except Exception as error:  # noqa: BLE001 - `repr` is user code
            return f"<{type(x).__name__}: its repr raised {type(error).__name__}>"
        # An address has no meaning for a reader and differs in every run.
        text = _ADDRESS.sub("", text)
        return text if len(text) <= self.maxother else text[: self.maxother] + "…"

    def repr_dict(self, x: Mapping[object, object], level: int) -> str:
        if level <= 0 and x:
            return "{…}"
        items = []
        for key, value in islice(x.items(), self.maxdict):
            text = MASK if value is not None and is_secret_name(key) else self.repr1(value, level - 1)
            items.append(f"{self.repr1(key, level - 1)}: {text}")
        if len(x) > self.maxdict:
            items.append(f"… {len(x) - self.maxdict:,} more")
        return "{" + ", ".join(items) + "}"


def _table_text(table: Any) -> str:
    """A pandas object in one line: its size, and the names of its columns."""
    rows = count_text(len(table), "row")
    if type(table).__name__ == "DataFrame":
        names = ", ".join(map(str, table.columns[:12])) + (", …" if len(table.columns) > 12 else "")
        return f"DataFrame, {rows}, {count_text(len(table.columns), 'column')}: {names}"
    return f"Series {table.name!r}, {rows}, {table.dtype}" if type(table).__name__ == "Series" else repr(table)
