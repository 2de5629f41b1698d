"""Messages as the Responses API takes them: a list of items. Pure: messages in, JSON out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentbench.agents.clients.openai.chat.messages import INSTRUCTING_ROLES, arguments_text, result_text
from agentbench.agents.clients.openai.media import audio_part, file_fields, image_detail, media_group
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench.openai")

Wire = dict[str, Any]


def response_input(messages: Iterable[Message], *, continued: bool = False) -> list[Wire]:
    """Return the messages as they are sent; a conversation that is continued has its approval requests already."""
    return [item for message in messages for item in _items(message, continued=continued)]


def _items(message: Message, *, continued: bool) -> Iterator[Wire]:
    pending: list[Content] = []
    for content in message.contents:
        item = _item(content, continued=continued)
        if item is None:
            pending.append(content)
        else:
            yield from _message_item(message, pending)
            pending = []
            yield item
    yield from _message_item(message, pending)


def _item(content: Content, *, continued: bool) -> Wire | None:
    """A content that is an item of its own; `None` for one that is part of a message."""
    if content.type == "function_call":
        call = {"call_id": content.call_id or "", "name": content.name or "", "arguments": arguments_text(content)}
        return {"type": "function_call", **call}
    if content.type == "function_result":
        return {"type": "function_call_output", "call_id": content.call_id or "", "output": _output(content)}
    if content.type == "text_reasoning" and content.protected_data:
        summary = [{"type": "summary_text", "text": content.text}] if content.text else []
        item: Wire = {"type": "reasoning", "summary": summary, "encrypted_content": content.protected_data}
        return {**item, "id": content.id} if content.id else item
    return _approval(content, continued=continued)


def _approval(content: Content, *, continued: bool) -> Wire | None:
    """Approvals of tools that the service itself calls; those of our own tools are settled before."""
    call = content.function_call
    label = None if call is None else call.additional_properties.get("server_label")
    if call is None or label is None:
        return None
    if content.type == "function_approval_response":
        return {"type": "mcp_approval_response", "approval_request_id": content.id, "approve": bool(content.approved)}
    if content.type == "function_approval_request" and not continued:
        fields = {"id": content.id, "name": call.name, "arguments": arguments_text(call), "server_label": label}
        return {"type": "mcp_approval_request", **fields}
    return None


def _output(content: Content) -> str | list[Wire]:
    """The result of a tool: text, or parts where there is more than text."""
    if all(item.type == "text" for item in content.items or ()):
        return result_text(content)
    return [part for item in content.items or () if (part := _part(item)) is not None]


def _message_item(message: Message, contents: Sequence[Content]) -> Iterator[Wire]:
    role = message.role if message.role in ("assistant", *INSTRUCTING_ROLES) else "user"
    parts = [part for content in contents if (part := _part(content)) is not None]
    if not parts:
        return
    if all("text" in part for part in parts):
        joined = "\n".join(part["text"] for part in parts)
        if joined or role not in INSTRUCTING_ROLES:
            yield {"role": role, "content": joined}
        return
    if role == "assistant":
        # A model's own message can only hold text; its images are sent as the user's.
        images = [part for part in parts if "text" not in part]
        yield from _message_item(message, [content for content in contents if content.type == "text"])
        yield {"role": "user", "content": images}
        return
    yield {"role": role, "content": parts}


def _part(content: Content) -> Wire | None:
    if content.type == "text":
        return {"type": "input_text", "text": content.text or ""}
    if content.type == "hosted_file":
        is_image = (content.media_type or "").startswith("image/")
        return {"type": "input_image" if is_image else "input_file", "file_id": content.file_id}
    if content.type not in ("data", "uri"):
        logger.debug("A content of type %r is not sent to the Responses API.", content.type)
        return None
    group = media_group(content)
    if group == "image":
        return {"type": "input_image", "image_url": content.uri, "detail": image_detail(content) or "auto"}
    if group == "audio":
        return audio_part(content)
    if group == "video":
        logger.warning("A video of type %r is not sent: the Responses API takes none.", content.media_type)
        return None
    if content.type == "uri":
        return {"type": "input_file", "file_url": content.uri}
    return {"type": "input_file", **file_fields(content)}
