"""What the context of a handler uses: a run, or a `RunnerContext` where handlers are called by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from agentbench.exceptions import MessageLimitError
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage

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
    def tools(self) -> Sequence[Any]:
        """The tools that agents get in this run beside their own."""

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
    return import_module("agentbench.workflows.by_hand.calls")


# ruff: noqa: D102 - documented in InProcRunnerContext


@runtime_checkable
class RunnerContext(Protocol):
    """The context that a `Runner`, an `Executor` and a `WorkflowContext` need when they are used by hand.

    `InProcRunnerContext` implements it and documents each method; your own class with these methods is another backend.

    Example:
        >>> isinstance(InProcRunnerContext(), RunnerContext)
        True
    """

    async def send_message(self, message: WorkflowMessage) -> None: ...
    async def drain_messages(self) -> dict[str, list[WorkflowMessage]]: ...
    async def has_messages(self) -> bool: ...
    async def add_event(self, event: WorkflowEvent[Any]) -> None: ...
    async def drain_events(self) -> list[WorkflowEvent[Any]]: ...
    async def has_events(self) -> bool: ...
    async def next_event(self) -> WorkflowEvent[Any]: ...
    def has_checkpointing(self) -> bool: ...
    def set_runtime_checkpoint_storage(self, storage: CheckpointStorage) -> None: ...
    def clear_runtime_checkpoint_storage(self) -> None: ...
    async def create_checkpoint(
        self,
        workflow_name: str,
        graph_signature_hash: str,
        state: State,
        previous_checkpoint_id: str | None,
        iteration_count: int,
        metadata: Mapping[str, Any] | None = None,
    ) -> str: ...
    async def load_checkpoint(self, checkpoint_id: str) -> WorkflowCheckpoint: ...
    async def apply_checkpoint(self, checkpoint: WorkflowCheckpoint) -> None: ...
    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None: ...
    async def send_request_info_response(self, request_id: str, response: Any) -> None: ...
    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]: ...
    def reset_for_new_run(self) -> None: ...
    def set_streaming(self, streaming: bool) -> None: ...
    def is_streaming(self) -> bool: ...
    def set_yield_output_classifier(self, classifier: Callable[[str], OutputKind | None] | None) -> None: ...
    def classify_yielded_output(self, executor_id: str) -> OutputKind | None: ...
