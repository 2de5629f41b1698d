"""Convert messages to the JSON of Chat Completions."""

from __future__ import annotations

import logging
import mimetypes
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from agentbench.agents.clients.openai.wire import json_text
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench.openai")

Wire = dict[str, Any]

INSTRUCTING_ROLES = ("system", "developer")

# The supported audio formats, by media type.
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


def chat_messages(messages: Iterable[Message]) -> list[Wire]:
    """Convert messages to request entries: none, one or several per message."""
    sent: list[Wire] = []
    for message in messages:
        for entry in _entries(message):
            if sent and "tool_calls" in sent[-1] and "tool_calls" in entry and "content" not in entry:
                sent[-1]["tool_calls"] += entry["tool_calls"]  # services require results directly after their calls
            else:
                sent.append(entry)
    return sent


def _entries(message: Message) -> Iterator[Wire]:
    if message.role in INSTRUCTING_ROLES:
        texts = [content.text or "" for content in message.contents if content.type == "text"]
        if any(texts):
            yield {"role": message.role, "content": "\n".join(texts), **_name(message)}
        return
    # All texts and calls between two tool results form one entry.
    pending: list[Content] = []
    for content in message.contents:
        if content.type == "function_result":
            yield from _entry(message, pending)
            pending = []
            yield {"role": "tool", "tool_call_id": content.call_id or "", "content": result_text(content)}
        else:
            pending.append(content)
    yield from _entry(message, pending)


def _entry(message: Message, contents: Sequence[Content]) -> Iterator[Wire]:
    calls = [
        {
            "id": content.call_id or "",
            "type": "function",
            "function": {"name": content.name or "", "arguments": arguments_text(content)},
        }
        for content in contents
        if content.type == "function_call"
    ]
    parts = [part for content in contents if (part := _part(content)) is not None]
    if not parts and not calls:
        return
    # In a "tool" message, besides results: calls are from the model, other contents are for the model.
    role = message.role if message.role != "tool" else "assistant" if calls else "user"
    entry: Wire = {"role": role}
    if parts:
        only_text = all(part["type"] == "text" for part in parts)
        entry["content"] = "\n".join(part["text"] for part in parts) if only_text else parts
    if calls:
        entry["tool_calls"] = calls
    yield {**entry, **(_name(message) if message.role != "tool" else {})}


def _name(message: Message) -> Wire:
    name = re.sub(r"[^a-zA-Z0-9_]", "", message.author_name or "")[:64]
    return {"name": name} if name else {}


def arguments_text(content: Content) -> str:
    """Return the arguments of a call as JSON text; an empty object without arguments."""
    return json_text(content.arguments) or "{}"


def result_text(content: Content) -> str:
    """Return a tool result as text; contents other than text are described."""
    items, failure = content.items, f"Error: {content.exception}" if content.exception else ""
    if items is None:
        return str(content.result or "") or failure
    texts = [item.text if item.type == "text" else description_of(item) for item in items]
    if described := sorted({item.type for item in items if item.type != "text"}):
        logger.warning(
            "Chat Completions only supports text as a tool result; the model gets a description of "
            "the other parts of call %r: %s. The Responses API also supports images.",
            content.call_id,
            ", ".join(described),
        )
    return "\n".join(filter(None, texts)) or failure


def description_of(content: Content) -> str:
    """Describe a content of a tool result, in a line for the model, if the service does not support it."""
    facts = content.additional_properties
    named = [str(facts[name]) for name in ("title", "name", "description") if facts.get(name)]
    if content.type == "data":
        size = len((content.uri or "").partition(",")[2]) * 3 // 4
        named += [f"about {size:,} bytes", "not shown here"]
    elif content.type == "uri":
        named.insert(0, str(content.uri))
    return f"[{', '.join([content.media_type or content.type, *named])}]"


def _part(content: Content) -> Wire | None:
    """Convert a content to a part of an entry; `None` if it is not sent or is sent elsewhere."""
    if content.type == "text":
        return {"type": "text", "text": content.text or ""}
    if content.type == "hosted_file":
        return {"type": "file", "file": {"file_id": content.file_id}}
    if content.type not in ("data", "uri"):
        if content.type != "function_call":
            logger.debug("A content of type %r is not sent to Chat Completions.", content.type)
        return None
    group = media_group(content)
    if group == "image":
        detail = image_detail(content)
        return {"type": "image_url", "image_url": {"url": content.uri, **({"detail": detail} if detail else {})}}
    if group == "audio":
        return audio_part(content)
    if group == "video" or content.type == "uri":
        logger.warning(
            "A %s of type %r is not sent: Chat Completions only supports file data.", group, content.media_type
        )
        return None
    return {"type": "file", "file": file_fields(content)}


def media_group(content: Content) -> str:
    """Return the media group of a `data` or `uri` content: `image`, `audio`, `video`, or `file`."""
    media_type, uri = content.media_type, content.uri or ""
    if not media_type and not uri.startswith("data:"):
        media_type = mimetypes.guess_type(urlsplit(uri).path)[0]
    group = (media_type or "").partition("/")[0].lower()
    return group if group in ("image", "audio", "video") else "file"


def audio_part(content: Content) -> dict[str, Any] | None:
    """Convert audio to a part; `None` if its format is not supported, or it is only a URL."""
    kind = _AUDIO_FORMATS.get((content.media_type or "").partition(";")[0].strip().lower())
    if kind is None or content.type != "data":
        logger.debug("Audio of type %r is not sent: only wav and mp3 data are accepted.", content.media_type)
        return None
    return {"type": "input_audio", "input_audio": {"data": (content.uri or "").partition(",")[2], "format": kind}}


def file_fields(content: Content) -> dict[str, Any]:
    """Return a file's data, and its name from the additional properties or the content's `name`."""
    name = content.additional_properties.get("filename") or content.name
    return {"file_data": content.uri, **({"filename": name} if isinstance(name, str) else {})}


def image_detail(content: Content) -> str | None:
    """Return the image resolution for the model: `low`, `high`, `auto`; `None` if not set."""
    detail = content.additional_properties.get("detail")
    return detail if isinstance(detail, str) else None
