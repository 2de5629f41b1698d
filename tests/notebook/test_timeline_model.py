from __future__ import annotations

from typing import Any

from agentbench import WorkflowErrorDetails, WorkflowEvent
from agentbench.notebook.timeline_model import Bar, bars_of, supersteps_of
from agentbench.workflows.events.events import EventStamps


def stamped(event: WorkflowEvent[Any], superstep: int, time_ns: int, order: int | None = None) -> WorkflowEvent[Any]:
    event._stamps = EventStamps(time_ns, "run-1", superstep, time_ns)
    event._stamps.order = order
    return event


def invoked(executor: str, superstep: int, at: int, order: int = 0) -> WorkflowEvent[Any]:
    return stamped(WorkflowEvent.executor_invoked(executor, "in"), superstep, at, order)


def completed(executor: str, superstep: int, at: int, data: Any = None) -> WorkflowEvent[Any]:
    return stamped(WorkflowEvent.executor_completed(executor, data), superstep, at, 0)


def one(events: list[WorkflowEvent[Any]], **more: Any) -> Bar:
    (bar,) = bars_of(events, **{"over": True, **more})
    return bar


def test_a_bar_spans_all_calls_of_an_executor_in_a_superstep():
    bar = one(
        [invoked("a", 1, 10), completed("a", 1, 14, ["x"]), invoked("a", 1, 16), completed("a", 1, 19, ["y", "z"])]
    )
    assert (bar.start_ns, bar.end_ns, bar.duration_ns) == (10, 19, 9)
    assert (bar.messages_in, bar.messages_out, bar.status) == (2, 3, "completed")


def test_a_failure_of_one_call_makes_the_bar_failed():
    details = WorkflowErrorDetails("ValueError", "broken")
    failed = stamped(WorkflowEvent.executor_failed("a", details), 1, 12)
    bar = one([invoked("a", 1, 10), invoked("a", 1, 10), failed, completed("a", 1, 13)])
    assert (bar.status, bar.error) == ("failed", "ValueError: broken")


def test_a_question_waits_until_it_is_answered():
    asked = stamped(WorkflowEvent.request_info("r", "a", "ok?", bool), 1, 12)
    events = [invoked("a", 1, 10), asked, completed("a", 1, 14)]
    assert one(events, open_requests=frozenset({"r"})).status == "waiting"
    assert one(events, open_requests=frozenset()).status == "completed"
    assert one(events, answered_ns={"r": 20}).wait_ns == 8
    assert one(events).wait_ns is None


def test_unstamped_events_are_placed_by_the_supersteps_around_them():
    start, ended = WorkflowEvent.superstep_started, WorkflowEvent.superstep_completed
    fresh = [WorkflowEvent.executor_invoked("a"), start(1), WorkflowEvent.executor_invoked("b"), ended(1), start(2)]
    assert supersteps_of(fresh) == [0, 1, 1, 1, 2]
    continued = [WorkflowEvent.warning("w"), start(4), WorkflowEvent.executor_invoked("b")]
    assert supersteps_of(continued) == [3, 4, 4]
    assert supersteps_of([WorkflowEvent.warning("w")]) == [0]
    assert supersteps_of([]) == []
