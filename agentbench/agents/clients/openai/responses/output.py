"""Answers of the Responses API as responses. Pure: what the service sent in, a response out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from agentbench.agents.clients.openai.chat.response import new_call_id, refusal_content
from agentbench.agents.clients.openai.wire import counts, field, iso_time, items, json_text, plain, text
from agentbench.messages.content.content import Content
from agentbench.messages.content.media import Annotation
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ContinuationToken
from agentbench.messages.usage import UsageDetails

logger = logging.getLogger("agentbench.openai")

_COUNTS = (
    ("input_token_count", "input_tokens"),
    ("output_token_count", "output_tokens"),
    ("total_token_count", "total_tokens"),
    ("cache_read_input_token_count", "input_tokens_details.cached_tokens"),
    ("reasoning_output_token_count", "output_tokens_details.reasoning_tokens"),
)
_STOPPED_BY = {"max_output_tokens": "length", "content_filter": "content_filter"}
_UNFINISHED = ("queued", "in_progress")


def response_of(answer: Any, *, stored: bool = True, response_format: Any = None) -> ChatResponse[Any]:
    """Return an answer as a response with one message.

    Args:
        answer: What the service sent.
        stored: Whether the service stores it, so that a conversation can continue it.
        response_format: The requested form of the answer.
    """
    contents = [content for item in items(answer, "output") for content in output_contents(item)]
    response_id = text(answer, "id")
    message = Message("assistant", contents, message_id=response_id, raw_representation=answer)
    return ChatResponse(
        messages=[message] if contents else [],
        response_id=response_id,
        conversation_id=conversation_id(answer, stored=stored),
        model=text(answer, "model"),
        created_at=iso_time(field(answer, "created_at")),
        finish_reason=cast("Any", finish_reason(answer, contents)),
        usage_details=usage_details(answer),
        response_format=response_format,
        continuation_token=continuation_token(answer),
        raw_representation=answer,
    )


def conversation_id(answer: Any, *, stored: bool) -> str | None:
    """Return what the next request continues: the conversation that the service stores, else this answer."""
    return text(field(answer, "conversation"), "id") or (text(answer, "id") if stored else None)


def usage_details(answer: Any) -> UsageDetails | None:
    """Return the numbers of tokens, as far as they are there."""
    return cast("UsageDetails | None", counts(field(answer, "usage"), _COUNTS) or None)


def finish_reason(answer: Any, contents: list[Content]) -> str | None:
    """Return why the model stopped; `None` while it has not."""
    status = text(answer, "status")
    if status == "incomplete":
        return _STOPPED_BY.get(text(field(answer, "incomplete_details"), "reason") or "", "stop")
    if status is not None and status != "completed":
        return None
    return "tool_calls" if any(content.type == "function_call" for content in contents) else "stop"


def continuation_token(answer: Any) -> ContinuationToken | None:
    """Return the token for an answer that is still being made in the background."""
    if text(answer, "status") not in _UNFINISHED:
        return None
    return cast("ContinuationToken", {"response_id": text(answer, "id")})


def failure_of(answer: Any) -> Any:
    """Return the failure that the service reports, if it does."""
    return field(answer, "error") or ({} if text(answer, "status") == "failed" else None)


def output_contents(item: Any) -> Iterator[Content]:
    """Yield the contents of an item of the output."""
    kind = text(item, "type")
    read = _READERS.get(kind or "")
    if read is None:
        logger.debug("An output item of type %r is only in raw_representation.", kind)
        return
    yield from read(item)


def _message(item: Any) -> Iterator[Content]:
    for part in items(item, "content"):
        words = text(part, "text")
        refusal = refusal_content(part)
        if words:
            notes = [annotation(note) for note in items(part, "annotations")]
            yield Content.from_text(words, annotations=notes or None, raw_representation=part)
        elif refusal is not None:
            yield refusal


def annotation(note: Any) -> Annotation:
    """Return a source that a text cites."""
    found: dict[str, Any] = {"type": "citation"}
    for ours, theirs in (("title", "title"), ("title", "filename"), ("url", "url"), ("file_id", "file_id")):
        value = text(note, theirs)
        if value is not None:
            found[ours] = value
    start, end = field(note, "start_index"), field(note, "end_index")
    if isinstance(start, int) and isinstance(end, int):
        found["annotated_regions"] = [{"type": "text_span", "start_index": start, "end_index": end}]
    container = text(note, "container_id")
    if container is not None:
        found["additional_properties"] = {"container_id": container}
    return cast("Annotation", found)


def _reasoning(item: Any) -> Iterator[Content]:
    parts = items(item, "summary") or items(item, "content")
    thought = "\n".join(line for part in parts if (line := text(part, "text")))
    hidden = text(item, "encrypted_content")
    if thought or hidden:
        yield Content.from_text_reasoning(
            id=text(item, "id"), text=thought or None, protected_data=hidden, raw_representation=item
        )


def _function_call(item: Any) -> Iterator[Content]:
    yield Content.from_function_call(
        text(item, "call_id") or new_call_id(),
        text(item, "name") or "",
        arguments=json_text(field(item, "arguments")) or text(item, "input") or "",
        raw_representation=item,
    )


def _code_interpreter(item: Any) -> Iterator[Content]:
    call_id = text(item, "id")
    code = text(item, "code")
    yield Content.from_code_interpreter_tool_call(
        call_id=call_id, inputs=[Content.from_text(code)] if code else [], raw_representation=item
    )
    outputs = [
        Content.from_text(logs) if (logs := text(output, "logs")) is not None else _image(text(output, "url") or "")
        for output in items(item, "outputs")
    ]
    yield Content.from_code_interpreter_tool_result(call_id=call_id, outputs=outputs, raw_representation=item)


def _image(url: str) -> Content:
    return Content.from_uri(url, media_type=None if url.startswith("data:") else "image/png")


def _image_generation(item: Any) -> Iterator[Content]:
    image_id = text(item, "id")
    yield Content.from_image_generation_tool_call(image_id=image_id, raw_representation=item)
    drawn = text(item, "result")
    if drawn:
        made = Content.from_uri(f"data:image/{text(item, 'output_format') or 'png'};base64,{drawn}")
        yield Content.from_image_generation_tool_result(image_id=image_id, outputs=made, raw_representation=item)


def _mcp_call(item: Any) -> Iterator[Content]:
    call_id = text(item, "id") or ""
    yield Content.from_mcp_server_tool_call(
        call_id,
        text(item, "name") or "",
        server_name=text(item, "server_label"),
        arguments=text(item, "arguments"),
        raw_representation=item,
    )
    output, error = field(item, "output"), field(item, "error")
    if output is not None or error is not None:
        result = output if output is not None else error if isinstance(error, str) else json_text(plain(error))
        yield Content.from_mcp_server_tool_result(
            call_id, output=[Content.from_text(str(result))], raw_representation=item
        )


def _mcp_approval_request(item: Any) -> Iterator[Content]:
    request_id = text(item, "id") or ""
    call = Content.from_function_call(
        request_id,
        text(item, "name") or "",
        arguments=text(item, "arguments"),
        additional_properties={"server_label": text(item, "server_label")},
        raw_representation=item,
    )
    yield Content.from_function_approval_request(request_id, call, raw_representation=item)


def _search(item: Any) -> Iterator[Content]:
    call_id, status = text(item, "id") or "", text(item, "status")
    name = (text(item, "type") or "").removesuffix("_call")
    arguments = plain(field(item, "action") or {"queries": items(item, "queries")})
    yield Content.from_search_tool_call(
        call_id,
        tool_name=name,
        arguments=arguments if isinstance(arguments, Mapping) else None,
        status=status,
        raw_representation=item,
    )
    found = plain(items(item, "results")) or plain(items(field(item, "action"), "sources"))
    if found:
        yield Content.from_search_tool_result(
            call_id, tool_name=name, result=found, status=status, raw_representation=item
        )


_READERS: dict[str, Callable[[Any], Iterator[Content]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _function_call,
    "code_interpreter_call": _code_interpreter,
    "image_generation_call": _image_generation,
    "mcp_call": _mcp_call,
    "mcp_approval_request": _mcp_approval_request,
    "web_search_call": _search,
    "file_search_call": _search,
}
