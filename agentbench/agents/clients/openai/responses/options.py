"""Options as the Responses API takes them. Pure: options in, JSON out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from agentbench.agents.clients.openai.chat.options import as_list, function_specification, options_as_sent
from agentbench.agents.clients.openai.response_format import responses_text_format
from agentbench.messages.options import validate_tool_mode

logger = logging.getLogger("agentbench.openai")

# Options that Chat Completions has and this API refuses.
_NOT_HERE = ("frequency_penalty", "logit_bias", "prediction", "presence_penalty", "seed", "stop")

_LOG_PROBABILITIES = "message.output_text.logprobs"


def response_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that say how to answer; model, input and instructions are not among them."""
    sent = options_as_sent(options)
    for name in _NOT_HERE:
        if sent.pop(name, None) is not None:
            logger.warning("The Responses API has no option %r; it is not sent.", name)
    if options.get("max_tokens") is not None:
        sent.setdefault("max_output_tokens", options["max_tokens"])
    if sent.pop("logprobs", None):
        sent["include"] = [*sent.get("include", ()), _LOG_PROBABILITIES]
    conversation_id = options.get("conversation_id")
    if conversation_id:  # of a conversation that the service stores, or of the answer that this request continues
        is_conversation = str(conversation_id).startswith("conv_")
        sent["conversation" if is_conversation else "previous_response_id"] = conversation_id
    _nest(sent, "reasoning_effort", "reasoning", "effort")
    _nest(sent, "verbosity", "text", "verbosity")
    if options.get("response_format") is not None:
        sent["text"] = {**sent.get("text", {}), "format": responses_text_format(options["response_format"])}
    tools = response_tools(options.get("tools") or ())
    if tools:
        sent["tools"] = tools
        choice = response_tool_choice(options.get("tool_choice"))
        if choice is not None:
            sent["tool_choice"] = choice
        if options.get("allow_multiple_tool_calls") is not None:
            sent["parallel_tool_calls"] = options["allow_multiple_tool_calls"]
    return sent


def _nest(sent: dict[str, Any], flat: str, group: str, name: str) -> None:
    value = sent.pop(flat, None)
    if value is not None:
        sent[group] = {**sent.get(group, {}), name: value}


def response_tools(tools: Any) -> list[dict[str, Any]]:
    """Return the tools as they are sent; functions of either API's form are understood."""
    sent = []
    for tool in as_list(tools):
        specification = tool if isinstance(tool, Mapping) else function_specification(tool)
        if specification is not None:
            sent.append(_flat(specification))
    return sent


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        return dict(tool)
    # Without this word the service would make every parameter a required one.
    return {"type": "function", "strict": False, **function}


def response_tool_choice(choice: Any) -> Any:
    """Return which tools the model may or must call, as the service expects it.

    Raises:
        ContentError: This is no tool choice.
    """
    if isinstance(choice, Mapping) and "type" in choice:
        return dict(choice)
    mode = validate_tool_mode(choice)
    if mode is None:
        return None
    if mode.get("required_function_name"):
        return {"type": "function", "name": mode["required_function_name"]}
    allowed = mode.get("allowed_tools")
    if allowed is not None:
        named = [{"type": "function", "name": name} for name in allowed]
        return {"type": "allowed_tools", "mode": mode["mode"], "tools": named}
    return mode["mode"]
