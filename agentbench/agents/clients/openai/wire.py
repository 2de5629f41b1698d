"""Requests to a service, and readers for its answers, which are SDK objects or JSON with missing fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from agentbench._clock import runtime_defaults
from agentbench.exceptions import ChatClientInvalidRequestException
from agentbench.messages.content.content import Content
from agentbench.messages.content.media import Annotation
from agentbench.messages.usage import UsageDetails
from agentbench.serialization.plain import to_plain, write_plain


class WireRequest(NamedTuple):
    """A request: the SDK method to call, and its arguments."""

    method: str
    body: dict[str, Any]


def nothing_to_send() -> ChatClientInvalidRequestException:
    """Return the error for a request without messages."""
    return ChatClientInvalidRequestException(
        "No messages to send. Pass at least one with text, an image, a file or a tool result."
    )


def field(source: Any, name: str) -> Any:
    """Return a field, or `None` if it is missing."""
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def text(source: Any, name: str) -> str | None:
    """Return a field if it is non-empty text."""
    value = field(source, name)
    return value if isinstance(value, str) else None


def number(source: Any, name: str) -> int | None:
    """Return a field if it is an integer."""
    value = field(source, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def items(source: Any, name: str) -> Sequence[Any]:
    """Return the entries of a field if it is a list."""
    value = field(source, name)
    return value if isinstance(value, (list, tuple)) else ()


def answer_text(source: Any, name: str) -> str:
    """Return a model's text, which may come in parts; raise `ValueError` for other types."""
    value = field(source, name)
    if isinstance(value, str) or value is None:
        return value or ""
    parts = [text(part, "text") for part in items(source, name)]
    if not isinstance(value, (list, tuple)) or None in parts:
        message = f"its {name} has type {type(value).__name__} instead of text"
        raise ValueError(message)
    return "".join(part or "" for part in parts)


def json_text(value: Any) -> str:
    """Return arguments as JSON text, the format that services should use."""
    return value if isinstance(value, str) else "" if value is None else write_plain(to_plain(value))


def plain(value: Any) -> Any:
    """Convert an SDK object to JSON values; return plain values unchanged."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True)
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def iso_time(seconds: Any) -> str | None:
    """Convert a POSIX time to ISO 8601 text in UTC; `None` for an invalid number."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # milliseconds, NaN
        return None


# Our name of a count -> its path in `usage` in Chat Completions and in Responses.
_COUNTS = {
    "input_token_count": ("prompt_tokens", "input_tokens"),
    "output_token_count": ("completion_tokens", "output_tokens"),
    "total_token_count": ("total_tokens",),
    "cache_read_input_token_count": ("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
    "reasoning_output_token_count": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
    ),
}


def usage_of(answer: Any) -> UsageDetails | None:
    """Return the token counts in the field `usage`, with the field names of either API."""
    usage, found = field(answer, "usage"), {}
    if usage is None:
        return None
    for ours, places in _COUNTS.items():
        for group, _, name in (place.rpartition(".") for place in places):
            count = number(field(usage, group) if group else usage, name)
            if count is not None:
                found[ours] = count
    return cast("UsageDetails | None", found or None)


def refusal_content(part: Any) -> Content | None:
    """Convert a refusal to text that is marked as one."""
    refusal = text(part, "refusal")
    return Content.from_text(refusal, additional_properties={"refusal": True}) if refusal else None


def call_piece(index: int, call_id: str = "", name: str = "", arguments: str = "", *, raw: Any) -> Content:
    """Return a piece of a streamed tool call; only the first piece has an id and a name."""
    properties = {"tool_call_index": index}
    return Content.from_function_call(
        call_id, name, arguments=arguments, additional_properties=properties, raw_representation=raw
    )


def citation(note: Any) -> Annotation:
    """Convert a citation to an annotation."""
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


def new_call_id() -> str:
    """Return an id for a call without one."""
    return runtime_defaults().ids.new_id("call")
