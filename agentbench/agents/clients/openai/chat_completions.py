"""The Chat Completions API, which most compatible servers support, and its options."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.agents.clients.openai.chat_messages import chat_messages
from agentbench.agents.clients.openai.chat_response import ChunkReader, chat_response
from agentbench.agents.clients.openai.wire import WireRequest, field, items, nothing_to_send
from agentbench.messages.inputs import prepend_instructions_to_messages
from agentbench.messages.message import Message
from agentbench.messages.options import ChatOptions, ToolMode, validate_tool_mode
from agentbench.messages.response import ChatResponse

_READY = ("json_schema", "json_object", "text")  # formats that are sent unchanged
_NAMED = ("properties", "$defs", "definitions")  # keywords with schemas by name
_VALUES = ("const", "enum", "examples")  # keywords with values, which are not schemas


def chat_response_format(response_format: Any) -> dict[str, Any]:
    """Return the field `response_format` of Chat Completions."""
    json_schema = _named_schema(response_format)
    if json_schema is None:
        return dict(response_format)
    if not json_schema["strict"]:
        del json_schema["strict"]
    return {"type": "json_schema", "json_schema": json_schema}


def responses_text_format(response_format: Any) -> dict[str, Any]:
    """Return the field `text.format` of the Responses API, which also accepts the formats of Chat Completions."""
    json_schema = _named_schema(response_format) or response_format.get("json_schema")
    return {"type": "json_schema", **json_schema} if isinstance(json_schema, Mapping) else dict(response_format)


def _named_schema(response_format: Any) -> dict[str, Any] | None:
    """Return the name, schema and strictness of a model class or JSON schema; `None` for a ready format."""
    if isinstance(response_format, Mapping):
        if response_format.get("type") in _READY:
            return None
        schema = {"additionalProperties": False, **response_format}
        title = schema.get("title")
    else:
        make_schema = getattr(response_format, "model_json_schema", None)
        if not isinstance(response_format, type) or not callable(make_schema):
            message = f"response_format is {response_format!r}. Expected a pydantic model class or a JSON schema."
            raise TypeError(message)
        schema, title = strict_schema(make_schema()), response_format.__name__
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", title).strip("_")[:64] if isinstance(title, str) else ""
    return {"name": name or "response", "schema": schema, "strict": is_strict(schema)}


def strict_schema(schema: Any) -> Any:
    """Make a schema strict for services: no optional or additional properties, and no defaults."""
    if isinstance(schema, list):
        return [strict_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            made[key] = {name: strict_schema(part) for name, part in value.items()}
        elif key != "default":
            made[key] = value if key in _VALUES else strict_schema(value)
    if "properties" in made:
        made.setdefault("additionalProperties", False)
        made["required"] = list(made["properties"])
    if "$ref" in made and len(made) > 1:
        # Next to a reference, no other keyword is allowed.
        made = {"$ref": made["$ref"]}
    return made


def is_strict(schema: Any) -> bool:
    """Return whether a schema is strict: objects require all properties and allow no others."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    return all(
        all(map(is_strict, value.values())) if key in _NAMED else is_strict(value)
        for key, value in schema.items()
        if key not in (*_VALUES, "required")
    )


logger = logging.getLogger("agentbench.openai")

# Options that the library uses itself, or that are sent in another place.
OURS = frozenset(
    {
        *("additional_function_arguments", "additional_properties", "allow_multiple_tool_calls", "continuation_token"),
        *("conversation_id", "instructions", "max_tokens", "messages", "model", "response_format", "stream"),
        *("tool_choice", "tools"),
    }
)


class OpenAIChatOptions(ChatOptions[Any], total=False):
    """Options of OpenAI-compatible services, in addition to `ChatOptions`. Unknown options are sent unchanged.

    Attributes:
        logprobs: Whether the answer contains the log probabilities of its tokens.
        top_logprobs: Number of alternatives per token to include.
        prediction: The expected answer, to speed up generation.
        verbosity: Length of answers: `low`, `medium`, `high`.
        reasoning_effort: Amount of reasoning: `minimal`, `low`, `medium`, `high`.

    Example:
        from agentbench.openai import OpenAIChatOptions

        options: OpenAIChatOptions = {"reasoning_effort": "low", "max_tokens": 200}
    """

    logprobs: bool
    top_logprobs: int
    prediction: Mapping[str, Any]
    verbosity: str
    reasoning_effort: str


OpenAIChatCompletionOptions = OpenAIChatOptions


class ChatCompletions:
    """The Chat Completions API: every request contains the whole conversation."""

    path = "chat.completions"  # attribute path of this API in the SDK
    stores = False  # whether the service stores answers by default

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Return a request."""
        led = prepend_instructions_to_messages(messages, options.get("instructions"), instruction_role or "system")
        sent = chat_messages(led)
        if not sent:
            raise nothing_to_send()
        body = {"model": options.get("model") or model, "messages": sent, **chat_options(options)}
        return WireRequest("create", body)

    def response(self, answer: Any, options: Mapping[str, Any]) -> ChatResponse[Any] | None:
        """Convert an answer to a response; `None` if it has no choices."""
        if not items(answer, "choices"):
            return None
        return chat_response(answer, response_format=options.get("response_format"))

    def failure(self, answer: Any) -> Any:
        """Return the error that some compatible services report instead of choices, if any."""
        return None if items(answer, "choices") else field(answer, "error") or None

    def reader(self, options: Mapping[str, Any]) -> ChunkReader:
        """Return the reader for a stream."""
        return ChunkReader()

    def stream_request(self, request: WireRequest) -> WireRequest:
        """Return the request for a stream with token counts at the end."""
        counting = {"include_usage": True, **(request.body.get("stream_options") or {})}
        return request._replace(body={**request.body, "stream": True, "stream_options": counting})


def chat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request without model and messages."""
    sent = options_as_sent(options)
    if options.get("max_tokens") is not None:
        sent.setdefault("max_completion_tokens", options["max_tokens"])
    tools = []
    for tool in tool_specifications(options):
        if str(tool.get("type", "")).startswith("web_search"):
            sent.setdefault("web_search_options", _web_search_options(tool))
        else:
            tools.append(tool)
    sent |= tool_fields(tools, options, _tool_choice)
    if options.get("response_format") is not None:
        sent["response_format"] = chat_response_format(options["response_format"])
    return sent


def options_as_sent(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are sent unchanged, without those that are `None`."""
    sent = {name: value for name, value in options.items() if name not in OURS and value is not None}
    more = options.get("additional_properties")
    return {**more, **sent} if isinstance(more, Mapping) else sent


def tool_specifications(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON specifications of the tools; a tool without one is skipped with a warning."""
    tools = options.get("tools") or ()
    found = []
    for tool in [tools] if isinstance(tools, Mapping) or not isinstance(tools, Iterable) else tools:
        describe = getattr(tool, "to_json_schema_spec", None)
        if isinstance(tool, Mapping):
            found.append(dict(tool))
        elif callable(describe):
            found.append(describe())
        else:
            logger.warning("A tool of type %s is not sent: it has no JSON schema.", type(tool).__name__)
    return found


def tool_fields(
    tools: list[dict[str, Any]], options: Mapping[str, Any], choose: Callable[[ToolMode], Any]
) -> dict[str, Any]:
    """Return the fields for tools and tool choice; `choose` converts a tool mode to the API's form."""
    if not tools:
        return {}
    choice = options.get("tool_choice")
    if not isinstance(choice, Mapping) or "type" not in choice:
        mode = validate_tool_mode(choice)
        choice = None if mode is None else choose(mode)
    fields = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": options.get("allow_multiple_tool_calls")}
    return {name: value for name, value in fields.items() if value is not None}


def _web_search_options(tool: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in tool.items() if name != "type"}
    location = options.get("user_location")
    if isinstance(location, Mapping) and "approximate" not in location:
        place = {name: value for name, value in location.items() if name != "type"}
        options["user_location"] = {"type": "approximate", "approximate": place}
    return options


def _tool_choice(mode: ToolMode) -> Any:
    if mode.get("required_function_name"):
        return {"type": "function", "function": {"name": mode["required_function_name"]}}
    if mode.get("allowed_tools") is not None:
        logger.warning(
            "Chat Completions does not support allowed_tools, so it is not sent. "
            "Pass fewer tools, or use the Responses API."
        )
    return mode["mode"]
