"""Sampling: requests of a server to the model of the client."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentbench.agents.mcp.contents import content_of, part_of
from agentbench.agents.mcp.limits import MCPLimits, measure
from agentbench.agents.mcp.package import make, wire
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import MCPLimitError
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")

_INTERNAL_ERROR = -32603
_TOOL_CHOICES = {"auto": "auto", "required": "required", "none": "none"}


class Sampling:
    """Answers the requests of a server to the model, up to a limit per tool call."""

    def __init__(self, server: str, limits: MCPLimits) -> None:
        self._server, self._limits = server, limits
        self._requests = self._calls = 0

    @contextmanager
    def count_requests(self) -> Iterator[None]:
        """Count the requests during a tool call; concurrent calls share one count."""
        if not self._calls:
            self._requests = 0
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def answer(self, params: Any, client: Any, approve: Callable[[Any], Any] | None) -> Any:
        """Return the answer of the model if `approve` returns `True` for the parameters of the request.

        A failure is returned as a protocol error and never raised.
        """
        request, limits = wire(params), self._limits
        if client is None:
            return _error("This client has no model: client= is not set.")
        if approve is None:
            return _error("This client does not allow requests to its model: sampling_approval_callback= is not set.")
        self._requests += 1
        try:
            if self._requests > limits.max_sampling_requests:
                sent, name = "too many requests to the model", "max_sampling_requests"
                raise MCPLimitError(self._server, sent, name, limits.max_sampling_requests)
            check_payload(self._server, request, limits)
            approved = approve(params)
            if (await approved if inspect.isawaitable(approved) else approved) is not True:
                return _error("The request to the model was denied.")
            return _result(await self._ask(client, request))
        except MCPLimitError as error:
            logger.warning("A request to the model was denied: %s", error)
            return _error(f"The request exceeds the limit {error.limit}={error.value:g} of this client.")
        except Exception as error:
            logger.warning("A request of the server %s to the model failed.", self._server, exc_info=True)
            return _error(f"The model failed: {type(error).__name__}.")

    async def _ask(self, client: Any, request: Mapping[str, Any]) -> Any:
        ask, options = client.get_response, _options(request)
        options["max_tokens"] = int(min(options["max_tokens"], self._limits.max_sampling_tokens))
        parameters = inspect.signature(ask).parameters.values()
        takes_options = any(each.name == "options" or each.kind is each.VAR_KEYWORD for each in parameters)
        messages = [_message(each) for each in request["messages"]]
        answer = ask(messages, options=options) if takes_options else ask(messages)
        return await answer if inspect.isawaitable(answer) else answer


def check_payload(server: str, request: Mapping[str, Any], limits: MCPLimits) -> None:
    """Raise `MCPLimitError` if a sampling request or a question to a person is too large."""
    most = limits.max_host_payload_size_bytes
    if measure(request, most, limits.max_depth)[0] > most:
        raise MCPLimitError(server, "a request that is too large", "max_host_payload_size_bytes", most)


def _result(response: Any) -> Any:
    """Return the first text or image of a response as a sampling result; a protocol error if there is neither."""
    if response is None or not getattr(response, "messages", None):
        return _error("The model did not answer.")
    parts = (part_of(content) for message in response.messages for content in message.contents)
    first = next((part for part in parts if part and part["type"] in ("text", "image")), None)
    if first is None or first.get("text") == "":
        return _error("The answer of the model contains neither text nor an image.")
    model = getattr(response, "model", None) or "unknown"
    return make("CreateMessageResult", {"role": "assistant", "content": first, "model": model})


def _message(sent: dict[str, Any]) -> Message:
    contents = sent["content"] if isinstance(sent["content"], list) else [sent["content"]]
    return Message(sent["role"], [content_of(each) for each in contents])


def _options(request: Mapping[str, Any]) -> dict[str, Any]:
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
    non_empty = {name: value for name, value in options.items() if value is not None and value != []}
    return {**non_empty, "max_tokens": request["maxTokens"]}


def _error(message: str) -> Any:
    return make("ErrorData", {"code": _INTERNAL_ERROR, "message": message})
