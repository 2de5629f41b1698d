"""Pure: the attributes of the spans and metrics of agents, models and tools; one of `None` is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agentbench._secrets import without_secrets
from agentbench.messages.options import as_list

Attributes = dict[str, Any]

# Options of a request that are attributes as they are.
_REQUEST = ("temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty")
_METRIC_KEYS = frozenset(
    {
        *("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"),
        *("gen_ai.tool.name", "server.address", "server.port", "error.type"),
    }
)


def agent_attributes(agent: Any, options: Mapping[str, Any], session: Any) -> Attributes:
    """Return the attributes that are known before an agent runs; the options are its defaults and those of the run."""
    conversation = (
        getattr(session, "service_session_id", None)
        or options.get("conversation_id")
        or getattr(session, "session_id", None)
    )
    provider = getattr(agent, "otel_agent_provider_name", None) or getattr(agent, "AGENT_PROVIDER_NAME", None)
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": str(provider or "agentbench"),
        "gen_ai.agent.id": _text(getattr(agent, "id", None)),
        "gen_ai.agent.name": _text(getattr(agent, "name", None)),
        "gen_ai.agent.description": _text(getattr(agent, "description", None)),
        "gen_ai.conversation.id": _text(conversation),
        **request_attributes(options),
        "gen_ai.tool.definitions": tool_definitions(options.get("tools")),
    }


def chat_attributes(client: Any, options: Any, *, operation: str = "chat") -> Attributes:
    """Return the attributes that are known before a model is called; the operation is `chat` or `embeddings`."""
    options = options if isinstance(options, Mapping) else {}
    address, port = _server(client)
    provider = getattr(client, "otel_provider_name", None) or getattr(client, "OTEL_PROVIDER_NAME", None)
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": str(provider or "unknown"),
        "server.address": address,
        "server.port": port,
        **(request_attributes(options) if operation == "chat" else {}),
        "gen_ai.request.model": model_name(client, options),
        "gen_ai.conversation.id": _text(options.get("conversation_id")),
    }


def model_name(client: Any, options: Any) -> str:
    """Return the model of a call; `unknown` where neither the options nor the client name one."""
    model = options.get("model") if isinstance(options, Mapping) else None
    return str(model or getattr(client, "model", None) or "unknown")


def request_attributes(options: Mapping[str, Any]) -> Attributes:
    """Return the options of a request that are attributes."""
    found: Attributes = {f"gen_ai.request.{option}": options.get(option) for option in _REQUEST}
    found["gen_ai.request.model"] = _text(options.get("model"))
    stop = options.get("stop")
    if stop:
        found["gen_ai.request.stop_sequences"] = (stop,) if isinstance(stop, str) else tuple(map(str, stop))
    found["gen_ai.request.choice.count"] = 1
    return found


def tool_attributes(tool: Any, call_id: str | None) -> Attributes:
    """Return the attributes that are known before a tool is called."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool_name(tool),
        "gen_ai.tool.call.id": call_id or "unknown",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": _text(getattr(tool, "description", None)),
    }


def tool_name(tool: Any) -> str:
    """Return the name of a tool."""
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)


def response_attributes(response: Any) -> Attributes:
    """Return the attributes of a model's answer."""
    finish = getattr(response, "finish_reason", None)
    return {
        "gen_ai.response.id": _text(getattr(response, "response_id", None)),
        "gen_ai.response.model": _text(getattr(response, "model", None)),
        "gen_ai.response.finish_reasons": json.dumps([str(finish)]) if finish else None,
        **usage_attributes(getattr(response, "usage_details", None)),
    }


def usage_attributes(usage: Mapping[str, Any] | None) -> Attributes:
    """Return the numbers of tokens read and written, as far as they are known."""
    counts = {direction: (usage or {}).get(f"{direction}_token_count") for direction in ("input", "output")}
    return {f"gen_ai.usage.{direction}_tokens": n for direction, n in counts.items() if isinstance(n, int)}


def embedding_attributes(embeddings: Any) -> Attributes:
    """Return the attributes of an embedding client's answer."""
    first = embeddings[0] if isinstance(embeddings, list) and embeddings else None
    usage = usage_attributes(getattr(embeddings, "usage", None))
    usage.pop("gen_ai.usage.output_tokens", None)
    return {"gen_ai.response.model": _text(getattr(first, "model", None)), **usage}


def metric_attributes(attributes: Mapping[str, Any]) -> Attributes:
    """Return the attributes of a span that a metric may have too: those with few values."""
    return {key: value for key, value in attributes.items() if key in _METRIC_KEYS}


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
    """Address and port of a client's service, without what is before the `@`: that may be a password."""
    address = getattr(client, "service_url", None)
    url = str(address()) if callable(address) else None
    if not url or "://" not in url:
        return url or None, None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None, None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), port


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def without_none(attributes: Attributes) -> Attributes:
    """Return the attributes that have a value."""
    return {key: value for key, value in attributes.items() if value is not None}
