"""Everything that changes while a workflow runs, in one object. A checkpoint is a copy of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import Buffers, MessageType, WorkflowMessage, internal_source
from agentbench.workflows.executors.state import State

NOTHING: Mapping[str, Sequence[WorkflowMessage]] = MappingProxyType({})
"""No message is being delivered."""


class RunState:
    """The state of a run, or of a workflow between its runs.

    Attributes:
        superstep: number of the last superstep; 0 after the start executors.
        messages: queued for the next superstep, by source id.
        requests: open requests, by id.
        buffers: messages that wait in fan-in barriers.
        last_checkpoint_id: the parent of the next checkpoint.
        unconverged: the last run reached its limit with messages left.
        delivering: the messages that the running superstep has taken from `messages`.
        raised: ids of the requests that the running superstep has emitted.
        writers: executors that wrote each key of `state` in the running superstep; noted in observed runs.
    """

    def __init__(self, state: State | None = None) -> None:
        self.superstep = 0
        self.state = State() if state is None else state
        self.messages: dict[str, list[WorkflowMessage]] = {}
        self.requests: dict[str, WorkflowEvent[Any]] = {}
        self.buffers: Buffers = {}
        self.log = EventLog()
        self.last_checkpoint_id: str | None = None
        self.unconverged = False
        self.delivering = NOTHING
        self.raised: list[str] = []
        self.writers: dict[str, list[str]] = {}

    def queued_messages(self) -> list[WorkflowMessage]:
        """Return the messages queued for the next superstep, in one list."""
        return [message for queued in self.messages.values() for message in queued]

    def queue(self, messages: Iterable[WorkflowMessage]) -> None:
        """Queue messages for the next superstep, in this order."""
        for message in messages:
            self.messages.setdefault(message.source_id, []).append(message)

    def respond(self, request_id: str, value: Any) -> None:
        """Close a request and queue the response to its executor; the value has already been checked."""
        event = self.requests.pop(request_id)
        target = event.source_executor_id
        self.queue((WorkflowMessage(value, internal_source(target), target, MessageType.RESPONSE, None, None, event),))

    def drop_messages(self) -> None:
        """Drop queued, buffered and currently delivered messages; shared state and open requests stay."""
        self.messages = {}
        self.buffers = {}
        self.delivering = NOTHING
        self.raised = []

    def reset(self) -> None:
        """Clear everything: messages, requests, buffers, shared state; set the counters to 0."""
        self.drop_messages()
        self.requests = {}
        self.state.clear()
        self.superstep = 0
        self.unconverged = False
        self.last_checkpoint_id = None
