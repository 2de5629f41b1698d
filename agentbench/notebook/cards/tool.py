"""The display of a tool: the arguments a model fills in, whether a person approves, how often it was called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench.notebook.forms.fields import help_text
from agentbench.notebook.look.html import Page, Table, element
from agentbench.notebook.text.escape import MASK, esc
from agentbench.notebook.text.phrases import count_text

__all__ = ["tool"]

_HEAD = ("name", "type", "default", "what it is")
_MOST_LEVELS = 4
_WORDS_LIMIT = 800

Row = tuple[str, str, str, str]


def tool(tool: Any) -> dict[str, str]:
    """A tool by its name, description and arguments, with a badge for its approval, and its counters."""
    words = [esc(tool.description, into="text", limit=_WORDS_LIMIT).strip()]
    state, look = _badge(tool)
    try:
        schema = tool.parameters()
        rows = list(_fields(schema, schema.get("$defs") or {}, "", ()))
    except TypeError as error:
        rows, state, look = [], "no schema", "failed"
        words.append(esc(error, into="text", limit=_WORDS_LIMIT))
    words = [each for each in words if each]
    prose = element("div", *(element("p", each, class_="ab_plain") for each in words), class_="ab_prose")
    page = Page(tool.name, state, look, _facts(tool), [_arguments(rows)], prose if words else None)
    first, *table = page.text().splitlines()
    plain = [first, *(f"  {line}" for each in words for line in each.splitlines() if line), *table]
    return {"text/plain": "\n".join(plain), "text/html": page.html()}


def _arguments(rows: Sequence[Row]) -> Table:
    """The arguments as a table; without descriptions, without their column."""
    columns = 4 if any(row[3] for row in rows) else 3
    return Table("Arguments", _HEAD[:columns], [row[:columns] for row in rows])


def _badge(tool: Any) -> tuple[str, str]:
    if tool.approval_mode == "always_require":
        return "asks for approval", "waiting"
    return ("declared only", "idle") if tool.declaration_only else ("no approval needed", "idle")


def _facts(tool: Any) -> list[str]:
    facts = [] if tool.kind is None else [tool.kind]
    calls = count_text(tool.invocation_count, "call") if tool.invocation_count else "not called yet"
    if tool.max_invocations is not None:
        calls += f", at most {tool.max_invocations:,}"
    failures = f"{tool.invocation_exception_count:,} failed"
    if tool.max_invocation_exceptions is not None:
        failures += f", at most {tool.max_invocation_exceptions:,}"
    facts.append(calls)
    if tool.invocation_exception_count or tool.max_invocation_exceptions is not None:
        facts.append(failures)
    if tool.max_invocations_per_run is not None:
        facts.append(f"at most {count_text(tool.max_invocations_per_run, 'call')} per run")
    return facts


def _fields(schema: Mapping[str, Any], defs: Mapping[str, Any], path: str, inside: tuple[str, ...]) -> Iterator[Row]:
    """Rows of the properties of an object, each followed by those of the objects in it."""
    required = schema.get("required") or ()
    for name, part in (schema.get("properties") or {}).items():
        if not isinstance(part, Mapping):
            continue
        where = f"{path}{name}"
        yield where, _type(part, defs), _default(name, part, required), _about(part)
        nested, suffix, ref = _inner_object(part, defs)
        if nested and ref not in inside and len(inside) < _MOST_LEVELS:
            yield from _fields(nested, defs, f"{where}{suffix}.", (*inside, ref))


def _about(part: Mapping[str, Any]) -> str:
    """Return the description and the limits of an argument; those of `int | None` are inside it."""
    inside = [each for each in part.get("anyOf") or () if isinstance(each, Mapping)]
    return ". ".join(filter(None, map(help_text, (part, *inside))))


def _default(name: str, part: Mapping[str, Any], required: Any) -> str:
    if name in required:
        return "required"
    if "default" not in part:
        return "optional"
    return MASK if is_secret_name(name) else _json(part["default"])


def _type(part: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """A type in words: `integer`, `array of string`, `"a" or "b"`, `Place or null`."""
    target, name = _follow(part, defs)
    if "enum" in target:
        return " or ".join(map(_json, target["enum"]))
    if "const" in target:
        return _json(target["const"])
    if name:
        return name
    options = target.get("anyOf") or target.get("oneOf")
    if options:
        words = " or ".join(_type(option, defs) for option in options if isinstance(option, Mapping))
    else:
        kinds = target.get("format") or target.get("type") or "anything"
        words = kinds if isinstance(kinds, str) else " or ".join(map(str, kinds))
    items = target.get("items")
    if isinstance(items, Mapping) and items:
        words += f" of {_type(items, defs)}"
    return words


def _inner_object(part: Mapping[str, Any], defs: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, str]:
    """Return the object in a property, or in a list or a choice there: its schema, `[]` for a list, its name."""
    target, name = _follow(part, defs)
    if target.get("properties"):
        return target, "", name
    items = target.get("items")
    if isinstance(items, Mapping):
        nested, suffix, name = _inner_object(items, defs)
        return nested, f"[]{suffix}", name
    for option in target.get("anyOf") or ():
        if isinstance(option, Mapping) and (found := _inner_object(option, defs))[0]:
            return found
    return {}, "", ""


def _follow(part: Mapping[str, Any], defs: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return what a reference leads to, and its name; without one the part itself."""
    wrapped: Sequence[Any] = (
        part.get("allOf") or ()
    )  # older pydantic puts a reference with a default or a description in there
    ref = wrapped[0] if len(wrapped) == 1 and isinstance(wrapped[0], Mapping) else part
    name = str(ref.get("$ref") or "").rpartition("/")[2]
    target = defs.get(name)
    return (target, name) if isinstance(target, Mapping) else (part, "")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
