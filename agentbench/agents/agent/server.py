"""Serve an agent over the Model Context Protocol. Needs the extra `mcp`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from agentbench._extras import require
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.observability.instruments import VERSION

logger = logging.getLogger("agentbench")

_Handler = Callable[[Any, Any], Awaitable[Any]]


def serve_tool(
    tool: FunctionTool, name: str, version: str | None, instructions: str | None, lifespan: Callable[..., Any] | None
) -> Any:
    """Return a server with one tool; see `BaseAgent.as_mcp_server`."""
    purpose = "serve an agent over the Model Context Protocol"
    types = require("mcp.types", extra="mcp", purpose=purpose)
    lowlevel = require("mcp.server.lowlevel", extra="mcp", purpose=purpose)
    settings: dict[str, Any] = {"version": version or VERSION}
    if instructions is not None:
        settings["instructions"] = instructions
    if lifespan is not None:
        settings["lifespan"] = lifespan

    async def list_tools(_context: Any, _params: Any) -> Any:
        described = {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters()}
        return types.ListToolsResult.model_validate({"tools": [described]})

    async def call_tool(_context: Any, params: Any) -> Any:
        text, failed = await _answer(tool, params.name, params.arguments or {})
        return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": failed})

    return _server_with(lowlevel.Server, types, name, settings, list_tools, call_tool)


def _server_with(
    server_class: Any, types: Any, name: str, settings: dict[str, Any], list_tools: _Handler, call_tool: _Handler
) -> Any:
    """Make a server with the installed package: 2.x takes handlers as arguments, 1.x registers them by request type."""
    if not hasattr(server_class, "list_tools"):
        return server_class(name, on_list_tools=list_tools, on_call_tool=call_tool, **settings)

    def for_requests(handler: _Handler) -> Callable[[Any], Awaitable[Any]]:
        async def handle(request: Any) -> Any:
            return types.ServerResult(await handler(None, request.params))

        return handle

    server = server_class(name, **settings)
    server.request_handlers[types.ListToolsRequest] = for_requests(list_tools)
    server.request_handlers[types.CallToolRequest] = for_requests(call_tool)
    return server


async def _answer(tool: FunctionTool, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Return the text for the client and whether it is an error. Error texts contain no internal details."""
    if name != tool.name:
        return f'Error: Unknown tool "{name}". This server has "{tool.name}".', True
    try:
        arguments = tool.validate_arguments(arguments)
    except TypeError as error:
        return f"Error: {error}", True
    try:
        contents = await tool.invoke(arguments=arguments)
    except UserInputRequiredException as question:
        questions = "; ".join(_wording(content) for content in question.contents)
        return f"Error: The agent needs an answer from a person, but this server cannot ask one: {questions}", True
    except Exception as error:
        logger.error("The agent behind the tool %r failed with %s.", name, type(error).__name__)
        logger.debug("The agent behind the tool %r failed.", name, exc_info=error)
        return "Error: The agent failed.", True
    return "\n".join(content.text or "" for content in contents), False


def _wording(content: Any) -> str:
    call = getattr(content, "function_call", None)
    return f"may {call.name} be called?" if call is not None else str(content)
