"""The event log of a run: its events in order, stored as compactly as possible until they are read.

The plain log stores the most frequent events (statuses, supersteps, handlers) as two or three references in one flat
list, and builds `WorkflowEvent` objects only for a reader. An observed log stamps each event when it is emitted.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._clock import Clock
from agentbench._copying import SHARED_TYPES, isolate_or_same
from agentbench.workflows.events.events import (
    EventStamps,
    SuperstepCompletionInfo,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowRunState,
)

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.workflows.engine.carried_over import CarriedOver
    from agentbench.workflows.executors.message import Delivery, WorkflowMessage

# Heads of compact records, each with the values that follow it in the flat list.
_SUPERSTEP_STARTED = 0  # its number
_SUPERSTEP_COMPLETED = 1  # its number
_RUN_STARTED = 2  # None
_STATUS = 3  # state of the run
_INVOKED = 4  # executor id, input
_COMPLETED = 5  # executor id, list of results or None
_COMPLETED_ONE = 6  # executor id, the only result
_SUPERSTEP_SAVED = 7  # its number, what was pending and saved

# The functions that build the events, by head.
_SHORT: tuple[Callable[[Any], WorkflowEvent[Any]], ...] = (
    WorkflowEvent.superstep_started,
    WorkflowEvent.superstep_completed,
    lambda _: WorkflowEvent.started(),
    WorkflowEvent.status,
)
_LONG: tuple[Callable[[Any, Any], WorkflowEvent[Any]], ...] = (
    WorkflowEvent.executor_invoked,
    WorkflowEvent.executor_completed,
    lambda executor_id, result: WorkflowEvent.executor_completed(executor_id, [result]),
    WorkflowEvent.superstep_completed,
)

_BRIEF = frozenset({"superstep_started", "superstep_completed", "executor_invoked", "executor_completed"})


class EventLog:
    """Events of one run in the order of emission, with a cursor for one live reader.

    Attributes:
        outputs: the `output` events.
        warned: keys of the warnings that were already emitted.
        carried_over: what the run inherited from earlier runs of its workflow; None for a run that began empty.
        state: the last reported run state, None before the first one.
    """

    observed = False
    """True if events carry stamps and observation events are emitted."""

    def __init__(self) -> None:
        self._records: list[Any] = []
        self._cursor = 0
        self._sifted = 0
        self._waiter: asyncio.Future[None] | None = None
        self.outputs: list[WorkflowEvent[Any]] = []
        self.checkpoints: list[CheckpointInfo] = []
        self.warned: frozenset[object] = frozenset()
        self.carried_over: CarriedOver | None = None
        self.state: WorkflowRunState | None = None

    # ---- writing ---------------------------------------------------------------------------------

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Add a complete event; `delivery` is the one that emitted it, if any."""
        self._records.append(event)
        if event.type == "output":
            self.outputs.append(event)
        if self._waiter is not None:
            self.wake()

    def warn_once(self, about: object, executor_id: str, text: str, delivery: Delivery | None = None) -> bool:
        """Add a warning unless there is already one with the same key; return whether it was added."""
        if about in self.warned:
            return False
        self.warned |= {about}
        self.append(WorkflowEvent.warning(text, executor_id), delivery)
        return True

    def begin(self, superstep: int) -> None:
        """Record that the run starts, or continues after this superstep."""
        self._records += (_RUN_STARTED, None)
        self.status(WorkflowRunState.IN_PROGRESS)

    def set_superstep(self, superstep: int) -> None:
        """Set the last superstep, for stamps."""

    def superstep_started(self, superstep: int) -> None:
        """Record that superstep `superstep` begins."""
        self._records += (_SUPERSTEP_STARTED, superstep)
        if self._waiter is not None:
            self.wake()

    def superstep_completed(self, superstep: int, info: SuperstepCompletionInfo | None) -> None:
        """Record that superstep `superstep` is complete."""
        if info is None:
            self._records += (_SUPERSTEP_COMPLETED, superstep)
        else:
            self._records += (_SUPERSTEP_SAVED, superstep, info)
        if self._waiter is not None:
            self.wake()

    def record_invoked(self, delivery: Delivery) -> None:
        """Record that a handler is about to start. Its input is copied, since the handler may change it."""
        self._records += (_INVOKED, delivery.executor_id, _copy(delivery.data))
        if self._waiter is not None:
            self.wake()

    def record_completed(self, delivery: Delivery, sent: Sequence[WorkflowMessage], yielded: Sequence[Any]) -> None:
        """Record that a handler succeeded."""
        if not yielded and len(sent) == 1:
            self._records += (_COMPLETED_ONE, delivery.executor_id, sent[0].data)
        elif not sent and len(yielded) == 1:
            self._records += (_COMPLETED_ONE, delivery.executor_id, _copy(yielded[0]))
        else:
            self._records += (_COMPLETED, delivery.executor_id, _results(sent, yielded))
        if self._waiter is not None:
            self.wake()

    def record_failed(self, delivery: Delivery, details: WorkflowErrorDetails) -> None:
        """Record that a handler raised."""
        self.append(WorkflowEvent.executor_failed(delivery.executor_id, details), delivery)

    def append_end(self, event: WorkflowEvent[Any], began_ns: int) -> None:
        """Add the event for the end of something that began at a time of the run's clock."""
        self.append(event)

    def status(self, state: WorkflowRunState) -> None:
        """Record a new status of the run."""
        self.state = state
        self._records += (_STATUS, state)
        if self._waiter is not None:
            self.wake()

    # ---- reading ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._cursor + sum(1 for _ in self._walk(self._cursor))  # a record that was read is one event

    def events_from(self, number: int) -> list[WorkflowEvent[Any]]:
        """Return every event from this number on, counted from 0; costs only these and the unread ones."""
        taken = min(number, self._cursor)
        return list(itertools.islice(self._walk(taken), number - taken, None))

    def events(self, since: int = 0) -> list[WorkflowEvent[Any]]:
        """Return every stored event, or those since a `position`."""
        return list(self._walk(min(since, len(self._records))))

    @property
    def position(self) -> int:
        """The position of the next event; valid for `events()` as long as everything before it has been read."""
        return len(self._records)

    @property
    def has_unread(self) -> bool:
        """Whether there are events that `take()` has not returned yet."""
        return self._cursor < len(self._records)

    def take(self) -> list[WorkflowEvent[Any]]:
        """Return the events since the last call, for the live reader."""
        unread = len(self._records) - self._cursor
        if unread <= 0:
            return []
        if unread == 1:  # a complete event, because compact records take at least two places
            self._cursor += 1
            return self._records[-1:]
        taken = list(self._walk(self._cursor))
        # The reader's objects replace the compact records, so that each event has one identity.
        self._records[self._cursor :] = taken
        self._cursor = len(self._records)
        return taken

    def drop_brief(self) -> None:
        """Drop supersteps and handlers from the read events; outputs, requests, warnings and states stay."""
        self._records[self._sifted :] = [e for e in self._walk(self._sifted) if e.type not in _BRIEF]
        self._cursor = self._sifted = len(self._records)

    def _walk(self, start: int) -> Iterator[WorkflowEvent[Any]]:
        records, i, end = self._records, start, len(self._records)
        while i < end:
            head = records[i]
            if head.__class__ is not int:
                yield head
                i += 1
            elif head <= _STATUS:
                yield _SHORT[head](records[i + 1])
                i += 2
            else:
                yield _LONG[head - _INVOKED](records[i + 1], records[i + 2])
                i += 3

    # ---- waiting ---------------------------------------------------------------------------------

    def next_change(self) -> asyncio.Future[None]:
        """Return a future that is done at the next event (or `wake()`); for one reader at a time."""
        loop = asyncio.get_running_loop()
        if self._waiter is None or self._waiter.get_loop() is not loop:
            self._waiter = loop.create_future()
        return self._waiter

    def waker(self) -> Callable[[object], None]:
        """Return a callback that calls `wake`, and does not keep the events alive until the event loop drops it."""
        reference = weakref.ref(self)

        def wake(_: object) -> None:
            log = reference()
            if log is not None:
                log.wake()

        return wake

    def wake(self) -> None:
        """Wake up the waiting reader, if there is one."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            try:  # noqa: SIM105 - once per event, for which suppress() is too slow
                waiter.set_result(None)
            except RuntimeError:  # the reader's event loop was closed
                pass


def _copy(value: Any) -> Any:
    return value if value.__class__ in SHARED_TYPES else isolate_or_same(value)


def _results(sent: Sequence[WorkflowMessage], yielded: Sequence[Any]) -> list[Any] | None:
    return [*(m.data for m in sent), *map(_copy, yielded)] or None


class ObservedEventLog(EventLog):
    """A log whose events carry stamps: place, time, delivery, duration."""

    observed = True

    def __init__(self, run_id: str, clock: Clock) -> None:
        super().__init__()
        self._run_id = run_id
        self._clock = clock
        self._seq = 0
        self._run_began = self._step_began = clock.perf_ns()
        self.superstep = 0

    def events(self, since: int = 0) -> list[WorkflowEvent[Any]]:
        """Return every stored event, or those since a `position`, as one copy, because views read them often."""
        return self._records[since:]

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Add a complete event and stamp it."""
        self._stamp(event, delivery)
        super().append(event, delivery)

    def begin(self, superstep: int) -> None:
        """Record that the run starts, or continues after this superstep."""
        self.superstep = superstep
        self.append(WorkflowEvent.started())
        self.status(WorkflowRunState.IN_PROGRESS)

    def set_superstep(self, superstep: int) -> None:
        """Set the last superstep; events before the next one are stamped with it."""
        self.superstep = superstep

    def superstep_started(self, superstep: int) -> None:
        """Record that superstep `superstep` begins."""
        self.superstep = superstep
        self._step_began = self._clock.perf_ns()
        self.append(WorkflowEvent.superstep_started(superstep))

    def superstep_completed(self, superstep: int, info: SuperstepCompletionInfo | None) -> None:
        """Record that superstep `superstep` is complete."""
        self.append(WorkflowEvent.superstep_completed(superstep, info))
        self._set_duration(self._step_began)

    def record_invoked(self, delivery: Delivery) -> None:
        """Record that a handler is about to start."""
        delivery.began_ns = self._clock.perf_ns()
        self.append(WorkflowEvent.executor_invoked(delivery.executor_id, _copy(delivery.data)), delivery)

    def record_completed(self, delivery: Delivery, sent: Sequence[WorkflowMessage], yielded: Sequence[Any]) -> None:
        """Record that a handler succeeded."""
        self.append(WorkflowEvent.executor_completed(delivery.executor_id, _results(sent, yielded)), delivery)
        self._set_duration(delivery.began_ns)

    def record_failed(self, delivery: Delivery, details: WorkflowErrorDetails) -> None:
        """Record that a handler raised."""
        super().record_failed(delivery, details)
        self._set_duration(delivery.began_ns)

    def append_end(self, event: WorkflowEvent[Any], began_ns: int) -> None:
        """Add the event for the end of something that began at a time of the run's clock."""
        self.append(event)
        self._set_duration(began_ns)

    def status(self, state: WorkflowRunState) -> None:
        """Record a new status; the first one starts the run's time, final ones carry the elapsed time."""
        self.state = state
        self.append(WorkflowEvent.status(state))
        if state is WorkflowRunState.IN_PROGRESS:
            self._run_began = self._clock.perf_ns()
        elif state is not WorkflowRunState.IN_PROGRESS_PENDING_REQUESTS:
            self._set_duration(self._run_began)

    def _stamp(self, event: WorkflowEvent[Any], delivery: Delivery | None) -> None:
        self._seq += 1
        stamps = EventStamps(self._seq, self._run_id, self.superstep, self._clock.time_ns())
        if delivery is not None:
            stamps.task_id, stamps.order = delivery.task_id, delivery.order
            stamps.span_id, stamps.parent_span_id = delivery.span_id, delivery.parent_span_id
            stamps.attempt, stamps.worker = delivery.attempt, delivery.worker
        event._stamps = stamps  # noqa: SLF001 - the log is the one place that stamps

    def _set_duration(self, began_ns: int) -> None:
        stamps = self._records[-1]._stamps  # noqa: SLF001 - as above
        stamps.duration_s = (self._clock.perf_ns() - began_ns) / 1e9


def new_log(run_id: str, clock: Clock, *, observe: bool) -> EventLog:
    """Create the log of a run, observed or plain."""
    return ObservedEventLog(run_id, clock) if observe else EventLog()
