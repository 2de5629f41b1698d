"""The displays of a tool, with its arguments, and of an MCP server, with its functions. Nothing is called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench._text.escape import MASK, esc
from agentbench._text.phrases import count_text
from agentbench.agents.mcp.tool import MCPTool
from agentbench.notebook.forms.fields import help_text
from agentbench.notebook.look.html import Page, Table, element

_HEAD = ("name", "type", "default", "what it is")
_MOST_LEVELS = 4
_WORDS_LIMIT = 800

Row = tuple[str, str, str, str]
Schema = Mapping[str, Any]


def tool(tool: Any) -> dict[str, str]:
    """Return the view of a tool: name, description, arguments, a badge for its approval mode, and counters."""
    words = [esc(tool.description, into="text", limit=_WORDS_LIMIT).strip()]
    state, look = "declared only" if tool.declaration_only else "no approval needed", "idle"
    if tool.approval_mode == "always_require":
        state, look = "needs approval", "waiting"
    rows: list[Row] = []
    try:
        schema = tool.parameters()
        rows += _fields(schema, schema.get("$defs") or {})
    except TypeError as error:
        state, look = "no schema", "failed"
        words.append(esc(error, into="text", limit=_WORDS_LIMIT))
    words = [*filter(None, words)]
    columns = 4 if any(row[3] for row in rows) else 3  # omit the column of descriptions if it is empty
    table = Table("Arguments", _HEAD[:columns], [row[:columns] for row in rows])
    prose = element("div", *(element("p", each, class_="ab_plain") for each in words), class_="ab_prose")
    page = Page(tool.name, state, look, _facts(tool), [table], prose if words else None)
    first, *others = page.text().splitlines()
    plain = [first, *(f"  {line}" for each in words for line in each.splitlines() if line), *others]
    return {"text/plain": "\n".join(plain), "text/html": page.html()}


def server_bundle(server: MCPTool) -> dict[str, str]:
    """Return a server's views by media type: its address without secrets, and a row for each function."""
    rows = [
        (each.name, each.description or "", "needs approval" if each.approval_mode == "always_require" else "")
        for each in server.functions
    ]
    state, look = ("connected", "done") if server.is_connected else ("not connected", "idle")
    facts = [type(server).__name__, server.address, count_text(len(rows), "function"), server.description]
    table = Table("Functions", ("name", "what it does", "note"), rows)
    return Page(server.name, state, look, [*filter(None, facts)], [table]).bundle()


def _facts(tool: Any) -> list[str]:
    facts = [] if tool.kind is None else [tool.kind]
    facts += [
        f"{name}: {', '.join(map(str, found))}" for name in ("tags", "capabilities") if (found := getattr(tool, name))
    ]
    calls = count_text(tool.invocation_count, "call") if tool.invocation_count else "not called yet"
    facts.append(calls + ("" if tool.max_invocations is None else f", at most {tool.max_invocations:,}"))
    if tool.invocation_exception_count or tool.max_invocation_exceptions is not None:
        most = "" if tool.max_invocation_exceptions is None else f", at most {tool.max_invocation_exceptions:,}"
        facts.append(f"{tool.invocation_exception_count:,} failed{most}")
    if tool.max_invocations_per_run is not None:
        facts.append(f"at most {count_text(tool.max_invocations_per_run, 'call')} per run")
    return facts


def _fields(schema: Schema, defs: Schema, path: str = "", inside: tuple[str, ...] = ()) -> Iterator[Row]:
    """Yield rows of the properties of an object, each followed by those of the objects in it."""
    required = schema.get("required") or ()
    for name, value in (schema.get("properties") or {}).items():
        part = value if isinstance(value, Mapping) else {}  # `true` is a schema too
        default = "required" if name in required else "optional"
        if name not in required and "default" in part:
            default = MASK if is_secret_name(name) else _json(part["default"])
        # The limits of `int | None` are inside it.
        about = ". ".join(filter(None, map(help_text, (part, *(part.get("anyOf") or ())))))
        words, nested, suffix, ref = _read(part, defs)
        yield f"{path}{name}", words, default, about
        if nested and ref not in inside and len(inside) < _MOST_LEVELS:
            yield from _fields(nested, defs, f"{path}{name}{suffix}.", (*inside, ref))


def _read(part: Any, defs: Schema, around: tuple[str, ...] = ()) -> tuple[str, Schema, str, str]:
    """Return a type in words (`"a" or "b"`, `array of Place`) and its object: schema, `[]` for a list, name."""
    # Older pydantic puts a reference with a default or a description into `allOf`.
    wrapped = part.get("allOf") or (part,) if isinstance(part, Mapping) else ({},)
    name = str(wrapped[0].get("$ref") or "").rpartition("/")[2] if len(wrapped) == 1 else ""
    name = name if name in defs else ""
    if name in around:  # a recursive type
        return name, {}, "", ""
    target = defs[name] if name else part if isinstance(part, Mapping) else {}
    inner = (*around, name) if name else around
    options = [_read(option, defs, inner) for option in target.get("anyOf") or target.get("oneOf") or ()]
    kinds = target.get("format") or target.get("type") or "anything"
    words = kinds if isinstance(kinds, str) else " or ".join(map(str, kinds))
    if "enum" in target or "const" in target:
        words = " or ".join(map(_json, target.get("enum") or [target.get("const")]))
    elif name or options:
        words = name or " or ".join(option[0] for option in options)
    if target.get("properties"):
        return words, target, "", name
    if items := target.get("items"):
        item, nested, suffix, ref = _read(items, defs, inner)
        return name or f"{words} of {item}", nested, f"[]{suffix}", ref
    return words, *next((option[1:] for option in options if option[1]), ({}, "", ""))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
