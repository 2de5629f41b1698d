"""Pure: converts messages to displayed turns; a call and its result become one part."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentbench._secrets import mask_secrets, mask_text
from agentbench._text.phrases import count_text
from agentbench._text.redact import decision_text, line_preview, server_question
from agentbench.messages.content.content import EDITED_ARGUMENTS, Content
from agentbench.messages.message import Message
from agentbench.notebook.look.html import Table

_SIGNATURE_LIMIT: Final = 72
_OUTCOME_LIMIT: Final = 60
_DETAIL_LIMIT: Final = 4_000

_EXCEPTION_TYPE: Final = "_exception_type"
"""Key under which the loop stores the class of a tool's error; its text is `exception`."""
_UNKNOWN_TOOL: Final = "Error: Requested function "

_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Pictures that a page may display from their own bytes. SVG can contain scripts and is excluded."""
_PICTURE_LIMIT: Final = 2_000_000
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


@dataclass(frozen=True, slots=True)
class Part:
    """One content for display: a text, or one line with labelled, folded details.

    A call and its result are one part: `text` is the call; `sign` and `outcome` are empty without a result. `ask` is an
    approval request to a person, `answer` its response, `note` everything else. `picture` is the `data:` address of a
    picture that may be displayed.
    """

    kind: Literal["text", "thinking", "call", "ask", "answer", "note"]
    text: str
    sign: str = ""
    outcome: str = ""
    folded: tuple[tuple[str, str], ...] = ()
    failed: bool = False
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message for display: its role, its author or `""`, its contents in order, and its place among all."""

    role: str
    name: str
    parts: tuple[Part, ...]
    at: int = 0


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns of a conversation.

    A result belongs to its call's turn; other contents of a result message form a separate turn. A call that
    waits for approval appears as the approval request, and with a result as the call.
    """
    contents = [content for message in messages for content in message.contents]
    results = {content.call_id: content for content in contents if _is_result(content) and content.call_id}
    calls = {content.call_id for content in contents if _is_call(content)}
    waiting = {_asked_call(content) for content in contents if content.type == "function_approval_request"}
    waiting -= results.keys()
    edited = {_asked_call(content): content for content in contents if content.approved}

    def part_of(content: Content) -> Part | None:
        if content.type == "text":
            return Part("text", str(mask_secrets(content.text))) if content.text else None
        if content.type == "text_reasoning":
            return Part("thinking", content.text or "(hidden by the model)", "(thinking)")
        if _is_call(content):
            if content.call_id in waiting:
                return None
            return _call(content, results.get(content.call_id or ""), edited.get(content.call_id or ""))
        if _is_result(content):
            text = f"result of {content.call_id or 'a call'}: {line_preview(_result_text(content))}"
            return None if content.call_id in calls else _note(text, failed=bool(content.exception))
        if content.type in ("function_approval_request", "function_approval_response"):
            return None if _asked_call(content) in results else _approval(content)
        return _media(content) if content.type in ("data", "uri") else _other(content)

    turns = []
    for at, message in enumerate(messages):
        parts = tuple(filter(None, map(part_of, message.contents)))
        if parts or all(content.type == "text" for content in message.contents):
            turns.append(Turn(str(message.role), message.author_name or "", parts, at))
    return turns


def pending_requests(messages: Sequence[Message]) -> list[tuple[Content, str]]:
    """Return the approval requests without a response or a result, each with the author of its message."""
    pairs = [(content, message.author_name or "the agent") for message in messages for content in message.contents]
    settled = {content.id for content, _ in pairs if content.type == "function_approval_response"}
    results = {content.call_id for content, _ in pairs if _is_result(content)}
    return [
        (content, author)
        for content, author in pairs
        if content.type == "function_approval_request" and content.function_call
        if content.id not in settled and _asked_call(content) not in results
    ]


def _asked_call(question: Content) -> str:
    """Return the id of the call to approve; for an agent used as a tool it is an inner call."""
    return question.call_id or (question.function_call and question.function_call.call_id) or ""


def _is_call(content: Content) -> bool:
    return content.type == "function_call" or content.type.endswith("_tool_call")


def _is_result(content: Content) -> bool:
    return content.type == "function_result" or content.type.endswith("_tool_result")


def _approval(content: Content) -> Part:
    """Return an approval request, or the response to one."""
    edited = content.additional_properties.get(EDITED_ARGUMENTS)
    signature, arguments = _signature(content.function_call, edited) if content.function_call else ("a call", ())
    if content.type == "function_approval_request":
        return Part("ask", server_question(content) or f"May it call {signature}?", "?", folded=arguments)
    words = decision_text(content)
    return Part("answer", f"{words[0].upper()}{words[1:]}: {signature}", "✓" if content.approved else "✗")


def _call(call: Content, result: Content | None, approval: Content | None = None) -> Part:
    signature, arguments = _signature(call)
    if (edited := approval or result) is not None and EDITED_ARGUMENTS in edited.additional_properties:
        signature += f", {decision_text(edited, call)}"
    if result is None:
        return Part("call", signature, folded=arguments)
    text = _result_text(result)
    failed = bool(result.exception) or text.startswith("Error: ")
    # The error of a failed call, unless the text for the model contains it.
    error = mask_text(result.exception or "")
    if error in text or text.startswith(_UNKNOWN_TOOL):
        error = ""
    reason = ": ".join(filter(None, (str(result.additional_properties.get(_EXCEPTION_TYPE) or ""), error)))
    text = " ".join(filter(None, (text, reason)))
    rows = _table_rows(text)
    shape = (
        f"{count_text(len(rows) - 1, 'row')}, {count_text(len(rows[0]), 'column')}: {', '.join(rows[0])}"
        if rows
        else ""
    )
    detail = "\n".join(Table("", (), rows).lines()[1:]) if rows else text
    folded = (*arguments, ("error" if failed else "result", detail[:_DETAIL_LIMIT])) if text else arguments
    outcome = line_preview(shape or text, _OUTCOME_LIMIT) or "(empty)"
    return Part("call", signature, "✗" if failed else "→", outcome, folded, failed)


def _table_rows(text: str) -> list[tuple[str, ...]]:
    """Return head and rows of a DataFrame that was sent as JSON by columns; empty for other results."""
    try:
        data: Any = json.loads(text) if text.startswith('{"') else None
    except (ValueError, RecursionError):
        return []
    columns = list(data.values()) if isinstance(data, dict) else []
    places = [str(place) for place in range(len(columns[0]))] if columns and isinstance(columns[0], dict) else []
    if not places or any(not isinstance(column, dict) or list(column) != places for column in columns):
        return []
    return [tuple(data), *zip(*(map(str, column.values()) for column in columns), strict=True)]


def _signature(call: Content, edited: Any = None) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a call in one line and its full arguments with a label; `edited` replaces the arguments."""
    name = call.name or call.tool_name or call.type.removesuffix("_tool_call")
    commands = call.commands or call.inputs
    values = call.parse_arguments() if edited is None else edited
    arguments = list(map(str, commands)) if commands else mask_secrets(values)
    if isinstance(arguments, Mapping):
        short = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
        full = json.dumps(arguments, ensure_ascii=False, indent=2, default=str) if arguments else ""
    else:
        short = full = "" if arguments is None else line_preview(arguments, _DETAIL_LIMIT)
    folded = (("arguments", full[:_DETAIL_LIMIT]),) if full else ()
    return line_preview(f"{name}({short})", _SIGNATURE_LIMIT), folded


def _short(value: object) -> str:
    text = line_preview(value, 40)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text


def _result_text(result: Content) -> str:
    if result.result is not None and not result.items:
        return str(mask_secrets(result.result))
    output: Any = result.output
    items: Any = result.items or result.outputs or (output if isinstance(output, list) else [output])
    texts = [_item_text(item) for item in items if item is not None]
    return "\n".join(texts) or mask_text(result.exception or "")


def _item_text(item: Any) -> str:
    kind = getattr(item, "type", None)
    if kind == "text":
        return str(mask_secrets(item.text))
    return _media(item).text if kind in ("data", "uri") else str(mask_secrets(item))


def _media(content: Content) -> Part:
    uri, kind = content.uri or "", content.media_type
    if content.type == "uri":
        return _note(f"{kind}: {line_preview(uri)}" if kind else line_preview(uri))
    data = uri.partition(";base64,")[2]
    count = len(data) * 3 // 4
    size = f"{count / 1_000_000:,.1f} MB" if count >= 1_000_000 else f"{count / 1_000:,.0f} kB"
    # Built only from validated parts, so that it cannot load anything.
    is_picture = kind in _PICTURES and len(data) <= _PICTURE_LIMIT and _BASE64.fullmatch(data)
    text = f"{kind or 'data'}, {f'{count} bytes' if count < 1_000 else size}"
    return Part("note", text, picture=f"data:{kind};base64,{data}" if is_picture else None)


def _other(content: Content) -> Part:
    if content.type == "error":
        return _note(str(content), failed=True)
    if content.type == "usage":
        return _note("usage: " + ", ".join(f"{key} {value}" for key, value in (content.usage_details or {}).items()))
    if content.type == "hosted_file":
        return _note(f"file {line_preview(content.name or content.file_id or '')}")
    if content.type == "oauth_consent_request":
        return _note(f"Consent is required at {line_preview(content.consent_link or '')}")
    kind = content.type if content.user_input_request else content.type.replace("_", " ")
    return _note(f"Input is required: {kind}" if content.user_input_request else kind)


def _note(text: str, *, failed: bool = False) -> Part:
    return Part("note", text, "✗" if failed else "", failed=failed)
