"""What happened in a run, in lines that a person reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agentbench.notebook.history.log import LogLine, lines_of_event, lines_of_report
from agentbench.notebook.history.usage import tokens_of
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.report import StepReport


def report(superstep: int, *events: Any) -> StepReport:
    return StepReport(superstep, list(events), None)


def invoked(executor: str) -> Any:
    return WorkflowEvent.executor_invoked(executor)


def test_a_superstep_is_described_as_who_got_what_and_what_came_of_it() -> None:
    request = WorkflowEvent.request_info("q", "review", "ok?", bool)
    lines = lines_of_report(report(4, invoked("review"), invoked("review"), invoked("plan"), request))
    assert lines == [
        LogLine("step", "superstep 4: review got 2 messages, plan got 1 message; 1 request opened"),
    ]


def test_outputs_are_previewed_in_one_line_with_secrets_masked() -> None:
    output = WorkflowEvent("output", {"text": "a\nb", "api_key": "sk-1"}, executor_id="write")
    [_, line] = lines_of_report(report(1, output))
    assert line.text.startswith("output of write: ")
    assert "sk-1" not in line.text
    assert "\n" not in line.text


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


def test_tokens_of_a_turn_are_counted() -> None:
    for data, tokens in [
        ({"usage": {"total_token_count": 12}}, 12),
        ({"usage": SimpleNamespace(input_token_count=5, output_token_count=3)}, 8),
        ({"usage": {}}, 0),
        ("something else", 0),
    ]:
        assert tokens_of(WorkflowEvent("model_usage", data)) == tokens
