"""What happened in a run, in lines that a person reads."""

from __future__ import annotations

from agentbench import WorkflowEvent
from agentbench.notebook.history.log import lines_of_event


def test_events_in_flight_become_lines() -> None:
    for event, lines in [
        (WorkflowEvent("log", "one\n\ntwo\n", executor_id="plan"), [("text", "plan: one"), ("text", "plan: two")]),
        (WorkflowEvent.warning("no handler"), [("warning", "no handler")]),
        (WorkflowEvent.error(ValueError("odd")), [("error", "ValueError: odd")]),
        (
            WorkflowEvent(
                "message_dropped", {"reason": "no outgoing edge", "source": "plan", "target": None, "type": "str"}
            ),
            [("warning", "a message of plan was dropped: the executor has no outgoing edge (str)")],
        ),
        (WorkflowEvent.executor_invoked("plan"), []),
    ]:
        assert [(line.kind, line.text) for line in lines_of_event(event)] == lines


def test_long_and_odd_texts_are_cut_and_spelled() -> None:
    [line] = lines_of_event(WorkflowEvent.warning("\u202e" + "x" * 10_000))
    assert len(line.text) < 600
    assert line.text.startswith("\\u202e")
