"""Attributes of spans and metrics of agents, models and tools, and messages in them. `None`: no attribute."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from agentbench._secrets import MASK, mask_secrets, without_secrets
from agentbench.messages.content.content import Content
from agentbench.messages.options import as_list
from agentbench.observability.instruments import OtelAttr
from agentbench.serialization.plain import to_plain, write_plain

Attributes = dict[str, Any]

# These options of a request become attributes without conversion.
_REQUEST = {
    "temperature": OtelAttr.REQUEST_TEMPERATURE,
    "top_p": OtelAttr.REQUEST_TOP_P,
    "max_tokens": OtelAttr.REQUEST_MAX_TOKENS,
    "seed": OtelAttr.SEED,
    "frequency_penalty": OtelAttr.FREQUENCY_PENALTY,
    "presence_penalty": OtelAttr.PRESENCE_PENALTY,
}
_PORTS: Final = {"http": 80, "https": 443}
_METRIC_KEYS: Final = (
    *(OtelAttr.OPERATION, OtelAttr.PROVIDER_NAME, OtelAttr.REQUEST_MODEL, OtelAttr.RESPONSE_MODEL),
    *(OtelAttr.TOOL_NAME, OtelAttr.ADDRESS, OtelAttr.PORT, OtelAttr.ERROR_TYPE),
)


def agent_attributes(agent: Any, options: Mapping[str, Any], session: Any) -> Attributes:
    """Return the attributes that are known before an agent runs. `options` combines those of agent and run."""
    conversation = (
        getattr(session, "service_session_id", None)
        or options.get("conversation_id")
        or getattr(session, "session_id", None)
    )
    provider = getattr(agent, "otel_agent_provider_name", None) or getattr(agent, "AGENT_PROVIDER_NAME", None)
    return {
        OtelAttr.OPERATION: OtelAttr.AGENT_INVOKE_OPERATION,
        OtelAttr.PROVIDER_NAME: str(provider or OtelAttr.AGENT_FRAMEWORK_GEN_AI_SYSTEM),
        OtelAttr.AGENT_ID: _text(getattr(agent, "id", None)),
        OtelAttr.AGENT_NAME: _text(getattr(agent, "name", None)),
        OtelAttr.AGENT_DESCRIPTION: _text(getattr(agent, "description", None)),
        OtelAttr.CONVERSATION_ID: _text(conversation),
        **request_attributes(options),
        OtelAttr.TOOL_DEFINITIONS: tool_definitions(options.get("tools")),
    }


def chat_attributes(client: Any, options: Any, *, operation: str = OtelAttr.CHAT_COMPLETION_OPERATION) -> Attributes:
    """Return the attributes that are known before a model is called. The operation is `chat` or `embeddings`."""
    options = options if isinstance(options, Mapping) else {}
    address, port = _server(client)
    provider = getattr(client, "otel_provider_name", None) or getattr(client, "OTEL_PROVIDER_NAME", None)
    return {
        OtelAttr.OPERATION: operation,
        OtelAttr.PROVIDER_NAME: str(provider or "unknown"),
        OtelAttr.ADDRESS: address,
        OtelAttr.PORT: port,
        **(request_attributes(options) if operation == OtelAttr.CHAT_COMPLETION_OPERATION else {}),
        OtelAttr.REQUEST_MODEL: model_name(client, options),
        OtelAttr.CONVERSATION_ID: _text(options.get("conversation_id")),
    }


def model_name(client: Any, options: Any) -> str:
    """Return the model of a call; `unknown` if neither the options nor the client specify one."""
    model = options.get("model") if isinstance(options, Mapping) else None
    return str(model or getattr(client, "model", None) or "unknown")


def request_attributes(options: Mapping[str, Any]) -> Attributes:
    """Return the attributes for the options of a request."""
    attributes: Attributes = {name: options.get(option) for option, name in _REQUEST.items()}
    attributes[OtelAttr.REQUEST_MODEL] = _text(options.get("model"))
    stop = options.get("stop")
    if stop:
        attributes[OtelAttr.STOP_SEQUENCES] = (stop,) if isinstance(stop, str) else tuple(map(str, stop))
    attributes[OtelAttr.CHOICE_COUNT] = 1
    return attributes


def tool_attributes(tool: Any, call_id: str | None) -> Attributes:
    """Return the attributes that are known before a tool is called."""
    return {
        OtelAttr.OPERATION: OtelAttr.TOOL_EXECUTION_OPERATION,
        OtelAttr.TOOL_NAME: tool_name(tool),
        OtelAttr.TOOL_CALL_ID: call_id or "unknown",
        OtelAttr.TOOL_TYPE: "function",
        OtelAttr.TOOL_DESCRIPTION: _text(getattr(tool, "description", None)),
    }


def tool_name(tool: Any) -> str:
    """Return the name of a tool."""
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)


def response_attributes(response: Any) -> Attributes:
    """Return the attributes of a model's answer."""
    finish = getattr(response, "finish_reason", None)
    return {
        OtelAttr.RESPONSE_ID: _text(getattr(response, "response_id", None)),
        OtelAttr.RESPONSE_MODEL: _text(getattr(response, "model", None)),
        OtelAttr.FINISH_REASONS: (str(finish),) if finish else None,
        **usage_attributes(getattr(response, "usage_details", None)),
    }


def usage_attributes(usage: Mapping[str, Any] | None) -> Attributes:
    """Return the numbers of input and output tokens, if they are known."""
    names = {"input_token_count": OtelAttr.INPUT_TOKENS, "output_token_count": OtelAttr.OUTPUT_TOKENS}
    counts = {name: (usage or {}).get(count) for count, name in names.items()}
    return {name: n for name, n in counts.items() if isinstance(n, int)}


def embedding_attributes(embeddings: Any) -> Attributes:
    """Return the attributes of an embedding client's answer."""
    first = embeddings[0] if isinstance(embeddings, list) and embeddings else None
    usage = usage_attributes(getattr(embeddings, "usage", None))
    usage.pop(OtelAttr.OUTPUT_TOKENS, None)
    return {OtelAttr.RESPONSE_MODEL: _text(getattr(first, "model", None)), **usage}


def metric_attributes(attributes: Mapping[str, Any]) -> Attributes:
    """Return the attributes of a span that are also used for metrics: those with few distinct values."""
    return {key: attributes[key] for key in _METRIC_KEYS if key in attributes}


def tool_definitions(tools: Any) -> str | None:
    """Return the definitions of tools as JSON, without secrets; `None` if there are none."""
    definitions = []
    for tool in as_list(tools):
        spec = getattr(tool, "to_json_schema_spec", None)
        if isinstance(tool, Mapping):
            definitions.append(without_secrets(tool))
        else:
            definitions.append(spec() if callable(spec) else {"type": type(tool).__name__, "name": tool_name(tool)})
    return json.dumps(definitions, default=str, ensure_ascii=False) if definitions else None


def _server(client: Any) -> tuple[str | None, int | None]:
    """Return the host and port of a client's service."""
    address = getattr(client, "service_url", None)
    url = str(address()) if callable(address) else None
    if not url or "://" not in url:
        return None, None
    try:
        parts = urlsplit(url)
        return parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None, None


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def without_none(attributes: Attributes) -> Attributes:
    """Return the attributes that have a value."""
    return {key: value for key, value in attributes.items() if value is not None}


_MODALITIES = ("image", "audio", "video")


def messages_json(messages: Iterable[Any], *, finish_reason: object = None) -> str:
    """Convert messages to a JSON list of `{"role", "parts"}`. The last one includes the finish reason."""
    listed: list[dict[str, Any]] = [
        {"role": str(message.role), "parts": [_part(content) for content in message.contents]} for message in messages
    ]
    if finish_reason and listed:
        listed[-1]["finish_reason"] = "tool_call" if finish_reason == "tool_calls" else str(finish_reason)
    return as_json(listed)


def instructions_json(instructions: object) -> str | None:
    """Convert instructions to a JSON list of text parts; return `None` if there are none."""
    texts = [instructions] if isinstance(instructions, str) else list(instructions or ())  # type: ignore[call-overload]
    parts = [{"type": "text", "content": str(text)} for text in texts if text]
    return as_json(parts) if parts else None


def arguments_json(arguments: object, secret: Iterable[str] = ()) -> str:
    """Convert the arguments of a tool, a mapping or a pydantic model, to JSON. Secret ones are masked."""
    masked = frozenset(secret)
    if not isinstance(arguments, Mapping):
        arguments = getattr(arguments, "__dict__", {"value": arguments})
    return as_json({key: MASK if key in masked else value for key, value in arguments.items()})


def result_text(result: object) -> str:
    """Return the texts of a tool's contents, one per line; of another result, its text with secrets masked."""
    contents = [result] if isinstance(result, Content) else result
    if isinstance(contents, list) and contents and all(isinstance(one, Content) for one in contents):
        return "\n".join(text for text in map(_content_text, contents) if text)
    return str(mask_secrets(result))


def _content_text(content: Content) -> str:
    text = next((text for text in (content.text, content.result) if isinstance(text, str)), None)
    return str(mask_secrets(text)) if text else as_json(content)


def as_json(value: object) -> str:
    """Convert a value to JSON. Secrets are masked, and objects without a JSON form become their text."""
    return write_plain(to_plain(value, mask=True))


def _part(content: Any) -> dict[str, Any]:
    """Convert a content to the form of the OpenTelemetry conventions."""
    match content.type:
        case "text":
            return {"type": "text", "content": content.text or ""}
        case "text_reasoning":
            return {"type": "reasoning", "content": content.text or ""}
        case "uri":
            return {"type": "uri", "uri": content.uri, **_media(content.media_type)}
        case "data":
            return {"type": "blob", "content": (content.uri or "").partition(",")[2], **_media(content.media_type)}
        case "function_call":
            return {"type": "tool_call", "id": content.call_id, "name": content.name, "arguments": content.arguments}
        case "function_result":
            return {"type": "tool_call_response", "id": content.call_id, "response": content.result}
    return {key: value for key, value in content.to_dict().items() if key != "additional_properties" or value}


def _media(media_type: str | None) -> dict[str, Any]:
    kind = (media_type or "").partition("/")[0].lower()
    modality = {"modality": kind} if kind in _MODALITIES else {}
    return {"mime_type": media_type, **modality} if media_type else {}
