"""Pure: what each executor did in each superstep, and when, folded from the events of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench.workflows.events.events import WorkflowEvent

__all__ = ["Bar", "bars_of", "supersteps_of"]

Event = WorkflowEvent[Any]

_ENDS = {"executor_completed": "completed", "executor_failed": "failed", "executor_bypassed": "bypassed"}


@dataclass
class Bar:
    """One executor in one superstep.

    Attributes:
        superstep: 0 for the start executors.
        executor: Its id.
        order: Place of its first delivery in the plan, or of its first event where events have no plan order.
        start_ns: Time of the first call; `None` in runs that were not observed.
        end_ns: Time of the last end.
        status: `completed`, `failed`, `bypassed`, `running`, `cancelled`, or `waiting` for an answer.
        wait_ns: How long its requests waited for a person, `None` if none did or it is not over.
        messages_in: Calls of the executor, one per message or per list of a barrier.
        messages_out: Messages that it sent; a yield that is no output of the workflow counts as well.
        requests: Ids of its requests.
        error: The exception that it raised, as text.
    """

    superstep: int
    executor: str
    order: int
    start_ns: int | None = None
    end_ns: int | None = None
    status: str = "running"
    wait_ns: int | None = None
    messages_in: int = 0
    messages_out: int = 0
    requests: list[str] = field(default_factory=list)
    error: str = ""
    open_calls: int = 0

    @property
    def duration_ns(self) -> int | None:
        """From the first call to the last end."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns


def supersteps_of(events: Iterable[Event]) -> list[int]:
    """Return the superstep of each event: its stamp, else the one that follows from the order of the events."""
    emitted = list(events)
    current = _superstep_before(emitted)
    found: list[int] = []
    for event in emitted:
        if event.type == "superstep_started" and event.iteration is not None:
            current = event.iteration
        found.append(current if event.superstep is None else event.superstep)
    return found


def _superstep_before(events: Sequence[Event]) -> int:
    """The superstep before the first numbered one: 0 where a run begins, the last finished one where it goes on."""
    for event in events:
        if event.type == "executor_invoked":
            return 0
        if event.type == "superstep_started":
            return max(0, (event.iteration or 0) - 1)
    return 0


def bars_of(
    events: Sequence[Event],
    *,
    over: bool,
    answered_ns: Mapping[str, int] | None = None,
    open_requests: frozenset[str] | None = None,
) -> list[Bar]:
    """Fold events into bars.

    Args:
        events: In order of emission.
        over: Whether the run has ended, so that a call without an end was cancelled.
        answered_ns: When requests were answered, where that is known.
        open_requests: Requests that still wait; `None` if that is not known.

    Returns:
        Bars by superstep, then by place in the plan; equal from run to run where events have a plan order.
    """
    bars: dict[tuple[int, str], Bar] = {}
    for place, (event, superstep) in enumerate(zip(events, supersteps_of(events), strict=True)):
        executor = event.source_id
        if executor is None:
            continue
        if event.type == "executor_invoked" or event.type in _ENDS or event.type == "request_info":
            key = (superstep, executor)
            if key not in bars:
                bars[key] = Bar(superstep, executor, place if event.order is None else event.order)
        bar = bars.get((superstep, executor))
        if bar is not None:
            _take(bar, event)
    asked_at = _request_times(events)
    for bar in bars.values():
        _settle(bar, over, asked_at, answered_ns or {}, open_requests)
    return sorted(bars.values(), key=lambda bar: (bar.superstep, bar.order, bar.executor))


def _take(bar: Bar, event: Event) -> None:
    kind, at = event.type, event.time_ns
    if kind == "executor_invoked":
        bar.messages_in += 1
        bar.open_calls += 1
        if bar.start_ns is None:
            bar.start_ns = at
    elif kind in _ENDS:
        bar.open_calls -= 1
        bar.end_ns = at
        bar.status = _ENDS[kind] if bar.status != "failed" else "failed"
        if kind == "executor_completed" and isinstance(event.data, list):
            bar.messages_out += len(event.data)
        if event.details is not None:
            bar.error = f"{event.details.error_type}: {event.details.message}"
    elif kind in ("output", "intermediate", "data"):
        # A completed call lists what it sent and what it yielded; only the former are messages.
        bar.messages_out -= 1
    elif kind == "request_info":
        bar.requests.append(event.request_id)


def _settle(
    bar: Bar,
    over: bool,
    asked_at: Mapping[str, int],
    answered: Mapping[str, int],
    open_requests: frozenset[str] | None,
) -> None:
    bar.messages_out = max(0, bar.messages_out)
    if bar.open_calls > 0 and bar.status != "failed":
        bar.status = "cancelled" if over else "running"
    elif bar.status == "completed" and open_requests is not None and open_requests.intersection(bar.requests):
        bar.status = "waiting"
    waits = [answered[each] - asked_at[each] for each in bar.requests if each in answered and each in asked_at]
    bar.wait_ns = max(waits) if waits else None


def _request_times(events: Iterable[Event]) -> dict[str, int]:
    times = {event.request_id: event.time_ns for event in events if event.type == "request_info"}
    return {request_id: at for request_id, at in times.items() if at is not None}
