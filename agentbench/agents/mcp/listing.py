"""Tools and prompts as a server lists them, and the functions that are made of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from agentbench.agents.mcp.naming import ApprovalMode, ToolName
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool

Kind = Literal["tools", "prompts"]

Answer = Callable[[Kind, str, dict[str, Any], Mapping[str, Any]], Awaitable[Any]]
"""Calls a tool or a prompt by its name on the server, with arguments, and with the keyword arguments of the run."""

NEVER_SENT = frozenset(
    {"chat_options", "tools", "tool_choice", "session", "thread", "conversation_id", "options", "response_format"}
)
"""Arguments of a run that mean something here, and nothing to a server."""

_ORIGINAL, _NORMALIZED = "_mcp_remote_name", "_mcp_normalized_name"


class Listed(NamedTuple):
    """A tool or prompt: its names, how the server lists it, and the function made of it."""

    name: ToolName
    listing: dict[str, Any]
    function: FunctionTool


def function_of(
    kind: Kind, name: ToolName, listing: Mapping[str, Any], approval: ApprovalMode | None, answer: Answer
) -> FunctionTool:
    """Return a function that asks the server. It sends what the model gave, and of the run only what it declares.

    Raises:
        ValueError: It has no name.
    """
    if not name.exposed:
        msg = f"One of the {kind} has no name."
        raise ValueError(msg)
    schema = _prompt_schema(listing) if kind == "prompts" else dict(listing.get("inputSchema") or {})
    if schema.get("type") == "object":
        schema.setdefault("properties", {})

    async def call(_invocation: FunctionInvocationContext, **arguments: Any) -> Any:
        runtime = _invocation.kwargs
        declared = schema.get("properties") or ()
        given = {key: runtime[key] for key in declared if key in runtime and key not in NEVER_SENT} | arguments
        return await answer(kind, name.original, given, runtime)

    return FunctionTool(
        call,
        name=name.exposed,
        description=str(listing.get("description") or ""),
        approval_mode=approval,
        input_model=schema,
        additional_properties={_ORIGINAL: name.original, _NORMALIZED: name.normalized},
    )


def _prompt_schema(listing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a prompt's arguments, which are all texts."""
    arguments = listing.get("arguments") or ()
    properties = {
        each["name"]: {"type": "string", **({"description": each["description"]} if each.get("description") else {})}
        for each in arguments
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [each["name"] for each in arguments if each.get("required")],
    }
