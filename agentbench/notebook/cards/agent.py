"""An agent's parts as tables: its model, instructions, tools, providers, middleware, options. Nothing is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentbench._secrets import mask_secrets
from agentbench._text.redact import line_preview
from agentbench.agents.agent.agent import RawAgent
from agentbench.agents.middleware.contexts import AgentMiddleware, ChatMiddleware, FunctionMiddleware
from agentbench.agents.middleware.sorting import sort_middleware
from agentbench.agents.tools.collection import tool_name
from agentbench.exceptions import MiddlewareException
from agentbench.notebook.look.html import Page, Table

_CUT = 600
_IN_OTHER_TABLES = frozenset({"instructions", "tools", "model"})


def agent_bundle(agent: RawAgent) -> dict[str, str]:
    """Return an agent's views by media type: plain text, and HTML with escaped foreign text."""
    options, name = agent.default_options, type(agent).__name__
    model = options.get("model")
    facts = [
        name if agent.name else "",
        agent.description or "",
        type(agent.client).__name__ + (f", model {model}" if model else ""),
        "" if agent.id_is_generated else f"id {agent.id}",
    ]
    tools = (*(options.get("tools") or ()), *agent.mcp_tools)
    providers = []
    for each in agent.context_providers:
        only_stores = getattr(each, "load_messages", True) is False and not getattr(each, "ADDS_CONTEXT", False)
        note = "stores, does not load" if only_stores else ""
        providers.append((str(getattr(each, "source_id", "")), type(each).__name__, note))
    tables = [
        Table("Instructions", ("for the model",), [(agent.instructions,)] if agent.instructions else [], limit=_CUT),
        Table("Tools", ("name", "what it does", "note"), [_tool_row(each) for each in tools]),
        Table("Context providers", ("source", "class", "note"), providers),
        Table("Middleware", ("name", "around"), [_middleware_row(each) for each in agent.middleware]),
        Table("Options", ("name", "value"), [*_option_rows(options)]),
    ]
    return Page(agent.name or name, facts=[*filter(None, facts)], tables=tables).bundle()


def _tool_row(tool: Any) -> tuple[str, str, str]:
    if isinstance(tool, Mapping):
        function = tool.get("function")
        about = function if isinstance(function, Mapping) else tool
        name = tool_name(tool) or str(tool.get("type", "")) or "tool"
        return name, str(about.get("description") or ""), "executed by the service"
    note = ""
    if hasattr(tool, "is_connected"):
        note = "server, connected" if tool.is_connected else "server, not connected yet"
    elif getattr(tool, "approval_mode", None) == "always_require":
        note = "needs approval"
    elif getattr(tool, "declaration_only", False):
        note = "executed by the application"
    return tool_name(tool) or type(tool).__name__, str(getattr(tool, "description", None) or ""), note


def _middleware_row(middleware: Any) -> tuple[str, str]:
    name = type(middleware).__name__
    if not isinstance(middleware, (AgentMiddleware, ChatMiddleware, FunctionMiddleware)):
        name = getattr(middleware, "__name__", name)
    try:
        kinds = sort_middleware(middleware)
    except MiddlewareException:
        return name, "?"
    around = (("the run", kinds.agent), ("each model call", kinds.chat), ("each tool call", kinds.function))
    return name, ", ".join(words for words, chain in around if chain)


def _option_rows(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if name not in _IN_OTHER_TABLES and (name, value) != ("tool_choice", "auto"):
            masked = mask_secrets(value, key=name)
            yield name, masked.__name__ if isinstance(masked, type) else line_preview(masked)
