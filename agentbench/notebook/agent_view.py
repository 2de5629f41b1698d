"""An agent as what it is made of: its model, instructions, tools, providers, middleware, options. Nothing is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentbench.agents.agent.raw_agent import RawAgent
from agentbench.agents.middleware.bases import AgentMiddleware, ChatMiddleware, FunctionMiddleware
from agentbench.agents.middleware.sorting import sort_middleware
from agentbench.agents.tools.collection import tool_name
from agentbench.exceptions import MiddlewareException
from agentbench.notebook.markup import Page, Table
from agentbench.notebook.redaction import line_preview, mask_secrets

__all__ = ["agent"]

_CUT = 600
_SHOWN_ELSEWHERE = frozenset({"instructions", "tools", "model"})
_BASES = (AgentMiddleware, ChatMiddleware, FunctionMiddleware)


def agent(shown: RawAgent) -> dict[str, str]:
    """An agent's views by media type: text, and HTML in which everything that people wrote is escaped."""
    return _page(shown).bundle()


def _page(shown: RawAgent) -> Page:
    tables = [
        Table("Instructions", ("for the model",), _instructions(shown), limit=_CUT),
        Table("Tools", ("name", "what it does", "note"), [*_tools(shown)]),
        Table("Context providers", ("source", "class", "note"), [*_providers(shown.context_providers)]),
        Table("Middleware", ("name", "around"), [*_middleware(shown.middleware)]),
        Table("Options", ("name", "value"), [*_options(shown.default_options)]),
    ]
    return Page(shown.name or type(shown).__name__, facts=_facts(shown), tables=tables)


def _facts(shown: RawAgent) -> list[str]:
    model = shown.default_options.get("model")
    facts = [type(shown).__name__] if shown.name else []
    if shown.description:
        facts.append(shown.description)
    facts.append(type(shown.client).__name__ + (f", model {model}" if model else ""))
    return facts if shown.id_is_generated else [*facts, f"id {shown.id}"]


def _instructions(shown: RawAgent) -> list[tuple[str]]:
    return [(shown.instructions,)] if shown.instructions else []


def _tools(shown: RawAgent) -> Iterable[tuple[str, str, str]]:
    for tool in (*(shown.default_options.get("tools") or ()), *shown.mcp_tools):
        name = tool_name(tool) or (str(tool.get("type", "")) if isinstance(tool, Mapping) else "")
        yield name or type(tool).__name__, _purpose(tool), _note(tool)


def _purpose(tool: Any) -> str:
    if isinstance(tool, Mapping):
        function = tool.get("function")
        tool = function if isinstance(function, Mapping) else tool
        return str(tool.get("description") or "")
    return str(getattr(tool, "description", None) or "")


def _note(tool: Any) -> str:
    if isinstance(tool, Mapping):
        return "run by the service"
    if hasattr(tool, "is_connected"):
        return "server, connected" if tool.is_connected else "server, not connected yet"
    if getattr(tool, "approval_mode", None) == "always_require":
        return "asks for approval"
    return "answered by the application" if getattr(tool, "declaration_only", False) else ""


def _providers(providers: Iterable[Any]) -> Iterable[tuple[str, str, str]]:
    for each in providers:
        note = "stores, does not load" if getattr(each, "load_messages", True) is False else ""
        yield str(getattr(each, "source_id", "")), type(each).__name__, note


def _middleware(middleware: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for each in middleware:
        name = type(each).__name__ if isinstance(each, _BASES) else getattr(each, "__name__", type(each).__name__)
        yield name, _around(each)


def _around(each: Any) -> str:
    try:
        kinds = sort_middleware(each)
    except MiddlewareException:
        return "?"
    around = (("the run", kinds.agent), ("each call of the model", kinds.chat), ("each call of a tool", kinds.function))
    return ", ".join(words for words, chain in around if chain)


def _options(options: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in options.items():
        if name in _SHOWN_ELSEWHERE or (name == "tool_choice" and value == "auto"):
            continue
        hidden = mask_secrets(value, key=name)
        yield name, hidden.__name__ if isinstance(hidden, type) else line_preview(hidden)
