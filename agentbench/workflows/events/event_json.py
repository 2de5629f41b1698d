"""Events as JSON values: lossy and safe; equal from run to run if the clock and the ids are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench._signatures import type_name
from agentbench.serialization.plain import OF_LOGS, to_plain

if TYPE_CHECKING:  # events import this module when one is serialized
    from agentbench.workflows.events.events import WorkflowEvent


def event_to_json(event: WorkflowEvent[Any]) -> dict[str, Any]:
    """Return every field of the event that is set, followed by its stamps."""
    out: dict[str, Any] = {"type": event.type, "origin": str(event.origin)}
    for name in ("executor_id", "iteration", "state", "details", "data"):
        value = getattr(event, name)
        if value is not None and not (name == "data" and value is event.details):
            out[name] = to_plain(value, mask=True, limits=OF_LOGS)
    if event.type == "request_info":
        out["request_id"] = event.request_id
        out["source_executor_id"] = event.source_executor_id
        out["request_type"] = type_name(event.request_type)
        out["response_type"] = type_name(event.response_type)
    if event._stamps is not None:  # noqa: SLF001 - same unit: the stamps of an event
        out.update(event._stamps.to_dict())  # noqa: SLF001
    return out
