"""Options as Chat Completions takes them. Pure: options in, JSON out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbench.agents.clients.openai.response_format import chat_response_format
from agentbench.messages.options import ChatOptions, validate_tool_mode

logger = logging.getLogger("agentbench.openai")

# Options that are for the library, or that go elsewhere.
OURS = frozenset(
    {
        *("additional_function_arguments", "additional_properties", "allow_multiple_tool_calls", "continuation_token"),
        *("conversation_id", "instructions", "max_tokens", "messages", "model", "response_format", "stream"),
        *("tool_choice", "tools"),
    }
)


class OpenAIChatOptions(ChatOptions[Any], total=False):
    """Options of OpenAI-compatible services, beside those of `ChatOptions`. Unknown ones are sent as they are.

    Attributes:
        logprobs: Whether the answer has the probabilities of its tokens.
        top_logprobs: For how many alternatives of each token it has them.
        prediction: The expected answer, which makes it faster.
        verbosity: How long answers are: `low`, `medium`, `high`.
        reasoning_effort: How long the model thinks: `minimal`, `low`, `medium`, `high`.

    Example:
        ```python
        from agentbench import OpenAIChatOptions

        options: OpenAIChatOptions = {"reasoning_effort": "low", "max_tokens": 200}
        ```
    """

    logprobs: bool
    top_logprobs: int
    prediction: Mapping[str, Any]
    verbosity: str
    reasoning_effort: str


def chat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that say how to answer; model and messages are not among them."""
    sent = options_as_sent(options)
    if options.get("max_tokens") is not None:
        sent.setdefault("max_completion_tokens", options["max_tokens"])
    tools, search = chat_tools(options.get("tools") or ())
    if search is not None:
        sent.setdefault("web_search_options", search)
    if tools:
        sent["tools"] = tools
        choice = chat_tool_choice(options.get("tool_choice"))
        if choice is not None:
            sent["tool_choice"] = choice
        if options.get("allow_multiple_tool_calls") is not None:
            sent["parallel_tool_calls"] = options["allow_multiple_tool_calls"]
    if options.get("response_format") is not None:
        sent["response_format"] = chat_response_format(options["response_format"])
    return sent


def options_as_sent(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a service gets as they are, less those without a value."""
    sent = {name: value for name, value in options.items() if name not in OURS and value is not None}
    more = options.get("additional_properties")
    return {**more, **sent} if isinstance(more, Mapping) else sent


def chat_tools(tools: Any) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the tools as they are sent, and the options of a web search if that is one of them."""
    sent = []
    search: dict[str, Any] | None = None
    for tool in as_list(tools):
        if isinstance(tool, Mapping):
            if str(tool.get("type", "")).startswith("web_search"):
                search = _web_search_options(tool)
            else:
                sent.append(dict(tool))
        elif (specification := function_specification(tool)) is not None:
            sent.append(specification)
    return sent, search


def _web_search_options(tool: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in tool.items() if name != "type"}
    location = options.get("user_location")
    if isinstance(location, Mapping) and "approximate" not in location:
        place = {name: value for name, value in location.items() if name != "type"}
        options["user_location"] = {"type": "approximate", "approximate": place}
    return options


def as_list(tools: Any) -> Sequence[Any]:
    """Return one or several tools as a list."""
    if isinstance(tools, Mapping) or not isinstance(tools, Iterable):
        return [tools]
    return list(tools)


def function_specification(tool: Any) -> dict[str, Any] | None:
    """Return the JSON specification of a function tool; `None`, with a warning, if it has none."""
    describe = getattr(tool, "to_json_schema_spec", None)
    if not callable(describe):
        logger.warning("A tool of type %s is not sent: it has no JSON schema.", type(tool).__name__)
        return None
    specification: dict[str, Any] = describe()
    return specification


def chat_tool_choice(choice: Any) -> Any:
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
        return {"type": "function", "function": {"name": mode["required_function_name"]}}
    if mode.get("allowed_tools") is not None:
        logger.warning(
            "Chat Completions cannot restrict the tools that may be called; allowed_tools is not sent. "
            "Offer fewer tools, or use the Responses API."
        )
    return mode["mode"]
