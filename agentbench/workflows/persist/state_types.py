"""How messages and events are stored: by name, only the fields that are set."""

from __future__ import annotations

from typing import Any, Final

from agentbench.serialization.registry import of_kind, register_type
from agentbench.workflows.events.events import EventStamps, WorkflowEvent, WorkflowEventSource, WorkflowRunState
from agentbench.workflows.executors.message import MessageType, WorkflowMessage

_OPTIONAL: Final = ("target_id", "trace_contexts", "source_span_ids", "original_request_info_event")
_REQUEST: Final = ("request_id", "source_executor_id", "request_type", "response_type")


def _message_to_dict(message: WorkflowMessage) -> dict[str, Any]:
    data: dict[str, Any] = {"data": message.data, "source_id": message.source_id}
    if message.type is not MessageType.STANDARD:
        data["type"] = message.type.value
    for name in _OPTIONAL:
        value = getattr(message, name)
        if value is not None:
            data[name] = value
    return data


def _message_from_dict(found: dict[str, Any]) -> WorkflowMessage:
    of_kind(str, found.get("type", ""))  # looking up an enum would compare anything with each member
    return WorkflowMessage.from_dict(found)


def _event_to_dict(event: WorkflowEvent[Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"type": event.type}
    if event.origin is not WorkflowEventSource.EXECUTOR:
        data["origin"] = event.origin.value
    if event.state is not None:
        data["state"] = event.state.value
    for name in ("data", "details", "executor_id", "iteration"):
        value = getattr(event, name)
        if value is not None:
            data[name] = value
    if event._request is not None:  # noqa: SLF001 - same unit: what an event is made of
        data.update(zip(_REQUEST, event._request, strict=True))  # noqa: SLF001
    if event._stamps is not None:  # noqa: SLF001
        data["stamps"] = event._stamps.to_dict()  # noqa: SLF001
    return data


def _event_from_dict(found: dict[str, Any]) -> WorkflowEvent[Any]:
    stamps = found.pop("stamps", None)
    for name, read in (("origin", WorkflowEventSource), ("state", WorkflowRunState)):
        if name in found:
            found[name] = read(of_kind(str, found[name]))
    event = WorkflowEvent(**found)
    if stamps is not None:
        event._stamps = EventStamps.from_dict(of_kind(dict, stamps))  # noqa: SLF001
    return event


register_type(WorkflowMessage, "workflow_message", _message_to_dict, _message_from_dict)
register_type(WorkflowEvent, "workflow_event", _event_to_dict, _event_from_dict)
