"""The displays of workflows, runs, results, superstep reports and events. Displaying never runs anything."""

from collections.abc import Iterable, Sequence
from typing import Any

from agentbench._text.phrases import count_text, state_text
from agentbench._text.redact import line_preview
from agentbench.exceptions import AgentFrameworkException
from agentbench.notebook.cells.workbench import older_code
from agentbench.notebook.graph.view import draw
from agentbench.notebook.history.log import (
    WARNING_LIMIT,
    failure_rows,
    output_rows,
    request_rows,
    superstep_rows,
    warning_rows,
)
from agentbench.notebook.history.run_history import RunHistory
from agentbench.notebook.look.html import Markup, Page, Table, image
from agentbench.notebook.look.states import STATES
from agentbench.workflows.events.events import count_unanswered

Bundle = dict[str, Any]

_LOOK_OF = {"finished": "done", "waiting for an answer": "waiting", "cancelled": "skipped"}
_SUPERSTEP_HEAD = ("superstep", "executors", "results", "time")


def workflow_bundle(workflow: Any) -> Bundle:
    """Return the view of a workflow: its graph."""
    return draw(workflow, direction="auto")._repr_mimebundle_()


def result_bundle(result: Any) -> Bundle:
    """Return the view of a result: state, outputs, failures, requests and supersteps."""
    events = list(result)
    timeline = result.status_timeline()
    state = state_text(timeline[-1].state, count_unanswered(events)) if timeline else ""
    facts = [count_text(len(events), "event")]
    if result.checkpoints:
        facts.append(count_text(len(result.checkpoints), "checkpoint"))
    requests = [event for event in events if event.type == "request_info"]
    return _page("WorkflowRunResult", state, facts, _run_tables(events, requests)).bundle()


def run_bundle(run: Any) -> Bundle:
    """Return the view of a run: the same as of a result, below a picture of its current state."""
    events = run.events
    state = "paused" if getattr(run, "paused", False) else state_text(run.status, count_unanswered(events))
    facts = [
        str(run.run_id),
        f"superstep {run.superstep}",
        count_text(len(run.pending_messages), "message") + " queued",
        count_text(len(run.checkpoints), "checkpoint"),
    ]
    if older := older_code(run):
        facts.append(f"older code: {', '.join(older)}")
    try:
        view = draw(run, direction="auto")
        picture = image(view.svg, view.text)
    except (AgentFrameworkException, TypeError):
        picture = None
    return _page("WorkflowRun", state, facts, _run_tables(events, run.pending_requests), picture=picture).bundle()


def report_bundle(report: Any) -> Bundle:
    """Return the view of a superstep's report."""
    facts = [f"superstep {report.superstep}", count_text(len(report.events), "event")]
    if report.pause_reason is not None:
        facts.append(f"paused: {report.pause_reason}")
    tables = _run_tables(report.events, report.requests)
    return _page("StepReport", state_text(report.status, count_unanswered(report.events)), facts, tables).bundle()


def event_bundle(event: Any) -> dict[str, Any]:
    """Return the view of an event."""
    facts: list[tuple[str, object]] = [
        ("executor", event.source_id),
        ("superstep", event.iteration if event.superstep is None else event.superstep),
    ]
    if event.state is not None:
        facts.append(("state", state_text(event.state)))
    if event.type == "request_info":
        facts += [("request", event.request_id), ("answer type", request_rows([event])[0][-1])]
    if event.details is not None:
        facts += [("error", event.details.error_type), ("message", event.details.message)]
    elif event.type == "executor_completed" and isinstance(event.data, list):
        facts += [("result", line_preview(each, 400)) for each in event.data]
    elif event.data is not None:
        facts.append(("data", line_preview(event.data, 400)))
    table = Table("Event", ("field", "value"), [fact for fact in facts if fact[1] not in (None, "")])
    look = "failed" if event.type in ("failed", "executor_failed") else "idle"
    return Page("WorkflowEvent", state=str(event.type), look=look, tables=[table]).bundle()


def _page(title: str, state: str, facts: list[str], tables: list[Table], picture: Markup | None = None) -> Page:
    return Page(
        title,
        state=state,
        look="unanswered" if "unanswered" in state else _LOOK_OF.get(state, state if state in STATES else "idle"),
        facts=facts,
        tables=tables,
        picture=picture,
    )


def _run_tables(events: Sequence[Any], requests: Iterable[Any]) -> list[Table]:
    run = RunHistory(events=events)
    rows = superstep_rows(run)
    width = len(_SUPERSTEP_HEAD) - (not any(row[-1] for row in rows))  # omit the column of times if it is empty
    return [
        Table("Outputs", ("executor", "kind", "value"), output_rows(run)),
        Table("Failures", ("executor", "error", "message"), failure_rows(events)),
        Table("Requests", ("id", "executor", "question", "answer type"), request_rows(requests)),
        Table("Warnings", ("superstep", "warning"), warning_rows(run), limit=WARNING_LIMIT),
        Table("Supersteps", _SUPERSTEP_HEAD[:width], [row[:width] for row in rows]),
    ]
