"""What the context of a handler needs of the run that called the handler."""

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
    """Where a context emits events."""

    @property
    def observed(self) -> bool:
        """Whether events are stamped and observation events are wanted."""

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Add a finished event; `delivery` is the one it came from, if any."""


class HandlerHost(Protocol):
    """What a context needs of the run that called the handler."""

    state: State
    streaming: bool
    stop_requested: bool
    options: RunOptions
    #: How many messages one superstep may queue for the next.
    max_messages: int
    #: Called with what a handler sends and yields, where a run checks or traces that; else None.
    on_send: Callable[[Delivery, WorkflowMessage], None] | None
    on_yield: Callable[[Delivery, Any], None] | None
    #: Says by executor id how a yielded value is emitted, None for one that stays inside; without it: as output.
    output_kinds: Callable[[str], OutputKind | None] | None

    @property
    def log(self) -> EventSink:
        """Where events go."""

    def raise_request(
        self, delivery: Delivery, data: Any, response_type: Any, request_id: str | None, *, emit: bool
    ) -> WorkflowEvent[Any]:
        """Register a request of a handler and emit it, or leave that to the caller."""

    def emit_request(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Emit a registered request."""

    def withdraw_request(self, request_id: str) -> None:
        """Remove a registered request that was not emitted."""

    def message_limit_error(self, senders: Sequence[str]) -> MessageLimitError:
        """Return the error for more messages than that, by their senders."""

    def note_write(self, key: str, executor_id: str) -> None:
        """Note who wrote a key of shared state."""


def by_hand() -> Any:
    """Return the module for handlers and edges that are called by hand: a room above, which no workflow needs."""
    return import_module("agentbench.workflows.pages.by_hand")
