"""Join the pieces of streamed content that belong together."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from agentbench.exceptions import AdditionItemMismatch, ContentError
from agentbench.messages.content.fields import ContentRecord
from agentbench.messages.usage import add_usage_details

C = TypeVar("C", bound=ContentRecord)

_JOINABLE = ("text", "text_reasoning", "function_call", "usage")
"""The types of content that can be joined."""


def mend_text(text: str) -> str:
    """Return text that UTF-8 can encode: halves of a surrogate pair are joined, and a lone half is replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def mend_content(content: C) -> C:
    """Return the content, or a copy, with text and arguments that UTF-8 can encode."""
    name = "arguments" if content.type == "function_call" else "text"
    text = getattr(content, name)
    if not isinstance(text, str) or (mended := mend_text(text)) is text:
        return content
    copied = copy.copy(content)
    setattr(copied, name, mended)
    return copied


def mend_messages(messages: list[Any]) -> list[Any]:
    """Return messages with text that UTF-8 can encode; a message that changes is copied."""
    for at, message in enumerate(messages):
        for content in message.contents:
            if mend_content(content) is not content:
                copied = message.__copy__()
                copied.contents = list(map(mend_content, message.contents))
                return [*messages[:at], copied, *mend_messages(messages[at + 1 :])]
    return messages


def add_contents(left: C, right: C) -> C:
    """Join two contents of the same type: text, reasoning, calls or usage."""
    kind = left.type
    if kind != right.type:
        message = f"Content of type {kind!r} and content of type {right.type!r} cannot be added."
        raise AdditionItemMismatch(message)
    if kind not in _JOINABLE:
        message = f"Contents of type {kind!r} cannot be added. These types can: {', '.join(_JOINABLE)}."
        raise ContentError(message)
    if kind == "text":
        return join_texts([left, right])
    if kind == "text_reasoning":
        if left.id and right.id and left.id != right.id:
            message = f"Reasoning {left.id!r} and reasoning {right.id!r} have different ids and cannot be joined."
            raise AdditionItemMismatch(message)
        return join_reasoning([left, right])
    if kind == "usage":
        both = join_common([left, right])
        both.usage_details = add_usage_details(left.usage_details, right.usage_details)
        return both
    if right.call_id and right.call_id != left.call_id:
        message = f"Call {left.call_id!r} and call {right.call_id!r} have different ids and cannot be joined."
        raise AdditionItemMismatch(message)
    return join_call([left, right], _join_arguments(left.arguments, right.arguments))


def _join_arguments(left: str | Mapping[str, Any] | None, right: str | Mapping[str, Any] | None) -> Any:
    if not left or not right:
        return left or right or (right if left is None else left)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, str) or isinstance(right, str):
        message = "Arguments that are text and arguments that are a mapping cannot be joined."
        raise AdditionItemMismatch(message)
    return {**left, **right}


def join_common(pieces: Sequence[C]) -> C:
    """Return a new content of the pieces' type with the common fields: annotations, properties, raw object."""
    annotations = [piece.annotations for piece in pieces if piece.annotations is not None]
    properties: dict[str, Any] = {}
    for more in filter(None, map(attrgetter("additional_properties"), reversed(pieces))):
        properties.update(more)  # values of the first piece win
    raw = [piece.raw_representation for piece in pieces if piece.raw_representation is not None]
    flat = [item for each in raw for item in (each if isinstance(each, list) else [each])]
    return type(pieces[0])(
        pieces[0].type,
        annotations=[annotation for some in annotations for annotation in some] if annotations else None,
        additional_properties=properties,
        raw_representation=flat if len(raw) > 1 else (raw or [None])[0],
    )


def join_call(pieces: Sequence[C], arguments: Any) -> C:
    """Join the pieces of one call and set its arguments."""
    call = join_common(pieces)
    call.arguments = arguments
    for name in ("call_id", "name", "exception", "user_input_request", "id"):
        values = [getattr(piece, name) for piece in pieces]
        setattr(call, name, next(filter(None, values), values[0]))
    return call


def join_texts(pieces: Sequence[C]) -> C:
    """Join several texts without a separator."""
    text = join_common(pieces)
    text.text = "".join([piece.text or "" for piece in pieces])
    return text


def join_reasoning(pieces: Sequence[C]) -> C:
    """Join several pieces of one reasoning; the last protected data win."""
    thought = join_common(pieces)
    thought.id = next((piece.id for piece in pieces if piece.id), None)
    texts = [piece.text for piece in pieces if piece.text is not None]
    thought.text = "".join(texts) if texts else None
    thought.protected_data = next((p.protected_data for p in reversed(pieces) if p.protected_data is not None), None)
    return thought
