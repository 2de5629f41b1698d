"""What a run did, read once: its supersteps, and in each of them what every executor did.

Frames, plots, cards and panels display parts of this. Only `Superstep.add` knows what the events of a run mean: a new
kind of event is read there, and every view has it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent
from agentbench.workflows.executors.state import ABSENT

__all__ = ["BEGINNINGS", "Event", "ExecutorCall", "RunHistory", "Superstep", "is_visit", "opened"]

Event = WorkflowEvent[Any]

#: Types of the events of which a superstep has one at least.
BEGINNINGS = ("superstep_started", "executor_invoked")

_ENDS = {"executor_completed": "completed", "executor_failed": "failed", "executor_bypassed": "bypassed"}
# The list of a superstep that an event belongs to.
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
# States of a run that goes on; in any other, a call without an end was cancelled.
_GOING = frozenset({"STARTED", "IN_PROGRESS", "IN_PROGRESS_PENDING_REQUESTS"})


def is_visit(message: object) -> bool:
    """Whether a message makes its executor act; an agent of a team only takes in what the others say."""
    return getattr(message, "should_respond", True) is not False


def opened(event: Event) -> Event:
    """Return an event; of one in a sub-workflow the one inside, with `outer/inner` as its executor, as in graphs."""
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
    """What one executor did in one superstep, for all messages that it got there; times in runs that were observed."""

    superstep: int
    executor: str
    order: int = 0  # place of its first delivery in the plan, or of its first event
    start_ns: int | None = None
    end_ns: int | None = None
    status: str = "running"  # or `completed`, `failed`, `bypassed`, `cancelled`, `waiting` for an answer
    wait_ns: int | None = None  # how long its requests waited for a person, once that is over
    messages: list[Any] = field(default_factory=list)  # that it got; the list of a barrier is one
    at_work: int = 0  # how many messages it has not finished
    results: list[Any] = field(default_factory=list)  # what it sent and yielded
    outputs: list[Any] = field(default_factory=list)  # those of the results that became outputs of the workflow
    knows_outputs: bool = True  # checkpoints record what was sent, and not what was yielded
    requests: list[Any] = field(default_factory=list)  # its `request_info` events
    failure: WorkflowErrorDetails | None = None  # the exception that it raised
    attempts: int = 0  # how often it was tried, where it may be tried again

    @property
    def messages_in(self) -> int:
        """How many messages it got."""
        return len(self.messages)

    @property
    def error(self) -> str:
        """The exception that it raised, as text."""
        return "" if self.failure is None else f"{self.failure.error_type}: {self.failure.message}"

    @property
    def duration_ns(self) -> int | None:
        """From the first message to the last end."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def messages_out(self) -> int:
        """How many messages it sent; a yield that is no output of the workflow counts as well."""
        return max(0, len(self.results) - len(self.outputs))


@dataclass(slots=True)
class Superstep:
    """One superstep, 0 for the one of the start executors: what each executor did, by its id, and its other events."""

    number: int
    calls: dict[str, ExecutorCall] = field(default_factory=dict)
    outputs: list[Event] = field(default_factory=list)
    warnings: list[Event] = field(default_factory=list)
    usages: list[Event] = field(default_factory=list)
    updates: list[Event] = field(default_factory=list)
    routes: list[Event] = field(default_factory=list)
    duration_s: float | None = None
    checkpoint_id: str | None = None  # of the one that was saved after it
    state: Mapping[str, Any] = field(default_factory=dict)  # after it
    inside: Superstep | None = None  # what happened in its sub-workflows, by ids such as `outer/inner`
    has_begun: bool = False  # events of a start or a restore have the number of the superstep before

    def add(self, event: Event, place: int = 0) -> None:
        """Read one event of the superstep; `place` orders the executors where the event has no plan order."""
        kind, executor = event.type, event.source_id
        self.has_begun = self.has_begun or kind in BEGINNINGS
        if kind == "sub_workflow":
            self.inside = self.inside or Superstep(self.number)
            self.inside.add(inner := opened(event), place)
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
        elif kind == "superstep_completed":
            self.duration_s = event.duration_s
        elif kind == "checkpoint_saved":
            self.checkpoint_id = getattr(event.data, "checkpoint_id", None)

    @property
    def all_calls(self) -> dict[str, ExecutorCall]:
        """What each executor did, also those in sub-workflows."""
        return self.calls if self.inside is None else {**self.calls, **self.inside.calls}

    def _call(self, executor: str, event: Event, place: int) -> ExecutorCall:
        if executor not in self.calls:
            order = place if event.order is None else event.order
            self.calls[executor] = ExecutorCall(self.number, executor, order)
        return self.calls[executor]

    def _end(self, call: ExecutorCall, event: Event) -> None:
        call.at_work -= 1
        call.attempts = max(call.attempts, event.attempt or 0)
        call.end_ns = event.time_ns
        call.status = "failed" if call.status == "failed" else _ENDS[event.type]
        if event.type == "executor_completed" and isinstance(event.data, list):
            call.results.extend(event.data)
        if event.details is not None:
            call.failure = event.details


@dataclass
class RunHistory:
    """A run, as its handle, its result or its events record it."""

    run_id: str | None = None
    events: Sequence[Event] = ()
    infos: Sequence[CheckpointInfo] = ()
    status: str | None = None
    error: str | None = None
    open_requests: Mapping[str, str] | None = None  # the executors that asked, by request id, if known
    storage: CheckpointStorage | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing goes on in it any more."""
        return self.status is not None and self.status not in _GOING

    @cached_property
    def numbers(self) -> list[int]:
        """The superstep of each event: its stamp, else the one that follows from the order of the events."""
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
        """Its supersteps by number; the calls of each are in plan order, equal from run to run."""
        steps: dict[int, Superstep] = {}
        for place, (event, number) in enumerate(zip(self.events, self.numbers, strict=True)):
            if number not in steps:
                steps[number] = Superstep(number)
            steps[number].add(event, place)
        ordered = [steps[number] for number in sorted(steps)]
        state: Mapping[str, Any] = {}
        for step in ordered:
            for event in step.updates:
                state = _updated(state, event.data)
            step.state = state
            for call in step.all_calls.values():
                self._settle(call)
            step.calls = {c.executor: c for c in sorted(step.calls.values(), key=lambda c: (c.order, c.executor))}
        return ordered

    @property
    def calls(self) -> list[ExecutorCall]:
        """What its executors did, superstep by superstep."""
        return [call for step in self.supersteps for call in step.calls.values()]

    @property
    def all_calls(self) -> list[ExecutorCall]:
        """What its executors did, and those in sub-workflows, superstep by superstep."""
        return [call for step in self.supersteps for call in step.all_calls.values()]

    def _settle(self, call: ExecutorCall) -> None:
        """Set the status of a call, as far as it follows from that of the run."""
        if call.status == "failed":
            return
        if call.at_work > 0:
            call.status = "cancelled" if self.is_over else "running"
        elif self.open_requests and any(event.request_id in self.open_requests for event in call.requests):
            call.status = "waiting"
        elif call.status == "running":  # a restored run emits its pending requests again, and calls nothing for it
            call.status = "completed"


def _updated(state: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    new = {key: change.get("new") for key, change in changes.items()}
    return {key: value for key, value in {**state, **new}.items() if value is not ABSENT}


def _number_before(events: Sequence[Event]) -> int:
    """The superstep before the first numbered one: 0 where a run begins, the last finished one where it goes on."""
    for event in events:
        if event.type == "executor_invoked":
            return 0
        if event.type == "superstep_started":
            return max(0, (event.iteration or 0) - 1)
    return 0
