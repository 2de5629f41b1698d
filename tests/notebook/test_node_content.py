"""What the Node tab says of one executor."""

from __future__ import annotations

from typing import Any

from agentbench import PlannedDelivery, StepReport, WorkflowEvent
from agentbench.notebook.graph.shape import GraphShape, ShapeNode
from agentbench.notebook.history.activity import Activity
from agentbench.notebook.stepping.model.messages import RunFacts, StepEnded
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.node_tab import node_entries, node_facts
from agentbench.workflows.events.events import EventStamps

SHAPE = GraphShape(
    nodes=(ShapeNode(id="plan", name="plan", kinds=("start",), type_name="Plan"), ShapeNode(id="review", name="review"))
)


class Draft:
    pass


def stepped(*supersteps: list[Any]) -> StepperModel:
    """A run whose supersteps had these events; the last one left a message for `review`."""
    made = StepperModel("flow", Activity(["plan", "review"], [("plan", "review")]))
    planned = (PlannedDelivery("plan", "review", "hello", 0, ("plan",)),)
    made.start(RunFacts(run_id="run-1", planned=planned))
    for number, events in enumerate(supersteps):
        made.step(confirmed=True)
        for event in events:
            if event._stamps is not None:
                event._stamps.superstep = number
            made.see(event)
        told = RunFacts(run_id="run-1", status="IN_PROGRESS", superstep=number, planned=planned)
        made.end_step(StepEnded(StepReport(number, events, None), told))
    return made


def call(executor: str, message: object, *sent: object, took_s: float = 0.412) -> list[Any]:
    completed = WorkflowEvent.executor_completed(executor, list(sent))
    completed._stamps = EventStamps(1, "run-1", 0, 0)
    completed._stamps.duration_s = took_s
    return [WorkflowEvent.executor_invoked(executor, message), completed]


def attempt(event: WorkflowEvent[Any], number: int) -> WorkflowEvent[Any]:
    event._stamps = EventStamps(1, "run-1", 0, 0, attempt=number)
    return event


def facts(model: StepperModel, executor: str = "plan", *, times: bool = True) -> dict[str, str]:
    return dict(node_facts(model, SHAPE, executor, times=times))


def test_a_node_that_never_ran_says_so_in_few_lines() -> None:
    assert facts(stepped(), "review") == {
        "kind": "executor",
        "now": "queued",
        "visits": "0",
        "in": "—",
        "out": "—",
        "state keys written": "—",
    }


def test_what_came_in_and_went_out_is_that_of_the_last_superstep() -> None:
    told = facts(stepped(call("plan", "a", 1), [*call("plan", Draft(), "x", "y", 3), *call("plan", "b")]))
    assert told["visits"] == "3, the last in superstep 1"
    assert told["in"] == "2 messages (Draft, str)"
    assert told["out"] == "3 messages (str, int)"
    assert told["kind"] == "Plan (start)"


def test_the_values_behind_the_lines_can_be_opened() -> None:
    entries = {each.name: each for each in node_entries(stepped(call("plan", "a", 7)), "plan")}
    assert {name: each.value for name, each in entries.items()} == {"last input": "a", "last sent": [7]}
    assert entries["last input"].note == "superstep 0"
    assert [each.value for each in node_entries(stepped(), "review")] == [["hello"]]


def test_attempts_and_warnings_of_a_node_are_displayed() -> None:
    failed = attempt(WorkflowEvent.warning("attempt 1 of 3 failed", "plan"), 1)
    completed = attempt(WorkflowEvent.executor_completed("plan"), 2)
    model = stepped([WorkflowEvent.executor_invoked("plan", "x"), failed, completed])
    assert facts(model)["attempts"] == "2"
    assert [entry.value for entry in node_entries(model, "plan") if entry.name == "last warning"] == [failed.data]
    assert "attempts" not in facts(stepped(call("plan", "x")))
