"""The items of a streamed call of a graph: chunks, or pairs of a mode and its payload."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from agentbench.messages.message import Message
from agentbench.messages.whole_copies import copy_message, copy_whole
from agentbench.observability.tool_reports import ToolReport
from agentbench.serialization.plain import to_plain
from agentbench.stategraph.interrupts import BreakpointRequest, Interrupt
from agentbench.stategraph.results import ResponseGranularity
from agentbench.stategraph.running.plan import CallRecord, GraphPlan, StateChanges
from agentbench.stategraph.state import ExecutionState
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState


class StreamEvent(StrEnum):
    """The kind of a chunk.

    Example:
        for chunk in app.stream({"messages": "Hello"}, thread):
            if chunk.event is StreamEvent.MESSAGE:
                print(chunk.message.text)
    """

    STATE = "state"
    MESSAGE = "message"
    ERROR = "error"
    UPDATES = "updates"


@dataclass(frozen=True)
class StreamChunk:
    """A piece of a streamed call.

    Args:
        event: Its kind, which determines which of the next three fields is set.
        message: A message, or a piece of one (`message.delta`).
        state: The state after a superstep, or the dictionary of its fields.
        data: The event as a dictionary with a `status`.
        thread_id: The id of the thread.
        run_id: The id of the run.
        metadata: Further facts, such as the node.
        timestamp: The time of the event, in seconds since 1970-01-01T00:00:00Z.

    Example:
        >>> async for chunk in app.astream({"messages": "Hello"}, config):
        ...     print(chunk.message.text)
    """

    event: StreamEvent
    message: Message | None = None
    state: Any = None
    data: dict[str, Any] | None = None
    thread_id: str | int | None = None
    run_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    timestamp: float | None = None

    def model_dump(
        self,
        *,
        mode: Literal["json", "python"] = "json",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        exclude_none: bool = False,
    ) -> dict[str, Any]:
        """Return the fields as plain values: texts, numbers, lists and dictionaries.

        Args:
            mode: As of pydantic's method of this name; the values are plain in both modes.
            include: The names of the fields to return; `None` returns all.
            exclude: The names of fields to leave out.
            exclude_none: Leave out fields without a value.

        Raises:
            TypeError: `include` or `exclude` is not a collection of names.

        Example:
            >>> [chunk.model_dump(mode="json", include={"event", "data"}) for chunk in app.stream("Hello", thread)]
        """
        kept = vars(self).keys() if include is None else _names("include", include)
        left_out = () if exclude is None else _names("exclude", exclude)
        plain = {name: to_plain(value) for name, value in vars(self).items() if name in kept and name not in left_out}
        return {name: value for name, value in plain.items() if value is not None} if exclude_none else plain

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        exclude_none: bool = False,
    ) -> str:
        """Return `model_dump` as JSON text."""
        dumped = self.model_dump(include=include, exclude=exclude, exclude_none=exclude_none)
        return json.dumps(dumped, ensure_ascii=False, indent=indent)


def _names(argument: str, given: Collection[str]) -> Collection[str]:
    if isinstance(given, (str, Mapping)) or not isinstance(given, Collection):
        message = f"{argument} is {given!r}; expected a set of names of fields, such as {{'event', 'data'}}."
        raise TypeError(message)
    return given


MODES = ("values", "updates", "messages", "custom", "tasks", "checkpoints", "events")

_STATUS = {
    "superstep_started": "superstep_started",
    "superstep_completed": "superstep_completed",
    "executor_invoked": "node_started",
    "executor_completed": "node_finished",
    "graph_routed": "routed",
    "checkpoint_saved": "checkpoint_saved",
    "custom": "custom",
}


@dataclass(slots=True)
class Chunks:
    """Converts the events of one call to chunks; each message is yielded once."""

    plan: GraphPlan
    record: CallRecord
    level: ResponseGranularity
    thread_id: str | int | None
    run_id: str | None
    shown: set[Any] = field(default_factory=set)
    emitted_at: float | None = None
    """The time of the event that is converted now."""

    def of(self, event: WorkflowEvent[Any]) -> Iterator[StreamChunk]:
        """Yield the chunks of an event."""
        self.emitted_at = None if event.time_ns is None else event.time_ns / 1e9
        kind, data = event.type, event.data
        node = event.executor_id
        if isinstance(data, Message) and kind == "custom":
            yield from self._messages([data], node)
            return
        if isinstance(data, StateChanges):
            yield from self._state(data)
        elif isinstance(data, ToolReport):
            yield self._report(data, node)
        elif kind in ("warning", "executor_failed", "failed"):
            yield self._chunk(StreamEvent.ERROR, data={"status": kind, "node": node, "message": str(data)})
        elif kind == "request_info":
            question = event.data
            if isinstance(question, (Interrupt, BreakpointRequest)):
                yield self._chunk(StreamEvent.UPDATES, data={"status": "interrupted", "interrupt": question})
        elif self.level is not ResponseGranularity.FULL:
            return
        elif kind == "status" and event.state is WorkflowRunState.IDLE:
            yield self._chunk(StreamEvent.UPDATES, data={"status": "completed"})
        elif kind in _STATUS:
            update = {"status": _STATUS[kind], "node": node, "step": event.iteration, "data": data}
            yield self._chunk(StreamEvent.UPDATES, data=update)

    def _state(self, changes: StateChanges) -> Iterator[StreamChunk]:
        yield from self._messages(changes.messages, None)
        if self.level is not ResponseGranularity.LOW:
            state = self.plan.fields.to_display(copy_whole(changes.values_after), ExecutionState(**changes.meta))
            yield self._chunk(StreamEvent.STATE, state=state)
        if self.level is ResponseGranularity.FULL:
            writers = {name: change["writers"] for name, change in changes.items()}
            yield self._chunk(StreamEvent.UPDATES, data={"status": "state_updated", "writers": writers})

    def _messages(self, messages: Sequence[Message], node: str | None) -> Iterator[StreamChunk]:
        for message in messages:
            if message.delta or message.message_id not in self.shown:
                if not message.delta and message.message_id is not None:
                    self.shown.add(message.message_id)
                yield self._chunk(
                    StreamEvent.MESSAGE, message=copy_message(message), metadata={} if node is None else {"node": node}
                )

    def _report(self, report: ToolReport, node: str | None) -> StreamChunk:
        event = StreamEvent(report.event)
        said = Message("tool", [report["message"]]).stamp() if event is StreamEvent.MESSAGE else None
        data = {**report, "node": node, "thread_id": self.thread_id, "run_id": self.run_id}
        return self._chunk(event, message=said, data=data, metadata={"node": node})

    def _chunk(self, event: StreamEvent, **facts: Any) -> StreamChunk:
        return StreamChunk(event, thread_id=self.thread_id, run_id=self.run_id, timestamp=self.emitted_at, **facts)


def read_modes(stream_mode: str | Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """Return the modes of a stream as a list; `ValueError` for an unknown one."""
    modes: Sequence[Any] = stream_mode if isinstance(stream_mode, (list, tuple)) else [stream_mode]
    for mode in modes:
        if mode not in known:
            message = f"stream_mode is {mode!r}; expected one of {', '.join(map(repr, known))}, or a list of them."
            raise ValueError(message)
    return modes


def payloads(event: WorkflowEvent[Any], modes: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the form of an event in each of the modes, as (mode, payload)."""
    kind, data = event.type, event.data
    found: dict[str, list[Any]] = {"events": [event]}
    if isinstance(data, StateChanges):
        found["values"] = [data.values_after]
        found["updates"] = [{node: writes} for node, writes in data.updates]
        found["messages"] = data.messages
    elif kind in ("executor_invoked", "executor_completed", "executor_failed"):
        found["tasks"] = [{"status": kind.removeprefix("executor_"), "node": event.executor_id, "data": data}]
    elif kind == "custom":
        found["messages" if isinstance(data, Message) else "custom"] = [data]
    elif kind == "checkpoint_saved":
        found["checkpoints"] = [data]
    elif kind == "request_info" and isinstance(data, (Interrupt, BreakpointRequest)):
        found["updates"] = [{"__interrupt__": [data]}]
    for mode in modes:
        for payload in found.get(mode, ()):
            yield mode, payload if mode == "events" else copy_whole(payload)
