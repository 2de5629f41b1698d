"""Run an agent as a tool of another agent, or serve it as a tool over the Model Context Protocol.

An agent that runs as a tool remembers nothing between calls. If it asks a person, its conversation so far is stored in
the request, in the conversation of the calling agent. Once the person has answered, it continues from there.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any, Final

from agentbench._extras import require
from agentbench.agents.history.pending_calls import replace_messages
from agentbench.agents.loop.call import copy_with
from agentbench.agents.middleware.contexts import InnerApprovals
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.answers import without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse

_KEY: Final = "inner_conversation"


def with_conversation(
    requests: Iterable[Content], messages: Sequence[Message], response: AgentResponse[Any]
) -> list[Content]:
    """Return copies of requests with the agent's conversation: its input for the model, and its answer."""
    written = [message.to_dict() for message in (*resolved_inputs(messages, response), *response.messages)]
    copies = []
    for request in requests:
        copied = copy_with(request)
        copied.additional_properties[_KEY] = written
        copies.append(copied)
    return copies


def resolved_inputs(messages: Sequence[Message], response: AgentResponse[Any]) -> list[Message]:
    """Return the input of a run as the model saw it, with answers to requests replaced by results."""
    return replace_messages(messages, getattr(response.raw_representation, "_resolved_inputs", None))


def resume_messages(approvals: InnerApprovals) -> Sequence[Message]:
    """Return an agent's input after a person has answered: its conversation or the requests, then the answers."""
    written = approvals.requests[0].additional_properties.get(_KEY)
    if written:
        before = without_answers([Message.from_dict(message) for message in written], "the conversation of a tool")
    else:
        before = [Message("assistant", [copy_with(request, call_id=None) for request in approvals.requests])]
    return [*before, Message("user", list(approvals.answers))]


async def run_streamed(
    agent: Any, messages: Any, on_update: Callable[[Any], Awaitable[None] | None] | None = None, **extra: Any
) -> AgentResponse[Any]:
    """Return the response of a streamed run, also for agents of other libraries; `on_update` gets each update."""
    stream = agent.run(messages, stream=True, **extra)
    if not hasattr(stream, "__aiter__"):
        stream = await stream
    updates = []
    try:
        async for update in stream:
            updates.append(update)
            if on_update is not None and isawaitable(pending := on_update(update)):
                await pending
        if hasattr(stream, "get_final_response"):
            final: AgentResponse[Any] = await stream.get_final_response()
            return final
    finally:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    response_format = (getattr(agent, "default_options", None) or {}).get("response_format")
    return AgentResponse.from_updates(updates, output_format_type=response_format)


def tool_name_of(agent: Any) -> str:
    """Return an agent's name with only letters, digits and underscores, as services require for tools."""
    if not agent.name:
        message = f"{agent!r} has no name to use for the tool. Name the agent, or pass a name: as_tool(name='...')."
        raise ValueError(message)
    name = re.sub(r"[^0-9A-Za-z]+", "_", agent.name).strip("_") or "agent"
    return f"_{name}" if name[0].isdigit() else name


logger = logging.getLogger("agentbench")

_Handler = Callable[[Any, Any], Awaitable[Any]]


def serve_tool(
    tool: FunctionTool, name: str, version: str | None, instructions: str | None, lifespan: Callable[..., Any] | None
) -> Any:
    """Return a server with one tool; see `BaseAgent.as_mcp_server`."""
    purpose = "serve an agent over the Model Context Protocol"
    types = require("mcp.types", extra="mcp", purpose=purpose)
    lowlevel = require("mcp.server.lowlevel", extra="mcp", purpose=purpose)
    from agentbench.observability.instruments import VERSION  # noqa: PLC0415 - makes an enum of all attributes of spans

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
