"""The state of a run with the methods that code calls which drives a runner, or handlers, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agentbench._signatures import is_instance_of, type_name
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.engine.concurrency import run_all
from agentbench.workflows.engine.invocation import invoke
from agentbench.workflows.engine.run_state import RunState
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.host import OutputKind
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import (
    BUFFERED,
    CONDITION_FALSE,
    EdgeGroupDeliveryStatus,
    EdgeRunner,
    copy_buffers,
)

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage


@runtime_checkable
class RunnerContext(Protocol):
    """What code that drives a `Runner` by hand needs of its context; `InProcRunnerContext` is one."""

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
        """Return the open requests by id."""


class InProcRunnerContext(RunState):
    """Messages, events and requests of a run that is driven by hand: a `RunnerContext`.

    Args:
        checkpoint_storage: where a `Runner` finds checkpoints to restore.

    Example:
        >>> context = InProcRunnerContext()
        >>> await context.send_message(WorkflowMessage("hello", source_id="writer"))
        >>> await context.has_messages()
        True
    """

    def __init__(self, checkpoint_storage: CheckpointStorage | None = None) -> None:
        super().__init__()
        self.storage = checkpoint_storage
        self._classifier: Callable[[str], OutputKind | None] | None = None
        self._unread: list[WorkflowEvent[Any]] = []

    # ---- messages --------------------------------------------------------------------------------

    async def send_message(self, message: WorkflowMessage) -> None:
        """Queue a message for the next superstep."""
        self.queue((message,))

    async def drain_messages(self) -> dict[str, list[WorkflowMessage]]:
        """Take all queued messages, by source id."""
        taken, self.messages = self.messages, {}
        return taken

    async def has_messages(self) -> bool:
        """Whether messages are queued."""
        return bool(self.messages)

    # ---- handlers and edges by hand --------------------------------------------------------------

    def host(self, state: State) -> ActiveRun:
        """Return the host of handlers that are called by hand, with this shared state."""
        run = ActiveRun(Graph([], {}, ()), self, self.log, RunOptions())
        run.state = state
        run.output_kinds = self._classifier
        return run

    async def deliver(self, delivery: Delivery, state: State) -> None:
        """Call the handler of a delivery and queue what it sends."""
        self.queue(await invoke(delivery, self.host(state)))

    async def route(self, edge_runner: EdgeRunner, message: WorkflowMessage, state: State) -> bool:
        """Route one message over an edge group and call the handlers that it reaches; False if no target takes it."""
        buffers = copy_buffers(self.buffers)
        routed = edge_runner.route(message, await edge_runner.decide(message), buffers)
        self.buffers = buffers
        if isinstance(routed, EdgeGroupDeliveryStatus):
            return routed in (BUFFERED, CONDITION_FALSE)
        run = self.host(state)
        for sent in await run_all(lambda delivery: invoke(delivery, run), routed):
            self.queue(sent)
        return True

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

    def set_yield_output_classifier(self, classifier: Callable[[str], OutputKind | None] | None) -> None:
        """Set what decides, by executor id, how a yielded value is emitted; None: always as `output`."""
        self._classifier = classifier

    def classify_yielded_output(self, executor_id: str) -> OutputKind | None:
        """Return `output`, `intermediate`, or None for a yield that stays inside."""
        return "output" if self._classifier is None else self._classifier(executor_id)

    # ---- requests --------------------------------------------------------------------------------

    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None:
        """Register a request and emit it."""
        self.host(self.state).open_request(event)

    async def send_request_info_response(self, request_id: str, response: Any) -> None:
        """Answer a request. ValueError: it is not open. TypeError: the value is not of its response type."""
        event = self.requests.get(request_id)
        if event is None:
            msg = f"No open request has the id {request_id!r}; open are: {', '.join(self.requests) or 'none'}."
            raise ValueError(msg)
        if not is_instance_of(response, event.response_type):
            expected = type_name(event.response_type)
            msg = f"The answer to {request_id!r} is a {type(response).__name__}; expected {expected}."
            raise TypeError(msg)
        self.respond(request_id, response)

    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]:
        """Return the open requests by id."""
        return dict(self.requests)

    # ---- one run ---------------------------------------------------------------------------------

    def has_checkpointing(self) -> bool:
        """Whether there is a storage."""
        return self.storage is not None

    def reset_for_new_run(self) -> None:
        """Drop messages, buffers and unread events of earlier runs; open requests stay."""
        self.drop_messages()
        self._unread = []
