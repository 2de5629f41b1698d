"""What executors and edges are doing, folded from events."""

from __future__ import annotations

from typing import Any

from agentbench import PlannedDelivery, WorkflowErrorDetails, WorkflowEvent
from agentbench.notebook.history.activity import Activity

EDGES = [("plan", "search"), ("plan", "review"), ("search", "review")]


def activity() -> Activity:
    return Activity(("plan", "search", "review"), EDGES)


def delivery(source: str, target: str) -> PlannedDelivery:
    return PlannedDelivery(source, target, "x", 0, (source,))


def invoked(executor: str) -> Any:
    return WorkflowEvent.executor_invoked(executor)


def completed(executor: str) -> Any:
    return WorkflowEvent.executor_completed(executor)


def failed(executor: str) -> Any:
    return WorkflowEvent.executor_failed(executor, WorkflowErrorDetails("ValueError", "no"))


def test_an_executor_is_running_until_all_its_deliveries_have_ended() -> None:
    fold = activity()
    fold.begin()
    fold.see(invoked("plan"))
    fold.see(invoked("plan"))
    fold.see(completed("plan"))
    assert (fold.states(), fold.running) == ({"plan": "running"}, ("plan",))
    fold.see(completed("plan"))
    assert (fold.states(), fold.running) == ({"plan": "done"}, ())


def test_an_executor_that_asks_waits_until_it_is_answered() -> None:
    fold = activity()
    fold.begin()
    fold.see(invoked("review"))
    fold.see(WorkflowEvent.request_info("q", "review", "ok?", bool))
    fold.see(completed("review"))
    assert fold.states() == {"review": "waiting"}
    fold.rest([], ["review"])
    fold.begin()
    assert fold.states() == {"review": "waiting"}
    fold.rest([], [])
    assert fold.states() == {}


def test_a_target_that_a_condition_did_not_choose_is_skipped_unless_it_is_reached_otherwise() -> None:
    fold = activity()
    fold.begin()
    fold.see(WorkflowEvent("graph_routed", {"from": "plan", "condition": "if long", "result": False, "targets": []}))
    fold.see(invoked("review"))
    fold.see(completed("review"))
    assert fold.states() == {"search": "skipped", "review": "done"}
    fold.begin()
    fold.see(WorkflowEvent("graph_routed", {"from": "plan", "condition": "kind", "targets": ["search"]}))
    fold.see(invoked("search"))
    assert fold.states() == {"search": "running", "review": "skipped"}


def test_visits_are_counted_over_all_supersteps_and_have_a_badge_from_the_second_on() -> None:
    fold = activity()
    for _ in range(3):
        fold.begin()
        fold.see(invoked("search"))
    fold.see(invoked("plan"))
    assert fold.badges() == {"search": "3 visits"}


def test_a_whole_picture_names_every_element() -> None:
    assert set(activity().whole({"plan": "done"}).items()) == {
        ("plan", "done"),
        ("search", "idle"),
        ("review", "idle"),
        *((edge, "idle") for edge in EDGES),
    }
