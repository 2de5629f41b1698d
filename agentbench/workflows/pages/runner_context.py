"""Where a run keeps what is between supersteps: messages, events, open requests, fan-in buffers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agentbench._clock import IdSource, runtime_defaults
from agentbench._signatures import is_instance_of, type_name
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.engine.invocation import invoke
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.message import MessageType, WorkflowMessage, internal_source
from agentbench.workflows.run.run_kwargs import RUN_KWARGS

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.tracing import RunTracer
    from agentbench.workflows.executors.delivery import Delivery
    from agentbench.workflows.executors.state import State

OutputKind = Literal["output", "intermediate"]
Buffers = dict[str, dict[str, list[WorkflowMessage]]]


class RunnerContext(Protocol):
    """The seam under the runner: nothing else in the engine holds messages, events or requests."""

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
        """Whether there are such events."""

    async def next_event(self) -> WorkflowEvent[Any]:
        """Wait for the next event and take it."""

    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None:
        """Register and emit a request."""

    async def send_request_info_response(self, request_id: str, response: Any) -> None:
        """Answer a request: queues the RESPONSE message."""

    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]:
        """Open requests by id."""

    def get_buffers(self) -> Buffers:
        """Messages that wait in fan-in barriers: group key, source id, messages."""

    def set_buffers(self, buffers: Buffers) -> None:
        """Replace them."""


class InProcRunnerContext:
    """Everything of a workflow instance that is in flight, inside one process.

    The engine uses the plain methods; the coroutines are the same for code that speaks `RunnerContext`.

    Args:
        checkpoint_storage: where checkpoints go by default.
    """

    def __init__(self, checkpoint_storage: CheckpointStorage | None = None) -> None:
        self.log = EventLog()
        self.messages: dict[str, list[WorkflowMessage]] = {}
        self.requests: dict[str, WorkflowEvent[Any]] = {}
        self.stop_requested = False
        self.ids: IdSource | None = None
        self.report_drops = False
        self.strict_context = True
        #: Set with the two callables below when sends and yields are checked or traced.
        self.watches_sends = False
        self.on_send: Callable[[Delivery, WorkflowMessage], None] = _ignore
        self.on_yield: Callable[[Delivery, Any], None] = _ignore
        #: Wraps the call of a handler: tracing, capture of printed text. None when nothing is on.
        self.around: Callable[[Delivery, Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]] | None = None
        #: Makes the spans of this run; None while tracing is off.
        self.tracer: RunTracer | None = None
        #: Semaphores of executors with a concurrency limit, made at first use, for one run.
        self.gates: dict[str, asyncio.Semaphore] = {}
        #: Executors that wrote each state key in this superstep; kept in observed runs.
        self.writers: dict[str, list[str]] = {}
        self._asked: list[str] = []
        self._buffers: Buffers = {}
        self._streaming = False
        self._classifier: Callable[[str], OutputKind | None] | None = None
        self._unread: list[WorkflowEvent[Any]] = []
        self._storage = checkpoint_storage
        self._runtime_storage: CheckpointStorage | None = None

    # ---- messages --------------------------------------------------------------------------------

    def post(self, messages: Iterable[WorkflowMessage]) -> None:
        """Queue messages for the next superstep, in this order."""
        queued = self.messages
        for message in messages:
            source = message.source_id
            if source in queued:
                queued[source].append(message)
            else:
                queued[source] = [message]

    def take_messages(self) -> dict[str, list[WorkflowMessage]]:
        """Take all queued messages, by source id."""
        taken, self.messages = self.messages, {}
        return taken

    @property
    def holds_answers(self) -> bool:
        """Whether answers to requests are queued."""
        return any(m.type is MessageType.RESPONSE for queued in self.messages.values() for m in queued)

    async def send_message(self, message: WorkflowMessage) -> None:
        """Queue a message for the next superstep."""
        self.post((message,))

    async def deliver(self, delivery: Delivery, state: State) -> None:
        """Call the handler of a delivery, outside a running workflow, and queue what it sends.

        Raises:
            RuntimeError: no handler takes the data.
        """
        self.post(await invoke(delivery, state, self))

    async def drain_messages(self) -> dict[str, list[WorkflowMessage]]:
        """Take all queued messages, by source id."""
        return self.take_messages()

    async def has_messages(self) -> bool:
        """Whether messages are queued."""
        return bool(self.messages)

    def get_buffers(self) -> Buffers:
        """Messages that wait in fan-in barriers."""
        return self._buffers

    def set_buffers(self, buffers: Buffers) -> None:
        """Replace the messages that wait in fan-in barriers."""
        self._buffers = buffers

    # ---- events ----------------------------------------------------------------------------------

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event."""
        self.log.append(event)

    async def drain_events(self) -> list[WorkflowEvent[Any]]:
        """Take the events that were not read yet."""
        taken, self._unread = self._unread, []
        return taken + self.log.take()

    async def has_events(self) -> bool:
        """Whether there are events that were not read yet."""
        return bool(self._unread) or self.log.has_unread

    async def next_event(self) -> WorkflowEvent[Any]:
        """Wait for the next event and take it."""
        while not self._unread:
            if not self.log.has_unread:
                await self.log.changed()
            self._unread = self.log.take()
        return self._unread.pop(0)

    # ---- yields ----------------------------------------------------------------------------------

    def set_yield_output_classifier(self, classifier: Callable[[str], OutputKind | None] | None) -> None:
        """Set what decides, by executor id, how a yielded value is emitted; None: always as `output`."""
        self._classifier = classifier

    def classify_yielded_output(self, executor_id: str) -> OutputKind | None:
        """`output`, `intermediate`, or None for a yield that stays inside."""
        return "output" if self._classifier is None else self._classifier(executor_id)

    # ---- requests --------------------------------------------------------------------------------

    def ask(
        self, delivery: Delivery, data: Any, response_type: Any, request_id: str | None, *, emit: bool = True
    ) -> WorkflowEvent[Any]:
        """Register a request of a handler and emit it, or leave that to the caller.

        Raises:
            ValueError: the id is that of an open request.
        """
        if request_id is None:
            request_id = (self.ids or runtime_defaults().ids).new_id("request")
        if request_id in self.requests:
            msg = (
                f"Request id {request_id!r} is still open, asked by {self.requests[request_id].source_executor_id!r}. "
                "Use another id, or wait for its answer."
            )
            raise ValueError(msg)
        event = WorkflowEvent.request_info(request_id, delivery.executor_id, data, response_type)
        self._register(event)
        if emit:
            self.emit_request(event, delivery)
        return event

    def open_request(self, event: WorkflowEvent[Any]) -> None:
        """Register a request and emit it.

        Raises:
            ValueError: the event is not a request.
        """
        if event.type != "request_info":
            msg = f"Expected a 'request_info' event, got {event.type!r}. Use WorkflowEvent.request_info()."
            raise ValueError(msg)
        self._register(event)
        self.emit_request(event)

    def _register(self, event: WorkflowEvent[Any]) -> None:
        self.requests[event.request_id] = event
        self._asked.append(event.request_id)

    def emit_request(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Emit a request; the first of a run also changes the run's state."""
        self.log.append(event, delivery)
        if self.log.state is WorkflowRunState.IN_PROGRESS:
            self.log.status(WorkflowRunState.IN_PROGRESS_PENDING_REQUESTS)

    def keep_requests(self) -> None:
        """The superstep ended well: what was asked in it stays."""
        if self._asked:
            self._asked = []

    def withdraw_requests(self) -> None:
        """The superstep failed: what was asked in it was never asked."""
        for request_id in self._asked:
            self.requests.pop(request_id, None)
        self._asked = []

    def answer(self, request_id: str, value: Any) -> None:
        """Consume a request and queue its answer; the value has been checked."""
        event = self.requests.pop(request_id)
        target = event.source_executor_id
        self.post((WorkflowMessage(value, internal_source(target), target, MessageType.RESPONSE, None, None, event),))

    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None:
        """Register a request and emit it. ValueError for another event."""
        self.open_request(event)

    async def send_request_info_response(self, request_id: str, response: Any) -> None:
        """Answer a request.

        Raises:
            ValueError: no such request is open.
            TypeError: the value is not of the response type.
        """
        event = self.requests.get(request_id)
        if event is None:
            msg = f"No open request has the id {request_id!r}; open are: {', '.join(self.requests) or 'none'}."
            raise ValueError(msg)
        if not is_instance_of(response, event.response_type):
            msg = (
                f"The answer to {request_id!r} is a {type(response).__name__}; "
                f"expected {type_name(event.response_type)}."
            )
            raise TypeError(msg)
        self.answer(request_id, response)

    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]:
        """Open requests by id."""
        return dict(self.requests)

    def note_write(self, key: str, executor_id: str) -> None:
        """Remember who wrote a state key."""
        names = self.writers.setdefault(key, [])
        if executor_id not in names:
            names.append(executor_id)

    # ---- checkpoints -----------------------------------------------------------------------------

    @property
    def default_storage(self) -> CheckpointStorage | None:
        """The storage given when the workflow was built."""
        return self._storage

    @property
    def storage(self) -> CheckpointStorage | None:
        """The storage of this run, else the default one."""
        return self._runtime_storage if self._runtime_storage is not None else self._storage

    def has_checkpointing(self) -> bool:
        """Whether checkpoints are saved."""
        return self.storage is not None

    def set_runtime_checkpoint_storage(self, storage: CheckpointStorage) -> None:
        """Use another storage for one run."""
        self._runtime_storage = storage

    def clear_runtime_checkpoint_storage(self) -> None:
        """Go back to the default storage."""
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
        """Save what is in flight together with the committed state; returns the checkpoint's id.

        Raises:
            WorkflowCheckpointException: there is no storage, or it refused.
        """
        from agentbench.checkpoints.checkpoint import WorkflowCheckpoint  # noqa: PLC0415 - most runs save none

        checkpoint = WorkflowCheckpoint(
            workflow_name,
            graph_signature_hash,
            previous_checkpoint_id=previous_checkpoint_id,
            messages={source: list(queued) for source, queued in self.messages.items()},
            state={key: value for key, value in state.export_state().items() if key != RUN_KWARGS},  # may hold secrets
            pending_request_info_events=dict(self.requests),
            iteration_count=iteration_count,
            metadata=dict(metadata or {}),
        )
        return await self._need_storage().save(checkpoint)

    async def load_checkpoint(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Load a checkpoint. WorkflowCheckpointException without a storage or for an unknown id."""
        from agentbench.checkpoints.access import load_checkpoint  # noqa: PLC0415 - as above

        return await load_checkpoint(self._need_storage(), checkpoint_id)

    async def apply_checkpoint(self, checkpoint: WorkflowCheckpoint) -> None:
        """Replace messages and open requests by those of the checkpoint."""
        self.messages = {source: list(queued) for source, queued in checkpoint.messages.items()}
        self.requests = dict(checkpoint.pending_request_info_events)
        self._asked = []

    def _need_storage(self) -> CheckpointStorage:
        storage = self.storage
        if storage is None:
            msg = "No checkpoint storage: pass checkpoint_storage= to WorkflowBuilder or to run()."
            raise WorkflowCheckpointException(msg)
        return storage

    # ---- one run ---------------------------------------------------------------------------------

    def reset_for_new_run(self) -> None:
        """Forget messages, buffers and events of earlier runs; open requests stay."""
        self.messages = {}
        self._buffers = {}
        self._asked = []
        self._unread = []
        self.stop_requested = False

    def set_streaming(self, streaming: bool) -> None:
        """Say whether the run is streamed."""
        self._streaming = streaming

    def is_streaming(self) -> bool:
        """Whether the run is streamed."""
        return self._streaming


def _ignore(*_: Any) -> None:
    """Stand-in where nothing watches."""
