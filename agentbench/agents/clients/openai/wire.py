"""Requests to a service, and readers of its answers, which come as objects of the SDK or as plain JSON.

Compatible servers leave fields out, send `null`, or add fields of their own. A reader here returns the field if it is
of the right kind, else nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple, cast

from agentbench._clock import runtime_defaults
from agentbench.exceptions import ChatClientInvalidRequestException
from agentbench.messages.content.media import Annotation
from agentbench.messages.usage import UsageDetails


class WireRequest(NamedTuple):
    """A request that is ready to be sent: a method of the SDK's part for the API, and its arguments."""

    method: str
    body: dict[str, Any]


def nothing_to_send() -> ChatClientInvalidRequestException:
    """Return the error for a request without messages."""
    return ChatClientInvalidRequestException(
        "There is no message to send. Pass at least one with text, an image, a file or a tool's result."
    )


def field(source: Any, name: str) -> Any:
    """Return a field of any kind; `None` if there is none."""
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def text(source: Any, name: str) -> str | None:
    """Return a field if it is text."""
    value = field(source, name)
    return value if isinstance(value, str) else None


def number(source: Any, name: str) -> int | None:
    """Return a field if it is a whole number."""
    value = field(source, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def items(source: Any, name: str) -> Sequence[Any]:
    """Return the entries of a field if it is a list."""
    value = field(source, name)
    return value if isinstance(value, (list, tuple)) else ()


def json_text(value: Any) -> str:
    """Return arguments as JSON text, the form in which services should send them."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def plain(value: Any) -> Any:
    """Return the JSON of an object of the SDK; plain values as they are."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True)
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def iso_time(seconds: Any) -> str | None:
    """Return a POSIX time as ISO 8601 text, UTC."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat()


def usage_of(answer: Any, names: Iterable[tuple[str, str]]) -> UsageDetails | None:
    """Return the token counts in the field `usage`, by pairs of our name and theirs, in which dots lead to fields."""
    found = {}
    for ours, theirs in names:
        *path, last = ("usage", *theirs.split("."))
        holder = answer
        for step in path:
            holder = field(holder, step)
        count = number(holder, last)
        if count is not None:
            found[ours] = count
    return cast("UsageDetails | None", found or None)


def citation(note: Any) -> Annotation:
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


def new_call_id() -> str:
    """Return an id for a call to which the service gave none."""
    return runtime_defaults().ids.new_id("call")
