"""The history of a run: its supersteps, and in each superstep the calls of the executors.

Frames, plots, cards and panels display parts of this. Only `Superstep.add` interprets the events of a run: a new
kind of event is handled there, and is then available to every view.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.observability.tool_reports import ToolReport
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent
from agentbench.workflows.executors.state import ABSENT

Event = WorkflowEvent[Any]

BEGINNINGS = ("superstep_started", "executor_invoked")
"""Event types of which every superstep has at least one."""

_ENDS = {"executor_completed": "completed", "executor_failed": "failed", "executor_bypassed": "bypassed"}
# The list of a superstep to which an event is added.
_LISTS = {
    "output": "outputs",
    "intermediate": "outputs",
    "data": "outputs",
    "warning": "warnings",
    "error": "warnings",
    "model_usage": "usages",
    "state_updated": "updates",
    "graph_routed": "routes",
}
_MAPPINGS = ("state_updated", "graph_routed")
# States of an unfinished run; in any other state, a call without an end was cancelled.
_GOING = frozenset({"STARTED", "IN_PROGRESS", "IN_PROGRESS_PENDING_REQUESTS"})


def is_visit(message: object) -> bool:
    """Whether a message makes its executor act; agents of a team only record messages of the others."""
    return getattr(message, "should_respond", True) is not False


def unwrap_event(event: Event) -> Event:
    """Unwrap the event of a sub-workflow, with `outer/inner` as its executor as in graphs; return others unchanged."""
    if event.type != "sub_workflow":
        return event
    inside: Event = copy.copy(event.data)
    path = "/".join(inside.path)
    if inside.type == "request_info":
        source = f"{path}/{inside.source_id}"
        inside._request = (inside.request_id, source, inside.request_type, inside.response_type)  # noqa: SLF001 - a copy
    else:
        inside.executor_id = path if inside.executor_id is None else f"{path}/{inside.executor_id}"
    return inside


@dataclass(slots=True)
class ExecutorCall:
    """The work of one executor in one superstep, for all of its messages; times only in observed runs."""

    superstep: int
    executor: str
    order: int = 0
    """Position of its first delivery in the plan, or of its first event."""
    start_ns: int | None = None
    end_ns: int | None = None
    status: str = "running"
    """`running`, `completed`, `failed`, `bypassed`, `cancelled`, or `waiting` for an answer."""
    wait_ns: int | None = None
    """Waiting time of its requests, once they are answered."""
    messages: list[Any] = field(default_factory=list)
    """Received messages; the list of a barrier counts as one."""
    at_work: int = 0
    """Number of unfinished messages."""
    results: list[Any] = field(default_factory=list)
    """Sent and yielded values."""
    outputs: list[Any] = field(default_factory=list)
    """The results that became outputs of the workflow."""
    knows_outputs: bool = True
    """False for checkpoints, which do not record yielded values."""
    requests: list[Any] = field(default_factory=list)
    """Its `request_info` events."""
    failure: WorkflowErrorDetails | None = None
    """The raised exception."""
    attempts: int = 0
    """Number of attempts, if retries are enabled."""
    progress: str = ""
    """The last line about the progress of a tool that it calls."""
    workers: list[str] = field(default_factory=list)
    """Addresses of the workers that ran it; empty if it ran here."""

    @property
    def messages_in(self) -> int:
        """Number of received messages."""
        return len(self.messages)

    @property
    def error(self) -> str:
        """The raised exception as text."""
        return "" if self.failure is None else f"{self.failure.error_type}: {self.failure.message}"

    @property
    def duration_ns(self) -> int | None:
        """Time from the first message to the last end."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def messages_out(self) -> int:
        """Number of sent messages, including yields that are not outputs of the workflow."""
        return max(0, len(self.results) - len(self.outputs))


@dataclass(slots=True)
class Superstep:
    """One superstep (0 runs the start executors): the calls by executor id, and the other events."""

    number: int
    calls: dict[str, ExecutorCall] = field(default_factory=dict)
    outputs: list[Event] = field(default_factory=list)
    warnings: list[Event] = field(default_factory=list)
    usages: list[Event] = field(default_factory=list)
    updates: list[Event] = field(default_factory=list)
    routes: list[Event] = field(default_factory=list)
    duration_s: float | None = None
    checkpoint_id: str | None = None
    """Id of the checkpoint saved after it."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """The shared state after it."""
    inside: Superstep | None = None
    """The calls in its sub-workflows, by ids such as `outer/inner`."""
    has_begun: bool = False
    """Whether it has begun; events of a start or a restore have the number of the previous superstep."""

    def add(self, event: Event, place: int = 0) -> None:
        """Add one event of the superstep; `place` orders the executors if the event has no plan order."""
        kind, executor = event.type, event.source_id
        self.has_begun = self.has_begun or kind in BEGINNINGS
        if kind == "sub_workflow":
            self.inside = self.inside or Superstep(self.number)
            self.inside.add(inner := unwrap_event(event), place)
            if inner.type == "model_usage":
                self.usages.append(inner)
            return
        if kind == "executor_invoked" and executor is not None:
            call = self._call(executor, event, place)
            call.messages.append(event.data)
            call.at_work += 1
            call.start_ns = event.time_ns if call.start_ns is None else call.start_ns
        elif kind in _ENDS and executor is not None:
            self._end(self._call(executor, event, place), event)
        elif kind == "request_info" and executor is not None:
            self._call(executor, event, place).requests.append(event)
        elif kind in _LISTS and (kind not in _MAPPINGS or isinstance(event.data, Mapping)):
            getattr(self, _LISTS[kind]).append(event)
            if _LISTS[kind] == "outputs" and executor in self.calls:
                self.calls[executor].outputs.append(event.data)
        else:
            self._add_facts(event)

    def _add_facts(self, event: Event) -> None:
        """Add an event that changes facts about the superstep or one of its calls."""
        kind, executor, data = event.type, event.source_id, event.data
        if kind == "superstep_completed":
            self.duration_s = event.duration_s
        elif kind == "checkpoint_saved":
            self.checkpoint_id = getattr(data, "checkpoint_id", None)
        elif isinstance(data, ToolReport) and executor in self.calls:
            self.calls[executor].progress = f"{data['tool_name']}: {data.get('message', data['status'])}"

    @property
    def all_calls(self) -> dict[str, ExecutorCall]:
        """The calls of all executors, including those in sub-workflows."""
        return self.calls if self.inside is None else {**self.calls, **self.inside.calls}

    def _call(self, executor: str, event: Event, place: int) -> ExecutorCall:
        if executor not in self.calls:
            order = place if event.order is None else event.order
            self.calls[executor] = ExecutorCall(self.number, executor, order)
        return self.calls[executor]

    def _end(self, call: ExecutorCall, event: Event) -> None:
        call.at_work -= 1
        call.attempts = max(call.attempts, event.attempt or 0)
        if event.worker is not None and event.worker not in call.workers:
            call.workers.append(event.worker)
        call.end_ns = event.time_ns
        call.status = "failed" if call.status == "failed" else _ENDS[event.type]
        if event.type == "executor_completed" and isinstance(event.data, list):
            call.results.extend(event.data)
        if event.details is not None:
            call.failure = event.details


@dataclass
class RunHistory:
    """A run, read from its handle, its result or its events."""

    run_id: str | None = None
    events: Sequence[Event] = ()
    infos: Sequence[CheckpointInfo] = ()
    status: str | None = None
    error: str | None = None
    open_requests: Mapping[str, str] | None = None
    """The requesting executors by request id, if known."""
    storage: CheckpointStorage | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status is not None and self.status not in _GOING

    @cached_property
    def numbers(self) -> list[int]:
        """The superstep of each event: its stamp, otherwise derived from the order of the events."""
        current = _number_before(self.events)
        found: list[int] = []
        for event in self.events:
            if event.type == "superstep_started" and event.iteration is not None:
                current = event.iteration
            number = event.superstep
            found.append(current if number is None else number)
        return found

    @cached_property
    def supersteps(self) -> list[Superstep]:
        """The supersteps by number, with calls in plan order, which is the same from run to run."""
        steps: dict[int, Superstep] = {}
        for place, (event, number) in enumerate(zip(self.events, self.numbers, strict=True)):
            if number not in steps:
                steps[number] = Superstep(number)
            steps[number].add(event, place)
        ordered = [steps[number] for number in sorted(steps)]
        state: Mapping[str, Any] = {}
        for step in ordered:
            for event in step.updates:
                state = _apply_changes(state, event.data)
            step.state = state
            for call in step.all_calls.values():
                self._set_status(call)
            step.calls = {c.executor: c for c in sorted(step.calls.values(), key=lambda c: (c.order, c.executor))}
        return ordered

    @property
    def calls(self) -> list[ExecutorCall]:
        """The calls of executors, superstep by superstep."""
        return [call for step in self.supersteps for call in step.calls.values()]

    @property
    def all_calls(self) -> list[ExecutorCall]:
        """The calls of executors, including those in sub-workflows, superstep by superstep."""
        return [call for step in self.supersteps for call in step.all_calls.values()]

    def _set_status(self, call: ExecutorCall) -> None:
        """Set the status of a call if it follows from the status of the run."""
        if call.status == "failed":
            return
        if call.at_work > 0:
            call.status = "cancelled" if self.is_over else "running"
        elif self.open_requests and any(event.request_id in self.open_requests for event in call.requests):
            call.status = "waiting"
        elif call.status == "running":  # a restored run emits its open requests again without calling the executor
            call.status = "completed"


def _apply_changes(state: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    new = {key: change.get("new") for key, change in changes.items()}
    return {key: value for key, value in {**state, **new}.items() if value is not ABSENT}


def _number_before(events: Sequence[Event]) -> int:
    """Return the superstep before the first numbered one: 0 for a new run, the last finished one for a resumed run."""
    for event in events:
        if event.type == "executor_invoked":
            return 0
        if event.type == "superstep_started":
            return max(0, (event.iteration or 0) - 1)
    return 0
