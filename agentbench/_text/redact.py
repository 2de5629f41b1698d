"""Short texts of values with masked secrets, for tables and requests on pages and in saved notebooks."""

import dataclasses
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from agentbench._secrets import field_names, is_secret, is_secret_name, mask_secrets, mask_text
from agentbench._text.escape import MASK, PREVIEW_LIMIT, esc
from agentbench._text.phrases import count_text
from agentbench.messages.content.content import ALWAYS_APPROVE, EDITED_ARGUMENTS, Content, question_in
from agentbench.messages.message import Message
from agentbench.messages.record import Record
from agentbench.messages.response import AgentResponse
from agentbench.serialization.class_names import UnknownInstance

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")

_SHORT = frozenset({int, float, bool, type(None)})
_SHORT_TEXT = 200
_FEW = 20


def hide_secrets(part: Any, secrets: Sequence[str]) -> Any:
    """Return a copy of nested texts in which `secrets` and values of secret names are masked, in text or HTML."""
    if isinstance(part, str):
        for secret in secrets:
            if secret in part:
                part = part.replace(secret, MASK)
        return mask_text(part)
    if isinstance(part, dict):
        return {name: hide_secrets(item, secrets) for name, item in part.items()}
    return [hide_secrets(item, secrets) for item in part] if isinstance(part, (list, tuple)) else part


def preview(value: object, *, limit: int = PREVIEW_LIMIT, in_line: bool = False) -> str:
    """Return a user's value as short text for `esc`.

    Strings and the texts of messages, responses and agents are unchanged; with `in_line`, a table is its size and its
    columns. Other values are their `repr`. Secrets are masked as by `mask_secrets`. A `repr` that raises is reported in
    the text, because a view must not fail because of its values.
    """
    question = question_of(value)
    if question is not value and isinstance(question, Mapping) and "question" in question:
        others = {name: each for name, each in question.items() if name != "question"}
        about = preview(others.get("context", others), limit=limit, in_line=in_line) if others else ""
        return f"{question['question']} {about}".rstrip()
    value = question
    if isinstance(value, str):
        return str(mask_secrets(value))
    return str(mask_secrets(message_text(value))) or _Previewer(limit, in_line=in_line).repr(value)


def question_of(value: object) -> Any:
    """Return the question of a request: for an interrupt of a state graph its question, otherwise the value itself."""
    ask = getattr(type(value), "_question_", None)
    return value if ask is None else ask(value)


def message_text(value: object) -> str:
    """Return the text of a message, a content or an agent's answer; empty for other values."""
    message = getattr(value, "agent_response", None) if dataclasses.is_dataclass(value) else value
    if not isinstance(message, (Record, Content)):
        return ""
    text = getattr(message, "text", None)
    if text or not isinstance(message, (AgentResponse, Message, Content)):
        return str(text or "")
    if isinstance(message, Content):
        contents = [message]
    else:
        messages = message.messages if isinstance(message, AgentResponse) else [message]
        contents = [content for message in messages for content in message.contents]
    # A call and its approval request appear once, as the request, which comes later.
    pairs = [(part.function_call or part, part) for part in contents]
    calls = {call.call_id: part for call, part in pairs if call.type == "function_call"}
    return ", ".join(map(_call_text, calls.values()))


def _call_text(content: Content) -> str:
    """Return the call in a content or in its approval request, secrets masked."""
    if content.approved is None and (question := server_question(content)):
        return question
    call = content.function_call or content
    edited = content.additional_properties.get(EDITED_ARGUMENTS)
    arguments = call.arguments if edited is None else edited
    masked = mask_secrets(arguments or {}, key="arguments")
    verb = "calls" if content is call else "to call"
    if content.approved is not None:
        verb = f"{decision_text(content)}:"
    return (
        f"{verb} {call.name} with {masked if isinstance(masked, str) else _Previewer(400, in_line=True).repr(masked)}"
    )


def server_question(request: Content) -> str:
    """Return a server's question to a person; empty for other requests."""
    question = question_in(request)
    return f"The server {question['server']} asks: {question['message']}" if question else ""


_LATER_CALLS = {"tool": ", always for this tool", "arguments": ", always with these arguments"}


def decision_text(answer: Content, call: Content | None = None) -> str:
    """Return the decision of a person about a call: `rejected`, `approved`, or `approved with copies: 50`.

    An approval that is also for later calls ends with `, always for this tool` or `, always with these arguments`. For
    a server's question it is `declined`, `answered`, or `answered with day: Friday`.

    Args:
        answer: The approval, or the result of an approved call.
        call: The call of the model; by default that of the approval.
    """
    no, yes = ("declined", "answered") if question_in(answer) else ("rejected", "approved")
    if answer.approved is False:
        return no
    later = _LATER_CALLS.get(str(answer.additional_properties.get(ALWAYS_APPROVE)), "")
    edited, call = answer.additional_properties.get(EDITED_ARGUMENTS), call or answer.function_call
    original = (call and call.parse_arguments()) or {}
    if not isinstance(edited, Mapping) or edited == original:
        return f"{yes}{later}"
    changed = {name: value for name, value in edited.items() if name not in original or original[name] != value}
    facts = [f"{line_preview(name)}: {line_preview(mask_secrets(value, key=name))}" for name, value in changed.items()]
    missing = [line_preview(name) for name in original if name not in edited]
    words = [f"{word} {', '.join(some)}" for word, some in (("with", facts), ("without", missing)) if some]
    return f"{yes} {' and '.join(words)}{later}"


def line_preview(value: object, limit: int = 120) -> str:
    """Return a value as one line of at most `limit` characters, secrets masked, cut with `…`.

    Line breaks and tabs become spaces; control, bidirectional and invisible characters are escaped.
    """
    if type(value) is str:
        text = str(mask_secrets(value))
    elif _is_short_and_plain(value):
        text = repr(value)
    else:
        text = preview(value, limit=limit, in_line=True)
    if not text.isprintable():
        text = esc(" ".join(text[: 4 * limit].split()), into="line", limit=None)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_short_and_plain(value: Any) -> bool:
    """Whether a value's `repr` is cheap and contains no secret, which is true for most values in tables."""
    if type(value) not in (dict, list, tuple):
        return type(value) in _SHORT
    if len(value) > _FEW or (type(value) is dict and any(map(is_secret_name, value))):
        return False
    items = value.values() if type(value) is dict else value
    return all(
        type(item) in _SHORT or (type(item) is str and len(item) < _SHORT_TEXT and mask_secrets(item) is item)
        for item in items
    )


def fields_of(value: object) -> Iterator[tuple[str, object]]:
    """Yield names and values of a mapping, dataclass, pydantic model or plain object; nothing for other values."""
    if isinstance(value, Mapping):
        yield from ((str(name), item) for name, item in value.items())
        return
    names = field_names(value)
    if names is None and hasattr(value, "__dict__") and not isinstance(value, type):
        names = [name for name in vars(value) if not name.startswith("_")]
    # A declared field may be unset.
    yield from ((name, getattr(value, name)) for name in names or () if hasattr(value, name))


class _Previewer(reprlib.Repr):
    """`repr` that stops early on large values and masks values under a secret name."""

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
        if isinstance(x, str):
            return self.repr_str(str(mask_secrets(x)), level)
        if text := message_text(x):
            role = getattr(x, "role", None)
            return f"{role}: {self.repr_str(text, level)}" if role else self.repr_str(text, level)
        if isinstance(x, Mapping) and type(x) not in (dict, UnknownInstance):
            return f"{type(x).__name__}({self.repr_dict(dict(x), level)})"
        return super().repr1(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        try:
            x = mask_secrets(x)
            text = _table_text(x) if self.in_line and type(x).__module__.partition(".")[0] == "pandas" else repr(x)
        except Exception as error:  # noqa: BLE001 - `repr` is user code
            return f"<{type(x).__name__}: its repr raised {type(error).__name__}>"
        # An address is meaningless to readers and differs in every run.
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
    """Return a pandas object in one line: its size and the names of its columns."""
    rows = count_text(len(table), "row")
    if type(table).__name__ == "DataFrame":
        names = ", ".join(map(str, table.columns[:12])) + (", …" if len(table.columns) > 12 else "")
        return f"DataFrame, {rows}, {count_text(len(table.columns), 'column')}: {names}"
    return f"Series {table.name!r}, {rows}, {table.dtype}" if type(table).__name__ == "Series" else repr(table)
