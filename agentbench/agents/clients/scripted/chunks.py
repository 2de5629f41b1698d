"""A whole reply as the pieces in which a model would stream it: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from agentbench.agents.clients.scripted.script import Chunk
from agentbench.messages.content.content import Content
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

__all__ = ["pieces_of", "updates_of"]

_WORD = re.compile(r"\S*\s+|\S+")


def pieces_of(text: str, chunk: Chunk) -> list[str]:
    """Cut a text: joined, the pieces are the text again. A word keeps the space behind it."""
    if chunk == "whole" or not text:
        return [text]
    return list(text) if chunk == "char" else _WORD.findall(text)


def updates_of(response: ChatResponse[Any], chunk: Chunk) -> list[ChatResponseUpdate]:
    """The updates that fold to a response; the last one brings why it ended and what it took."""
    updates = [
        ChatResponseUpdate(
            contents=contents,
            role=message.role,
            author_name=message.author_name,
            message_id=cast(Any, message.message_id),
            response_id=response.response_id,
            conversation_id=response.conversation_id,
            model=response.model,
            created_at=response.created_at,
        )
        for message in response.messages
        for contents in _cut(message.contents, chunk)
    ]
    if not updates:
        updates = [
            ChatResponseUpdate(
                response_id=response.response_id, conversation_id=response.conversation_id, model=response.model
            )
        ]
    last = updates[-1]
    last.finish_reason = response.finish_reason
    last.continuation_token = response.continuation_token
    last.additional_properties = dict(response.additional_properties) or None
    if response.usage_details is not None:
        last.contents = [*last.contents, Content.from_usage(response.usage_details)]
    return updates


def _cut(contents: list[Content], chunk: Chunk) -> Iterator[list[Content]]:
    if not contents:
        yield []
    for content in contents:
        if content.type == "text" and content.text and not content.annotations and not content.additional_properties:
            yield from ([Content.from_text(piece)] for piece in pieces_of(content.text, chunk))
        else:
            yield [content]
