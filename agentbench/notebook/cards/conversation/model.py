"""Pure: what a conversation displays: messages become turns, a call and its result become one part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.notebook.text.redact import line_preview, mask_secrets

__all__ = [
    *("ApprovalPart", "CallPart", "NotePart", "Part", "TextPart", "Turn"),
    *("parts_of", "pending_requests", "turns_of"),
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
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text, or a model's reasoning."""

    text: str
    is_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call with its result. Signature and outcome are one line each; a call without a result has no outcome."""

    signature: str
    arguments: str
    outcome: str | None = None
    result: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalPart:
    """An approval request to a person (`approved` is `None`), or the response to one."""

    text: str
    arguments: str = ""
    approved: bool | None = None


@dataclass(frozen=True, slots=True)
class NotePart:
    """Anything else, in one line; `picture` is the `data:` address of one that may be displayed."""

    text: str
    failed: bool = False
    picture: str | None = None


Part = TextPart | CallPart | ApprovalPart | NotePart


@dataclass(frozen=True, slots=True)
class Turn:
    """One message for display: its role, its author or `""`, and its contents in order."""

    role: str
    name: str
    parts: tuple[Part, ...]


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns of a conversation.

    A result is a part of its call's turn; the rest of a message of results, if any, is a turn of its own. A call that
    waits for approval appears as the approval request; once it has a result, as the call.
    """
    contents = [content for message in messages for content in message.contents]
    results = {content.call_id: content for content in contents if _is_result(content) and content.call_id}
    calls = {content.call_id for content in contents if _is_call(content)}
    waiting = {content.id for content in contents if content.type == "function_approval_request"} - results.keys()

    def is_elsewhere(content: Content) -> bool:
        return content.call_id in calls if _is_result(content) else _is_call(content) and content.call_id in waiting

    turns = []
    for message in messages:
        parts = tuple(parts_of([each for each in message.contents if not is_elsewhere(each)], results))
        if parts or all(content.type == "text" for content in message.contents):
            turns.append(Turn(str(message.role), message.author_name or "", parts))
    return turns


def pending_requests(messages: Sequence[Message]) -> list[tuple[Content, str]]:
    """Return the approval requests without a response or a result, each with the author of its message."""
    contents = [content for message in messages for content in message.contents]
    settled = {content.id for content in contents if content.type == "function_approval_response"}
    settled |= {content.call_id for content in contents if _is_result(content)}
    return [
        (content, message.author_name or "the agent")
        for message in messages
        for content in message.contents
        if content.type == "function_approval_request" and content.function_call and content.id not in settled
    ]


def parts_of(contents: Iterable[Content], results: Mapping[str, Content] | None = None) -> Iterator[Part]:
    """Yield the contents of one message as parts; `results` are those of the conversation, by call id."""
    known = results or {}
    for content in contents:
        if content.type == "text":
            if content.text:
                yield TextPart(content.text)
        elif content.type == "text_reasoning":
            yield TextPart(content.text or "(hidden by the model)", is_reasoning=True)
        elif _is_call(content):
            yield _call(content, known.get(content.call_id or ""))
        elif _is_result(content):
            text = f"result of {content.call_id or 'a call'}: {line_preview(_result_text(content))}"
            yield NotePart(text, bool(content.exception))
        elif content.type in ("function_approval_request", "function_approval_response"):
            if (content.id or "") not in known:
                yield _approval(content)
        elif content.type in ("data", "uri"):
            yield _media(content)
        else:
            yield _note(content)


def _approval(content: Content) -> ApprovalPart:
    """Return an approval request, or the response to one."""
    signature, arguments = _signature(content.function_call) if content.function_call is not None else ("a call", "")
    if content.type == "function_approval_request":
        return ApprovalPart(f"May it call {signature}?", arguments)
    approved = bool(content.approved)
    return ApprovalPart(f"{'Approved' if approved else 'Rejected'}: {signature}", arguments, approved)


# ------------------------------------------------------------------------------------------------------ calls, results


def _is_call(content: Content) -> bool:
    return content.type == "function_call" or content.type.endswith("_tool_call")


def _is_result(content: Content) -> bool:
    return content.type == "function_result" or content.type.endswith("_tool_result")


def _call(call: Content, result: Content | None) -> CallPart:
    signature, arguments = _signature(call)
    if result is None:
        return CallPart(signature, arguments)
    text = _result_text(result)
    failed = bool(result.exception) or text.startswith("Error: ")
    # The error of a failed call, as far as the text for the model does not contain it.
    error = str(mask_secrets(result.exception or ""))
    if error in text or text.startswith(_UNKNOWN_TOOL):
        error = ""
    reason = ": ".join(filter(None, (str(result.additional_properties.get(_EXCEPTION_TYPE) or ""), error)))
    text = " ".join(filter(None, (text, reason)))
    return CallPart(signature, arguments, line_preview(text, _OUTCOME_LIMIT) or "(empty)", text[:_DETAIL_LIMIT], failed)


def _signature(call: Content) -> tuple[str, str]:
    """Return a call in one line, and its arguments in full."""
    name = call.name or call.tool_name or call.type.removesuffix("_tool_call")
    commands = call.commands or call.inputs
    arguments = list(map(str, commands)) if commands else mask_secrets(call.parse_arguments())
    if isinstance(arguments, Mapping):
        short = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
        full = json.dumps(arguments, ensure_ascii=False, indent=2, default=str) if arguments else ""
    else:
        short = full = "" if arguments is None else line_preview(arguments, _DETAIL_LIMIT)
    return line_preview(f"{name}({short})", _SIGNATURE_LIMIT), full[:_DETAIL_LIMIT]


def _short(value: object) -> str:
    text = line_preview(value, 40)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text


def _result_text(result: Content) -> str:
    if result.result is not None and not result.items:
        return str(mask_secrets(result.result))
    output: Any = result.output
    items: Any = result.items or result.outputs or (output if isinstance(output, list) else [output])
    texts = [_item_text(item) for item in items if item is not None]
    return "\n".join(texts) or str(result.exception or "")


def _item_text(item: Any) -> str:
    kind = getattr(item, "type", None)
    if kind == "text":
        return str(item.text)
    return _media(item).text if kind in ("data", "uri") else str(item)


# ---------------------------------------------------------------------------------------------------------- other kinds


def _media(content: Content) -> NotePart:
    uri = content.uri or ""
    kind = content.media_type
    if content.type == "uri":
        return NotePart(f"{kind}: {line_preview(uri)}" if kind else line_preview(uri))
    data = uri.partition(";base64,")[2]
    count = len(data) * 3 // 4
    size = f"{count / 1_000_000:,.1f} MB" if count >= 1_000_000 else f"{count / 1_000:,.0f} kB"
    # Put together of what was checked, so that it can load nothing from elsewhere.
    is_picture = kind in _PICTURES and len(data) <= _PICTURE_LIMIT and _BASE64.fullmatch(data)
    text = f"{kind or 'data'}, {f'{count} bytes' if count < 1_000 else size}"
    return NotePart(text, picture=f"data:{kind};base64,{data}" if is_picture else None)


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
