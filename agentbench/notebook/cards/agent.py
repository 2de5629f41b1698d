"""An agent's parts as tables: its model, instructions, tools, providers, middleware, options. Nothing is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentbench.agents.agent.raw_agent import RawAgent
from agentbench.agents.middleware.bases import AgentMiddleware, ChatMiddleware, FunctionMiddleware
from agentbench.agents.middleware.sorting import sort_middleware
from agentbench.agents.tools.collection import tool_name
from agentbench.exceptions import MiddlewareException
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.text.redact import line_preview, mask_secrets

__all__ = ["agent_bundle"]

_CUT = 600
_IN_OTHER_TABLES = frozenset({"instructions", "tools", "model"})
_BASES = (AgentMiddleware, ChatMiddleware, FunctionMiddleware)


def agent_bundle(agent: RawAgent) -> dict[str, str]:
    """Return an agent's views by media type: plain text, and HTML in which all foreign text is escaped."""
    return _page(agent).bundle()


def _page(agent: RawAgent) -> Page:
    tables = [
        Table("Instructions", ("for the model",), _instructions(agent), limit=_CUT),
        Table("Tools", ("name", "what it does", "note"), [*_tools(agent)]),
        Table("Context providers", ("source", "class", "note"), [*_providers(agent.context_providers)]),
        Table("Middleware", ("name", "around"), [*_middleware(agent.middleware)]),
        Table("Options", ("name", "value"), [*_options(agent.default_options)]),
    ]
    return Page(agent.name or type(agent).__name__, facts=_facts(agent), tables=tables)


def _facts(agent: RawAgent) -> list[str]:
    model = agent.default_options.get("model")
    facts = [type(agent).__name__] if agent.name else []
    if agent.description:
        facts.append(agent.description)
    facts.append(type(agent.client).__name__ + (f", model {model}" if model else ""))
    return facts if agent.id_is_generated else [*facts, f"id {agent.id}"]


def _instructions(agent: RawAgent) -> list[tuple[str]]:
    return [(agent.instructions,)] if agent.instructions else []


def _tools(agent: RawAgent) -> Iterable[tuple[str, str, str]]:
    for tool in (*(agent.default_options.get("tools") or ()), *agent.mcp_tools):
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
        if name in _IN_OTHER_TABLES or (name == "tool_choice" and value == "auto"):
            continue
        hidden = mask_secrets(value, key=name)
        yield name, hidden.__name__ if isinstance(hidden, type) else line_preview(hidden)
