"""Conversion of messages, arguments and results to JSON for spans that may contain contents, as pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentbench._secrets import MASK, mask_secrets
from agentbench.messages.content.content import Content
from agentbench.serialization.plain import to_plain, write_plain

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
