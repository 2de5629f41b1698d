"""The envelope in which a value travels from one executor to others, and its delivery to one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agentbench._secrets import masked_repr
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


class Withdrawn(Enum):
    """The data of a response to a request that was withdrawn, so that nobody will answer it.

    Example:
        from agentbench.revisions import Withdrawn

        assert str(Withdrawn.WITHDRAWN) == "withdrawn"
    """

    WITHDRAWN = "withdrawn"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


WITHDRAWN = Withdrawn.WITHDRAWN


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


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The messages and values that a successful handler sent and yielded, in order."""

    sent: tuple[WorkflowMessage, ...]
    yielded: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """The part of an ended `Delivery` that a boundary hook may read; a failed handler has no `result`."""

    executor_id: str
    task_id: str
    order: int
    data: Any
    sources: tuple[str, ...]
    result: DeliveryResult | None
    error: BaseException | None


class Delivery:
    """A planned call of one handler; None if none takes the data (only possible for the input of a run).

    `data` of a barrier fan-in is the list of all messages; `messages` are their envelopes: none for an input.
    """

    superstep = 0
    order = 0
    """Position in the plan, and among this executor's deliveries in the plan."""
    nth = 0
    result: DeliveryResult | None = None
    """What the handler sent and yielded, once it has succeeded; recorded for boundary hooks only."""
    error: BaseException | None = None
    context: Any = None
    """The handler's context while it runs, so that an abandoned run can close it."""
    abandoned = False
    """Whether the run was abandoned; a handler that has not started must then not start."""
    attempt: int | None = None
    """The current attempt, from 1, of an executor with retries or on workers."""
    worker: str | None = None
    """The worker that runs the handler, if it does not run here."""
    began_ns = 0
    span_id: str | None = None
    parent_span_id: str | None = None

    def __init__(
        self,
        executor: Any,
        handler: Any,
        data: Any,
        sources: tuple[str, ...],
        messages: tuple[WorkflowMessage, ...] = (),
        request: WorkflowEvent[Any] | None = None,
    ) -> None:
        self.executor = executor
        self.executor_id: str = executor.id
        self.handler = handler
        self.data = data
        self.sources = sources
        self.messages = messages
        self.request = request

    @property
    def task_id(self) -> str:
        """The id `<superstep>:<executor id>:<k>`, equal from run to run."""
        return f"{self.superstep}:{self.executor_id}:{self.nth}"

    def view(self) -> DeliveryView:
        """Return the part that a boundary hook may read."""
        return DeliveryView(
            self.executor_id, self.task_id, self.order, self.data, self.sources, self.result, self.error
        )

    def __repr__(self) -> str:
        return f"Delivery({', '.join(self.sources)} -> {self.executor_id}, {type(self.data).__name__})"


def require_sources(source_executor_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the senders of a message that is delivered by hand; `ValueError` if there are none, or for a text."""
    if not source_executor_ids or isinstance(source_executor_ids, str):
        msg = f"source_executor_ids is {source_executor_ids!r}; expected a list with the id of at least one sender."
        raise ValueError(msg)
    return tuple(source_executor_ids)
