"""Pure: what a conversation displays: messages become turns, a call and its result become one part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentbench.notebook.text.redact import line_preview, mask_secrets

if TYPE_CHECKING:
    from agentbench.messages.content.content import Content
    from agentbench.messages.message import Message

__all__ = [
    "ApprovalPart",
    "MediaPart",
    "NotePart",
    "Part",
    "ReasoningPart",
    "TextPart",
    "ToolCallPart",
    "Turn",
    "parts_of",
    "turns_of",
]

_SIGNATURE_LIMIT: Final = 72
_OUTCOME_LIMIT: Final = 60
_DETAIL_LIMIT: Final = 4_000

#: Where the loop notes the class of the error that a tool raised; its text is `exception`.
_EXCEPTION_TYPE: Final = "_exception_type"
_UNKNOWN_TOOL: Final = "Error: Requested function "

#: Pictures that a page may display from their own bytes. SVG is a document, and is not among them.
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PICTURE_LIMIT: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """A model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A tool call with its result.

    Attributes:
        signature: The call in one line, `add(a=2, b=3)`.
        arguments: The arguments in full, as JSON.
        outcome: The result in one line; `None` while there is none.
        result: The result in full.
        failed: Whether the tool failed or was rejected.
    """

    signature: str
    arguments: str
    outcome: str | None = None
    result: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalPart:
    """An approval request to a person, or the response to one.

    Attributes:
        text: The question or the answer, in one line.
        arguments: The arguments of the call it is about, as JSON; may be empty.
        answer: `None` for a request, else whether it was approved.
    """

    text: str
    arguments: str = ""
    answer: bool | None = None


@dataclass(frozen=True, slots=True)
class MediaPart:
    """A picture, a sound, a file.

    Attributes:
        label: Its kind and size, or its address.
        uri: A `data:` address of a picture that may be displayed, else `None`. Nothing is ever loaded from elsewhere.
    """

    label: str
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class NotePart:
    """Anything else, in one line."""

    text: str
    failed: bool = False


Part = TextPart | ReasoningPart | ToolCallPart | ApprovalPart | MediaPart | NotePart


@dataclass(frozen=True, slots=True)
class Turn:
    """One message for display.

    Attributes:
        role: `user`, `assistant`, `system`, `tool` or any other.
        name: Name of the author; empty if there is none.
        parts: Texts, calls and other contents, in order.
    """

    role: str
    name: str
    parts: tuple[Part, ...]


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns of a conversation.

    A result is a part of its call's turn; the rest of a message of results, if any, is a turn of its own. A call that
    waits for approval appears as the approval request; once it has a result, as the call.
    """
    results = _results_by_call(messages)
    calls = {content.call_id for message in messages for content in message.contents if _is_call(content)}
    requested = {
        content.id
        for message in messages
        for content in message.contents
        if content.type == "function_approval_request"
    }
    waiting = requested - results.keys()
    turns = []
    for message in messages:
        displayed = [
            content
            for content in message.contents
            if not (_is_result(content) and content.call_id in calls)
            and not (_is_call(content) and content.call_id in waiting)
        ]
        parts = tuple(parts_of(displayed, results))
        if parts or all(content.type == "text" for content in message.contents):
            turns.append(Turn(str(message.role), message.author_name or "", parts))
    return turns


def parts_of(contents: Iterable[Content], results: Mapping[str, Content] | None = None) -> Iterator[Part]:
    """Return the contents of one message as parts.

    Args:
        contents: The contents.
        results: The results of calls in this conversation, by call id.
    """
    known = results or {}
    for content in contents:
        if content.type == "text":
            if content.text:
                yield TextPart(content.text)
        elif content.type == "text_reasoning":
            yield ReasoningPart(content.text or "(hidden by the model)")
        elif _is_call(content):
            yield _tool_call(content, known.get(content.call_id or ""))
        elif _is_result(content):
            yield _orphan(content)
        elif content.type in ("function_approval_request", "function_approval_response"):
            if (content.id or "") not in known:
                yield _approval(content)
        elif content.type in ("data", "uri"):
            yield _media(content)
        else:
            yield _note(content)


# ------------------------------------------------------------------------------------------------------ calls, results


def _is_call(content: Content) -> bool:
    return content.type == "function_call" or content.type.endswith("_tool_call")


def _is_result(content: Content) -> bool:
    return content.type == "function_result" or content.type.endswith("_tool_result")


def _results_by_call(messages: Sequence[Message]) -> dict[str, Content]:
    return {
        content.call_id: content
        for message in messages
        for content in message.contents
        if _is_result(content) and content.call_id
    }


def _tool_call(call: Content, result: Content | None) -> ToolCallPart:
    signature, arguments = _signature(call)
    if result is None:
        return ToolCallPart(signature, arguments)
    text = _result_text(result)
    failed = bool(result.exception) or text.startswith("Error: ")
    text = " ".join(filter(None, (text, _reason(result, text))))
    return ToolCallPart(
        signature, arguments, line_preview(text, _OUTCOME_LIMIT) or "(empty)", text[:_DETAIL_LIMIT], failed
    )


def _reason(result: Content, text: str) -> str:
    """Return the error of a failed call, as far as the text for the model does not contain it."""
    kind = result.additional_properties.get(_EXCEPTION_TYPE)
    error = str(mask_secrets(result.exception or ""))
    if error in text or text.startswith(_UNKNOWN_TOOL):
        error = ""
    return ": ".join(filter(None, (str(kind or ""), error)))


def _signature(call: Content) -> tuple[str, str]:
    """Return a call in one line, and its arguments in full."""
    name = call.name or call.tool_name or call.type.removesuffix("_tool_call")
    arguments = _arguments(call)
    if isinstance(arguments, Mapping):
        short = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
        full = json.dumps(arguments, ensure_ascii=False, indent=2, default=str) if arguments else ""
    else:
        short = full = "" if arguments is None else line_preview(arguments, _DETAIL_LIMIT)
    return line_preview(f"{name}({short})", _SIGNATURE_LIMIT), full[:_DETAIL_LIMIT]


def _short(value: object) -> str:
    text = line_preview(value, 40)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text


def _arguments(call: Content) -> Any:
    if call.commands or call.inputs:
        return [str(item) for item in call.commands or call.inputs or ()]
    return mask_secrets(call.parse_arguments())


def _result_text(result: Content) -> str:
    if result.result is not None and not result.items:
        return str(mask_secrets(result.result))
    texts = [_content_text(item) for item in result.items or result.outputs or _as_list(result.output)]
    return "\n".join(texts) or str(result.exception or "")


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _content_text(item: Any) -> str:
    kind = getattr(item, "type", None)
    if kind == "text":
        return str(item.text)
    if kind in ("data", "uri"):
        return _media(item).label
    return str(item)


def _orphan(result: Content) -> NotePart:
    failed = bool(result.exception)
    return NotePart(f"result of {result.call_id or 'a call'}: {line_preview(_result_text(result))}", failed)


def _approval(content: Content) -> ApprovalPart:
    call = content.function_call
    signature, arguments = _signature(call) if call is not None else ("a call", "")
    if content.type == "function_approval_request":
        return ApprovalPart(f"May it call {signature}?", arguments)
    granted = bool(content.approved)
    return ApprovalPart(f"{'Approved' if granted else 'Rejected'}: {signature}", arguments, granted)


# ---------------------------------------------------------------------------------------------------------- other kinds


def _media(content: Content) -> MediaPart:
    uri = content.uri or ""
    kind = content.media_type or "data"
    if content.type == "uri":
        return MediaPart(f"{kind}: {line_preview(uri)}" if content.media_type else line_preview(uri))
    data = uri.partition(";base64,")[2]
    label = f"{kind}, {_size(len(data) * 3 // 4)}"
    return MediaPart(label, uri if kind in _PICTURES and data.isascii() and len(data) <= _PICTURE_LIMIT else None)


def _size(count: int) -> str:
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:,.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def _note(content: Content) -> NotePart:
    if content.type == "error":
        return NotePart(str(content), failed=True)
    if content.type == "usage":
        usage: Mapping[str, Any] = content.usage_details or {}
        return NotePart("usage: " + ", ".join(f"{key} {value}" for key, value in usage.items()))
    if content.type == "hosted_file":
        return NotePart(f"file {line_preview(content.name or content.file_id or '')}")
    if content.type == "oauth_consent_request":
        return NotePart(f"Consent is required at {line_preview(content.consent_link or '')}")
    if content.user_input_request:
        return NotePart(f"Input is required: {content.type}")
    return NotePart(content.type.replace("_", " "))
