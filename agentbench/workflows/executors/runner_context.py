"""`RunnerContext`: what holds the messages, events and requests of a run that is driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.executors.host import OutputKind
    from agentbench.workflows.executors.message import WorkflowMessage
    from agentbench.workflows.executors.state import State


@runtime_checkable
class RunnerContext(Protocol):
    """What a `Runner`, an `Executor` and a `WorkflowContext` that are used by hand need of their context.

    `InProcRunnerContext` is one; a class of your own with these methods is another backend.

    Example:
        >>> isinstance(InProcRunnerContext(), RunnerContext)
        True
    """

    async def send_message(self, message: WorkflowMessage) -> None:
        """Queue a message for the next superstep."""

    async def drain_messages(self) -> dict[str, list[WorkflowMessage]]:
        """Take all queued messages, by source id."""

    async def has_messages(self) -> bool:
        """Whether messages are queued."""

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event."""

    async def drain_events(self) -> list[WorkflowEvent[Any]]:
        """Take the events that were not read yet."""

    async def has_events(self) -> bool:
        """Whether there are events that were not read yet."""

    async def next_event(self) -> WorkflowEvent[Any]:
        """Wait for the next event and take it."""

    def has_checkpointing(self) -> bool:
        """Whether there is a storage."""

    def set_runtime_checkpoint_storage(self, storage: CheckpointStorage) -> None:
        """Use another storage for one run."""

    def clear_runtime_checkpoint_storage(self) -> None:
        """Go back to the storage that the context was made with."""

    async def create_checkpoint(
        self,
        workflow_name: str,
        graph_signature_hash: str,
        state: State,
        previous_checkpoint_id: str | None,
        iteration_count: int,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Save queued messages, open requests and committed state; returns the checkpoint's id."""

    async def load_checkpoint(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Load a checkpoint."""

    async def apply_checkpoint(self, checkpoint: WorkflowCheckpoint) -> None:
        """Replace messages and open requests by those of a checkpoint, and emit the requests again."""

    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None:
        """Register and emit a request."""

    async def send_request_info_response(self, request_id: str, response: Any) -> None:
        """Answer a request: queues the RESPONSE message."""

    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]:
        """Return the open requests by id."""

    def reset_for_new_run(self) -> None:
        """Drop messages and unread events of earlier runs."""

    def set_streaming(self, streaming: bool) -> None:
        """Set whether handlers see a streamed run."""

    def is_streaming(self) -> bool:
        """Whether handlers see a streamed run."""

    def set_yield_output_classifier(self, classifier: Callable[[str], OutputKind | None] | None) -> None:
        """Set what decides, by executor id, how a yielded value is emitted; None: always as `output`."""

    def classify_yielded_output(self, executor_id: str) -> OutputKind | None:
        """Return `output`, `intermediate`, or None for a yield that stays inside."""
