"""Conversion of conversations to the message format of evaluation services."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agentbench.agents.tools.collection import normalize_tools, split_mcp_tools
from agentbench.evaluation.items import EvalItem
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse

_UNPARSABLE = {"_raw_arguments": "[unparsable]"}


class AgentEvalConverter:
    """Converts messages to the format of evaluation services: `{"role": ..., "content": [{"type": ...}]}`.

    Example:
        >>> AgentEvalConverter.convert_message(Message("user", "Hi"))
        [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}]
    """

    @staticmethod
    def convert_message(message: Message) -> list[dict[str, Any]]:
        """Convert a message. Each tool result in it becomes a separate message of the role `tool`.

        Args:
            message: The message. Text, images, tool calls and tool results are converted; other contents are dropped.
                An empty message gets one empty text.
        """
        results = [content for content in message.contents if content.type == "function_result"]
        parts = [part for content in message.contents if (part := _part(content)) is not None]
        converted: list[dict[str, Any]] = []
        if parts or not results:
            converted.append({"role": message.role, "content": parts or [{"type": "text", "text": ""}]})
        for result in results:
            content = [{"type": "tool_result", "tool_result": _plain_result(result)}]
            converted.append({"role": "tool", "tool_call_id": result.call_id or "", "content": content})
        return converted

    @staticmethod
    def convert_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Convert messages in order."""
        return [converted for message in messages for converted in AgentEvalConverter.convert_message(message)]

    @staticmethod
    def extract_tools(agent: Any) -> list[dict[str, Any]]:
        """Return the name, description and parameters of each function tool of an agent.

        Args:
            agent: The agent. Tools of MCP servers are included once the servers are connected.
        """
        return [
            {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters()}
            for tool in function_tools(agent)
            if hasattr(tool, "parameters")
        ]

    @staticmethod
    def to_eval_item(
        *,
        query: AgentRunInputs,
        response: AgentResponse | Iterable[Message],
        agent: Any = None,
        tools: list[Any] | None = None,
        context: str | None = None,
    ) -> EvalItem:
        """Create an item from a query and its response.

        Args:
            query: The query.
            response: The response.
            agent: The agent that answered. The item gets its tools.
            tools: The tools, instead of the agent's.
            context: Background information for checks.
        """
        answered = response.messages if isinstance(response, AgentResponse) else response
        if tools is None and agent is not None:
            tools = function_tools(agent)
        return EvalItem([*normalize_messages(query), *answered], tools, context)


def function_tools(agent: Any) -> list[Any]:
    """Return the function tools of an agent, including those of its connected MCP servers."""
    tools = (getattr(agent, "default_options", None) or {}).get("tools")
    own, servers = split_mcp_tools(normalize_tools(tools))
    servers += getattr(agent, "mcp_tools", None) or []
    return own + [function for server in servers if server.is_connected for function in server.functions]


def _part(content: Content) -> dict[str, Any] | None:
    """Convert a content to a part of a message; return None if the format has no part for it."""
    if content.type == "text":
        return {"type": "text", "text": content.text or ""}
    if content.type in ("data", "uri") and content.has_top_level_media_type("image"):
        return {"type": "input_image", "image_url": content.uri, "detail": "auto"}
    if content.type == "function_call":
        arguments = content.parse_arguments() or {}
        return {
            "type": "tool_call",
            "tool_call_id": content.call_id or "",
            "name": content.name or "",
            "arguments": _UNPARSABLE if arguments == {"raw": content.arguments} else arguments,
        }
    return None


def _plain_result(content: Content) -> Any:
    """Return the result of a tool, parsed if it is JSON."""
    result = content.result
    if not isinstance(result, str):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return result
