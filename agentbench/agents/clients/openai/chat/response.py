"""Answers of Chat Completions as responses. Pure: what the service sent in, a response out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from agentbench._clock import runtime_defaults
from agentbench.agents.clients.openai.wire import counts, field, iso_time, items, json_text, plain, text
from agentbench.messages.content.content import Content
from agentbench.messages.content.media import Annotation
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.usage import UsageDetails

_COUNTS = (
    ("input_token_count", "prompt_tokens"),
    ("output_token_count", "completion_tokens"),
    ("total_token_count", "total_tokens"),
    ("cache_read_input_token_count", "prompt_tokens_details.cached_tokens"),
    ("reasoning_output_token_count", "completion_tokens_details.reasoning_tokens"),
)


def chat_response(completion: Any, *, response_format: Any = None) -> ChatResponse[Any]:
    """Return a completion as a response, with a message per choice.

    Args:
        completion: What the service sent.
        response_format: The requested form of the answer.
    """
    choices = items(completion, "choices")
    response_id = text(completion, "id")
    usage = usage_details(completion)
    return ChatResponse(
        messages=[_message(choice, response_id) for choice in choices],
        response_id=response_id,
        model=text(completion, "model"),
        created_at=iso_time(field(completion, "created")),
        finish_reason=cast("Any", next(filter(None, map(finish_reason, choices)), None)),
        usage_details=usage,
        response_format=response_format,
        additional_properties=_properties(completion, choices),
        raw_representation=completion,
    )


def usage_details(source: Any) -> UsageDetails | None:
    """The numbers of tokens in the field `usage`, as far as they are there."""
    return cast("UsageDetails | None", counts(field(source, "usage"), _COUNTS) or None)


def finish_reason(choice: Any) -> str | None:
    """Why the model stopped."""
    reason = text(choice, "finish_reason")
    return "tool_calls" if reason == "function_call" else reason


def reasoning_text(part: Any) -> str | None:
    """What the model thought; compatible servers have two names for it."""
    return text(part, "reasoning_content") or text(part, "reasoning")


def refusal_content(part: Any) -> Content | None:
    """A refusal, which is a text with a mark."""
    refusal = text(part, "refusal")
    return Content.from_text(refusal, additional_properties={"refusal": True}) if refusal else None


def new_call_id() -> str:
    """An id for a call to which the service gave none."""
    return runtime_defaults().ids.new_id("call")


def _message(choice: Any, response_id: str | None) -> Message:
    message = field(choice, "message")
    return Message("assistant", list(_contents(message)), message_id=response_id, raw_representation=choice)


def _contents(message: Any) -> Iterator[Content]:
    thought = reasoning_text(message)
    if thought:
        yield Content.from_text_reasoning(text=thought)
    words = text(message, "content")
    if words:
        yield Content.from_text(words, annotations=[_citation(note) for note in items(message, "annotations")] or None)
    refusal = refusal_content(message)
    if refusal is not None:
        yield refusal
    for call in items(message, "tool_calls"):
        yield _call(call, text(call, "id"))
    if (legacy := field(message, "function_call")) is not None:
        yield _call({"function": legacy}, None)


def _call(call: Any, call_id: str | None) -> Content:
    # A custom tool takes any text where a function takes JSON.
    function, custom = field(call, "function"), field(call, "custom")
    return Content.from_function_call(
        call_id or new_call_id(),
        text(function, "name") or text(custom, "name") or "",
        arguments=json_text(field(function, "arguments")) or text(custom, "input") or "",
        raw_representation=call,
    )


def _citation(note: Any) -> Annotation:
    cited = field(note, "url_citation")
    found: dict[str, Any] = {"type": "citation"}
    for name in ("title", "url"):
        value = text(cited, name)
        if value is not None:
            found[name] = value
    start, end = field(cited, "start_index"), field(cited, "end_index")
    if isinstance(start, int) and isinstance(end, int):
        found["annotated_regions"] = [{"type": "text_span", "start_index": start, "end_index": end}]
    return cast("Annotation", found)


def _properties(completion: Any, choices: Any) -> dict[str, Any]:
    found = properties(completion)
    log_probabilities = [probabilities for choice in choices if (probabilities := field(choice, "logprobs"))]
    if log_probabilities:
        found["logprobs"] = plain(log_probabilities[0])
    return found


def properties(source: Any) -> dict[str, Any]:
    """What belongs to a completion and has no field of its own."""
    fingerprint = text(source, "system_fingerprint")
    return {} if fingerprint is None else {"system_fingerprint": fingerprint}
