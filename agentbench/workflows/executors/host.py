"""The part of a run that the context of its handlers uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol

from agentbench.exceptions import MessageLimitError
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State

OutputKind = Literal["output", "intermediate"]


class EventSink(Protocol):
    """A log in which a context emits events."""

    @property
    def observed(self) -> bool:
        """Whether events are stamped and observation events are emitted."""

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Add a complete event; `delivery` is the one that emitted it, if any."""


class HandlerHost(Protocol):
    """The part of a run that the context of its handlers uses."""

    state: State
    streaming: bool
    stop_requested: bool
    options: RunOptions
    max_messages: int
    """Maximum number of messages that one superstep may queue for the next."""
    on_send: Callable[[Delivery, WorkflowMessage], None] | None
    """Called with what a handler sends and yields, if the run checks or traces that; otherwise None."""
    on_yield: Callable[[Delivery, Any], None] | None
    output_kinds: Callable[[str], OutputKind | None] | None
    """Maps an executor id to how its yields are emitted: None for yields that stay inside; if unset, as outputs."""

    @property
    def log(self) -> EventSink:
        """The log that receives the events."""

    def raise_request(
        self, delivery: Delivery, data: Any, response_type: Any, request_id: str | None, *, emit: bool
    ) -> WorkflowEvent[Any]:
        """Register a request of a handler and emit it, or let the caller emit it."""

    def emit_request(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Emit a registered request."""

    def withdraw_request(self, request_id: str) -> None:
        """Remove a registered request that was not emitted."""

    def message_limit_error(self, senders: Sequence[str]) -> MessageLimitError:
        """Return the error for queueing more messages than allowed, with counts by sender."""

    def note_write(self, key: str, executor_id: str) -> None:
        """Record who wrote a key of shared state."""


def by_hand() -> Any:
    """Return the module for handlers and edges that are called by hand; it is in a higher layer."""
    return import_module("agentbench.workflows.pages.by_hand")
