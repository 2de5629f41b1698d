"""The `RunnerContext` of this process: the state of a run, with methods for code that drives it by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentbench._signatures import is_instance_of, type_name
from agentbench.checkpoints.manager import bare_storage
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.engine.run_kwargs import RUN_KWARGS
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.host import OutputKind
from agentbench.workflows.executors.message import Buffers, WorkflowMessage
from agentbench.workflows.executors.state import State

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage


class InProcRunnerContext(RunState):
    """Messages, events, requests and checkpoints of a run that is driven by hand: a `RunnerContext`.

    Args:
        checkpoint_storage: the default storage to save checkpoints to and load them from.

    Example:
        >>> context = InProcRunnerContext()
        >>> await context.send_message(WorkflowMessage("hello", source_id="writer"))
        >>> await context.has_messages()
        True
    """

    def __init__(self, checkpoint_storage: CheckpointStorage | None = None) -> None:
        super().__init__()
        self.default_storage = bare_storage(checkpoint_storage)
        self._runtime_storage: CheckpointStorage | None = None
        self._streaming = False
        self._classifier: Callable[[str], OutputKind | None] | None = None
        self._unread: list[WorkflowEvent[Any]] = []

    async def send_message(self, message: WorkflowMessage) -> None:
        """Queue a message for the next superstep."""
        self.queue((message,))

    async def drain_messages(self) -> dict[str, list[WorkflowMessage]]:
        """Remove and return all queued messages, by source id."""
        taken, self.messages = self.messages, {}
        return taken

    async def has_messages(self) -> bool:
        """Whether messages are queued."""
        return bool(self.messages)

    def get_buffers(self) -> Buffers:
        """Return the messages that wait in fan-in barriers."""
        return self.buffers

    def set_buffers(self, buffers: Buffers) -> None:
        """Replace the messages that wait in fan-in barriers."""
        self.buffers = buffers

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event."""
        self.log.append(event)

    async def drain_events(self) -> list[WorkflowEvent[Any]]:
        """Remove and return the unread events."""
        taken, self._unread = self._unread, []
        return taken + self.log.take()

    async def has_events(self) -> bool:
        """Whether there are unread events."""
        return bool(self._unread) or self.log.has_unread

    async def next_event(self) -> WorkflowEvent[Any]:
        """Wait for the next event, remove it, and return it."""
        while not self._unread:
            if not self.log.has_unread:
                await self.log.next_change()
            self._unread = self.log.take()
        return self._unread.pop(0)

    def set_yield_output_classifier(self, classifier: Callable[[str], OutputKind | None] | None) -> None:
        """Set the function that maps an executor id to how its yields are emitted; None: always as `output`."""
        self._classifier = classifier

    def classify_yielded_output(self, executor_id: str) -> OutputKind | None:
        """Return `output`, `intermediate`, or None for a yield that stays inside."""
        return "output" if self._classifier is None else self._classifier(executor_id)

    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None:
        """Register a request and emit it. ValueError: the event is not a request."""
        if event.type != "request_info":
            msg = f"Expected a 'request_info' event, got {event.type!r}. Use WorkflowEvent.request_info()."
            raise ValueError(msg)
        self.requests[event.request_id] = event
        await self.add_event(event)

    async def send_request_info_response(self, request_id: str, response: Any) -> None:
        """Respond to a request. ValueError: it is not open. TypeError: the value is not of its response type."""
        event = self.requests.get(request_id)
        if event is None:
            msg = f"No open request has the id {request_id!r}. Open requests: {', '.join(self.requests) or 'none'}."
            raise ValueError(msg)
        if not is_instance_of(response, event.response_type):
            expected = type_name(event.response_type)
            msg = f"The response to {request_id!r} is of type {type(response).__name__}; expected {expected}."
            raise TypeError(msg)
        self.respond(request_id, response)

    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]:
        """Return the open requests by id."""
        return dict(self.requests)

    @property
    def storage(self) -> CheckpointStorage | None:
        """The storage set for one run, or that of the constructor."""
        return self.default_storage if self._runtime_storage is None else self._runtime_storage

    def has_checkpointing(self) -> bool:
        """Whether there is a storage."""
        return self.storage is not None

    def set_runtime_checkpoint_storage(self, storage: CheckpointStorage) -> None:
        """Use another storage for one run."""
        self._runtime_storage = storage

    def clear_runtime_checkpoint_storage(self) -> None:
        """Use the storage of the constructor again."""
        self._runtime_storage = None

    async def create_checkpoint(
        self,
        workflow_name: str,
        graph_signature_hash: str,
        state: State,
        previous_checkpoint_id: str | None,
        iteration_count: int,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Save queued messages, open requests, barriers and committed state; return the checkpoint's id.

        A `Runner` also saves the state of executors. WorkflowCheckpointException: there is no storage.
        """
        from agentbench.checkpoints.access import head_of, save_checkpoint  # noqa: PLC0415 - most runs save none
        from agentbench.checkpoints.checkpoint import WorkflowCheckpoint  # noqa: PLC0415 - as above
        from agentbench.checkpoints.metadata import SEQ  # noqa: PLC0415 - as above
        from agentbench.workflows.persist.snapshot import FAN_IN_BUFFERS  # noqa: PLC0415 - as above

        storage = self._require_storage()
        content = {key: value for key, value in state.export_state().items() if key != RUN_KWARGS}  # may hold secrets
        if self.buffers:
            content[FAN_IN_BUFFERS] = self.buffers
        head = await head_of(storage, workflow_name)
        checkpoint = WorkflowCheckpoint(
            workflow_name,
            graph_signature_hash,
            previous_checkpoint_id=previous_checkpoint_id,
            messages={source: list(queued) for source, queued in self.messages.items()},
            state=content,
            pending_request_info_events=dict(self.requests),
            iteration_count=iteration_count,
            metadata={SEQ: 1 if head is None else head.seq + 1, **(metadata or {})},
        )
        return await save_checkpoint(storage, checkpoint)

    async def load_checkpoint(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Load a checkpoint. WorkflowCheckpointException: the storage is missing, or the id is unknown."""
        from agentbench.checkpoints.access import load_checkpoint  # noqa: PLC0415 - most runs load none

        return await load_checkpoint(self._require_storage(), checkpoint_id)

    async def apply_checkpoint(self, checkpoint: WorkflowCheckpoint) -> None:
        """Replace messages, barriers and open requests by those of a checkpoint, and emit the requests again."""
        from agentbench.workflows.persist.snapshot import FAN_IN_BUFFERS  # noqa: PLC0415 - most runs load none

        self.messages = {source: list(queued) for source, queued in checkpoint.messages.items()}
        self.buffers = checkpoint.state.get(FAN_IN_BUFFERS, {})
        self.requests = {}
        for request in checkpoint.pending_request_info_events.values():
            await self.add_request_info_event(request)

    def _require_storage(self) -> CheckpointStorage:
        storage = self.storage
        if storage is None:
            msg = "This context has no checkpoint storage. Pass one to InProcRunnerContext(checkpoint_storage)."
            raise WorkflowCheckpointException(msg)
        return storage

    def set_streaming(self, streaming: bool) -> None:
        """Set whether handlers see a streamed run."""
        self._streaming = streaming

    def is_streaming(self) -> bool:
        """Whether handlers see a streamed run."""
        return self._streaming

    def reset_for_new_run(self) -> None:
        """Drop messages, buffers and unread events of earlier runs; open requests stay."""
        self.drop_messages()
        self.log.take()
        self._unread = []
