"""Events as JSON values: lossy, safe, equal from run to run when clock and ids are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from agentbench._signatures import type_name

if TYPE_CHECKING:  # events find this module when one of them is written
    from agentbench.workflows.events.events import WorkflowEvent

# What a log line should hold at most; deeper or longer values are cut, never refused.
_MAX_DEPTH = 8
_MAX_ITEMS = 1000
_MAX_TEXT = 20_000


def event_to_json(event: WorkflowEvent[Any]) -> dict[str, Any]:
    """Return every field of the event that is set, then its stamps."""
    out: dict[str, Any] = {"type": event.type, "origin": str(event.origin)}
    for name in ("executor_id", "iteration", "state", "details", "data"):
        value = getattr(event, name)
        if value is not None and not (name == "data" and value is event.details):
            out[name] = json_value(value)
    if event.type == "request_info":
        out["request_id"] = event.request_id
        out["source_executor_id"] = event.source_executor_id
        out["request_type"] = type_name(event.request_type)
        out["response_type"] = type_name(event.response_type)
    if event._stamps is not None:  # noqa: SLF001 - same unit: the stamps of an event
        out.update(event._stamps.to_dict())  # noqa: SLF001
    return out


def json_value(value: Any, depth: int = 0) -> Any:
    """Return `value` as a JSON value; an object without a JSON form becomes its type and text."""
    if isinstance(value, Enum):
        return json_value(value.value, depth)
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < float("inf")):
        return value
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else f"{value[:_MAX_TEXT]}… ({len(value)} characters)"
    if depth >= _MAX_DEPTH:
        return f"<{type(value).__name__}>"
    return _composite(value, depth + 1)


def _composite(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        items = list(value.items())[:_MAX_ITEMS]
        return {k if isinstance(k, str) else _text(k): json_value(v, depth) for k, v in items}
    if isinstance(value, (set, frozenset)):
        return sorted((json_value(v, depth) for v in list(value)[:_MAX_ITEMS]), key=repr)
    if isinstance(value, (list, tuple)):
        return [json_value(v, depth) for v in value[:_MAX_ITEMS]]
    if isinstance(value, type):
        return type_name(value)
    if dataclasses.is_dataclass(value):
        return {f.name: json_value(getattr(value, f.name, None), depth) for f in dataclasses.fields(value)}
    if isinstance(value, BaseException):
        return {"error_type": type(value).__name__, "message": _text(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            return json_value(dump(mode="json"), depth)
        except Exception:  # noqa: BLE001 - a model that cannot dump itself still has a text
            return _text(value)
    return _text(value)


def _text(value: Any) -> str:
    """Return the text of a value without memory addresses, which differ from run to run."""
    cls: Any = type(value)
    if cls.__repr__ is object.__repr__ and cls.__str__ is object.__str__:
        return f"<{cls.__qualname__}>"
    try:
        return str(value)[:_MAX_TEXT]
    except Exception:  # noqa: BLE001 - a broken __str__ of user code must not break the log
        return f"<{cls.__qualname__}>"
