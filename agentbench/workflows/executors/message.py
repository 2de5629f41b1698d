"""The envelope in which a value travels from one executor to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from agentbench._secrets import masked_repr

if TYPE_CHECKING:
    from agentbench.workflows.events.events import WorkflowEvent

WORKFLOW_SOURCE = "Workflow"
"""The value of `source_executor_ids` for the input of a run."""

Buffers = dict[str, "dict[str, list[WorkflowMessage]]"]
"""Messages that wait in fan-in barriers: by edge group key, then by source id."""


class MessageType(Enum):
    """STANDARD messages go from executor to executor, RESPONSE messages carry the response to a request.

    Example:
        from agentbench import MessageType

        assert MessageType.STANDARD is not MessageType.RESPONSE
    """

    STANDARD = "standard"
    RESPONSE = "response"

    def __str__(self) -> str:
        return self.value


@dataclass(slots=True, repr=False)
class WorkflowMessage:
    """One message between executors. It is delivered in the superstep after the one that sent it.

    Args:
        data: the value.
        source_id: id of the sending executor.
        target_id: deliver it to this executor only; None for all targets of the edges.
        type: `RESPONSE` for the response to a request.
        trace_contexts: OpenTelemetry contexts of the sending spans.
        source_span_ids: ids of these spans.
        original_request_info_event: the request that a response answers.

    Example:
        >>> WorkflowMessage("hello", source_id="writer")
        WorkflowMessage('hello', source_id='writer')
    """

    data: Any
    source_id: str
    target_id: str | None = None
    type: MessageType = MessageType.STANDARD
    trace_contexts: list[dict[str, str]] | None = None
    source_span_ids: list[str] | None = None
    original_request_info_event: WorkflowEvent[Any] | None = None

    def __repr__(self) -> str:
        kind = None if self.type is MessageType.STANDARD else self.type
        data = {**self.to_dict(), "type": getattr(kind, "value", kind)}
        set_fields = "".join(f", {name}={data[name]!r}" for name in _OPTIONAL if data[name] is not None)
        return f"{type(self).__name__}({masked_repr(self.data)}, source_id={self.source_id!r}{set_fields})"

    @property
    def trace_context(self) -> dict[str, str] | None:
        """The first trace context, or None."""
        return self.trace_contexts[0] if self.trace_contexts else None

    @property
    def source_span_id(self) -> str | None:
        """The first source span id, or None."""
        return self.source_span_ids[0] if self.source_span_ids else None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, with `type` as its value and `data` by reference."""
        fields = {name: getattr(self, name) for name in ("data", "source_id", *_OPTIONAL)}
        return {**fields, "type": self.type.value}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> WorkflowMessage:
        """Build a message from the form of `to_dict()`, which must contain `data` and `source_id`."""
        fields = {name: data[name] for name in _OPTIONAL if name in data}
        if "type" in fields:
            fields["type"] = MessageType(fields["type"])
        return WorkflowMessage(data["data"], data["source_id"], **fields)


_OPTIONAL = ("target_id", "type", "trace_contexts", "source_span_ids", "original_request_info_event")


def internal_source(executor_id: str) -> str:
    """Return the source id of an executor's internal edge, which carries responses and hook messages."""
    return f"internal:{executor_id}"
