"""Requests of a server to the model of the client."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from agentbench.agents.mcp.contents import content_of, part_of
from agentbench.agents.mcp.package import make, wire
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")

_INTERNAL_ERROR = -32603
_TOOL_CHOICES = {"auto": "auto", "required": "required", "none": "none"}


async def answer_sampling(client: Any, params: Any) -> Any:
    """Let a chat client answer a server. What fails becomes an error of the protocol, and is never raised.

    Args:
        client: The chat client; None refuses.
        params: The parameters of the request.
    """
    if client is None:
        return _error("This client has no model: the tool was made without client=.")
    try:
        request = wire(params)
        answer = client.get_response([_message(each) for each in request["messages"]], options=_options(request))
        response = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:
        logger.warning("A server asked the model, and the model failed.", exc_info=True)
        return _error(f"The model failed: {type(error).__name__}.")
    parts = (part_of(content) for message in response.messages for content in message.contents)
    found = next((part for part in parts if part and part["type"] in ("text", "image")), None)
    if found is None:
        return _error("The model gave neither text nor a picture.")
    model = getattr(response, "model", None) or "unknown"
    return make("CreateMessageResult", {"role": "assistant", "content": found, "model": model})


def _message(sent: dict[str, Any]) -> Message:
    contents = sent["content"] if isinstance(sent["content"], list) else [sent["content"]]
    return Message(sent["role"], [content_of(each) for each in contents])


def _options(request: dict[str, Any]) -> dict[str, Any]:
    choice = (request.get("toolChoice") or {}).get("mode")
    tools = [
        FunctionTool(
            name=each["name"], description=each.get("description", ""), input_model=each.get("inputSchema") or {}
        )
        for each in request.get("tools") or ()
    ]
    options = {
        "instructions": request.get("systemPrompt"),
        "tools": tools,
        "tool_choice": _TOOL_CHOICES.get(choice or ""),
        "temperature": request.get("temperature"),
        "stop": request.get("stopSequences"),
    }
    given = {name: value for name, value in options.items() if value is not None and value != []}
    return {**given, "max_tokens": request["maxTokens"]}


def _error(message: str) -> Any:
    return make("ErrorData", {"code": _INTERNAL_ERROR, "message": message})
