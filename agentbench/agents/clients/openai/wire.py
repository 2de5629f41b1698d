"""Requests to a service, and readers of its answers, which come as objects of the SDK or as plain JSON.

Compatible servers leave fields out, send `null`, or add fields of their own. A reader here returns the field if it is
of the right kind, else nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple


class WireRequest(NamedTuple):
    """A request that is ready to be sent: a method of the SDK's part for the API, and its arguments."""

    method: str
    body: dict[str, Any]


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


def counts(source: Any, names: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return token counts.

    Args:
        source: The object or mapping that has them.
        names: Pairs of our name and theirs; `details.cached_tokens` is a field of the field `details`.
    """
    found = {}
    for ours, theirs in names:
        *path, last = theirs.split(".")
        holder = source
        for step in path:
            holder = field(holder, step)
        count = number(holder, last)
        if count is not None:
            found[ours] = count
    return found
