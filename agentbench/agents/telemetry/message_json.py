"""Pure: messages, arguments and results as the JSON that spans carry when contents are allowed in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentbench.settings import SecretString

_MODALITIES = ("image", "audio", "video")


def messages_json(messages: Iterable[Any], *, finish_reason: object = None) -> str:
    """Messages as a JSON list of `{"role", "parts"}`.

    Args:
        messages: The messages.
        finish_reason: Why the model stopped; put on the last message.
    """
    listed: list[dict[str, Any]] = [
        {"role": str(message.role), "parts": [_part(content) for content in message.contents]} for message in messages
    ]
    if finish_reason and listed:
        listed[-1]["finish_reason"] = "tool_call" if finish_reason == "tool_calls" else str(finish_reason)
    return as_json(listed)


def instructions_json(instructions: object) -> str | None:
    """Instructions as a JSON list of text parts; None if there are none."""
    texts = [instructions] if isinstance(instructions, str) else list(instructions or ())  # type: ignore[call-overload]
    parts = [{"type": "text", "content": str(text)} for text in texts if text]
    return as_json(parts) if parts else None


def arguments_json(arguments: object, secret: Iterable[str] = ()) -> str:
    """Arguments of a tool as JSON.

    Args:
        arguments: A mapping, a model of pydantic, or JSON text.
        secret: Names of arguments that are masked.
    """
    hidden = frozenset(secret)
    if isinstance(arguments, str) and not isinstance(arguments, SecretString):
        if not hidden:
            return arguments
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return repr(SecretString())
    if not isinstance(arguments, Mapping):
        fields = getattr(arguments, "__dict__", None)
        arguments = {} if arguments is None else fields if fields is not None else {"value": arguments}
    return as_json({key: SecretString() if key in hidden else value for key, value in arguments.items()})


def result_text(result: object) -> str:
    """What a tool gave: its text, else JSON."""
    if isinstance(result, (list, tuple)) and result and all(hasattr(part, "type") for part in result):
        return "\n".join(text for text in map(_result_text, result) if text)
    return _result_text(result)


def _result_text(result: object) -> str:
    if isinstance(result, SecretString):
        return repr(result)
    if isinstance(result, str):
        return result
    for name in ("text", "result"):
        found = getattr(result, name, None)
        if isinstance(found, str):
            return found
    return as_json(result)


def as_json(value: object) -> str:
    """Plain data as JSON; secrets within it are masked, what JSON cannot say becomes its text."""
    return json.dumps(_masked(value), default=_plain, ensure_ascii=False)


def _masked(value: Any) -> Any:
    if isinstance(value, SecretString):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): _masked(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    for name in ("to_dict", "model_dump"):
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            return _masked(dump())
    return str(value)


def _part(content: Any) -> dict[str, Any]:
    make = _PARTS.get(content.type)
    if make is not None:
        return make(content)
    return {key: value for key, value in content.to_dict().items() if key != "additional_properties" or value}


def _text_part(content: Any) -> dict[str, Any]:
    return {"type": "text", "content": content.text or ""}


def _reasoning_part(content: Any) -> dict[str, Any]:
    return {"type": "reasoning", "content": content.text or ""}


def _uri_part(content: Any) -> dict[str, Any]:
    return {"type": "uri", "uri": content.uri, **_media(content.media_type)}


def _blob_part(content: Any) -> dict[str, Any]:
    return {"type": "blob", "content": (content.uri or "").partition(",")[2], **_media(content.media_type)}


def _call_part(content: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": content.call_id, "name": content.name, "arguments": content.arguments}


def _result_part(content: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": content.call_id, "response": content.result}


def _media(media_type: str | None) -> dict[str, Any]:
    kind = (media_type or "").partition("/")[0].lower()
    modality = {"modality": kind} if kind in _MODALITIES else {}
    return {"mime_type": media_type, **modality} if media_type else {}


_PARTS = {
    "text": _text_part,
    "text_reasoning": _reasoning_part,
    "uri": _uri_part,
    "data": _blob_part,
    "function_call": _call_part,
    "function_result": _result_part,
}
