"""How objects of the library show themselves: one function per type, found by name when something is first displayed.

Each returns its views by media type. Displaying reads and escapes; it never runs, saves or connects anything.
"""

from collections.abc import Mapping
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench.exceptions import AgentFrameworkException
from agentbench.notebook.cells.workbench import older_code
from agentbench.notebook.graph.view import GraphView, draw
from agentbench.notebook.history.run_history import RunHistory
from agentbench.notebook.history.step_rows import (
    WARNING_LIMIT,
    failure_rows,
    output_rows,
    request_rows,
    superstep_rows,
    warning_rows,
)
from agentbench.notebook.look.html import Markup, Page, Table, image
from agentbench.notebook.text.escape import MASK
from agentbench.notebook.text.phrases import count_text, state_text
from agentbench.notebook.text.redact import fields_of, line_preview
from agentbench.workflows.persist.snapshot import EXECUTOR_STATE, FAN_IN_BUFFERS

__all__ = [
    "checkpoint_bundle",
    "checkpoint_info_bundle",
    "event_bundle",
    "report_bundle",
    "result_bundle",
    "run_bundle",
    "workflow_bundle",
]

Bundle = dict[str, Any]

_ENGINES = (EXECUTOR_STATE, FAN_IN_BUFFERS)

_LOOK_OF = {
    "running": "running",
    "finished": "done",
    "waiting for an answer": "waiting",
    "failed": "failed",
    "cancelled": "skipped",
}
_SUPERSTEP_HEAD = ("superstep", "executors", "results", "time")


def workflow_bundle(workflow: Any) -> Bundle:
    """A workflow as its graph."""
    return draw(workflow, direction="auto")._repr_mimebundle_()


def result_bundle(result: Any) -> Bundle:
    """The result of a run: state, outputs, failures, requests and supersteps."""
    events = list(result)
    timeline = result.status_timeline()
    state = state_text(timeline[-1].state) if timeline else ""
    facts = [count_text(len(events), "event")]
    if result.checkpoints:
        facts.append(count_text(len(result.checkpoints), "checkpoint"))
    if result.carried_over is not None:
        facts.append(f"carried over: {result.carried_over}")
    requests = [event for event in events if event.type == "request_info"]
    return _page("WorkflowRunResult", state, facts, _run_tables(events, requests)).bundle()


def run_bundle(run: Any) -> Bundle:
    """A run that is driven step by step: the same as of a result, under a picture of its present state."""
    events = run.events
    state = "paused" if getattr(run, "paused", False) else state_text(run.status)
    facts = [
        str(run.run_id),
        f"superstep {run.superstep}",
        count_text(len(run.pending_messages), "message") + " queued",
        count_text(len(run.checkpoints), "checkpoint"),
    ]
    older = older_code(run)
    if older:
        facts.append(f"older code: {', '.join(older)}")
    page = _page("WorkflowRun", state, facts, _run_tables(events, run.pending_requests), picture=_picture(run))
    return page.bundle()


def report_bundle(report: Any) -> Bundle:
    """The view of a superstep's report."""
    facts = [f"superstep {report.superstep}", count_text(len(report.events), "event")]
    if report.pause_reason is not None:
        facts.append(f"paused: {report.pause_reason}")
    tables = _run_tables(report.events, report.requests)
    return _page("StepReport", state_text(report.status), facts, tables).bundle()


def event_bundle(event: Any) -> Bundle:
    """One event: type, executor, superstep and a preview of its data."""
    rows = [(name, value) for name, value in _event_facts(event) if value not in (None, "")]
    failed = event.type in ("failed", "executor_failed")
    page = Page(
        "WorkflowEvent",
        state=str(event.type),
        look="failed" if failed else "idle",
        tables=[Table("Event", ("field", "value"), rows)],
    )
    return page.bundle()


def checkpoint_info_bundle(info: Any) -> Bundle:
    """The view of a checkpoint's info, without its content."""
    return Page("CheckpointInfo", state=str(info.source), facts=_info_facts(info), tables=[_info_table(info)]).bundle()


def checkpoint_bundle(checkpoint: Any) -> Bundle:
    """The view of a checkpoint: waiting messages, open requests, state. Values are previews with secrets masked."""
    messages = [
        (source, getattr(message, "target_id", None) or "", line_preview(getattr(message, "data", message)))
        for source, waiting in checkpoint.messages.items()
        for message in waiting
    ]
    # The engine's own keys are there in each checkpoint, mostly with nothing in them.
    state = [(key, line_preview(value)) for key, value in fields_of(checkpoint.state) if key not in _ENGINES or value]
    requests = checkpoint.pending_request_info_events
    tables = [
        Table("Messages", ("from", "to", "data"), messages),
        Table("Open requests", ("id", "executor", "question", "answer type"), request_rows(_values(requests))),
        Table("State", ("key", "value"), [(key, _mask(key, value)) for key, value in state]),
    ]
    facts = [
        checkpoint.checkpoint_id,
        f"chain {checkpoint.workflow_name}",
        f"superstep {checkpoint.iteration_count}",
        checkpoint.timestamp,
    ]
    return Page("WorkflowCheckpoint", facts=facts, tables=tables).bundle()


def _page(title: str, state: str, facts: list[str], tables: list[Table], picture: Markup | None = None) -> Page:
    return Page(title, state=state, look=_LOOK_OF.get(state, "idle"), facts=facts, tables=tables, picture=picture)


def _run_tables(events: list[Any], requests: Any) -> list[Table]:
    run = RunHistory(events=events)
    rows = superstep_rows(run)
    timed = any(row[-1] for row in rows)
    width = len(_SUPERSTEP_HEAD) if timed else len(_SUPERSTEP_HEAD) - 1
    return [
        Table("Outputs", ("executor", "kind", "value"), output_rows(events)),
        Table("Failures", ("executor", "error", "message"), failure_rows(events)),
        Table("Requests", ("id", "executor", "question", "answer type"), request_rows(_values(requests))),
        Table("Warnings", ("superstep", "warning"), warning_rows(run), limit=WARNING_LIMIT),
        Table("Supersteps", _SUPERSTEP_HEAD[:width], [row[:width] for row in rows]),
    ]


def _picture(run: Any) -> Markup | None:
    """The run's graph inside the HTML."""
    try:
        view: GraphView = draw(run, direction="auto")
        return image(view.svg, view.text)
    except (AgentFrameworkException, TypeError):
        return None


def _event_facts(event: Any) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("executor", event.source_id), ("superstep", event.superstep)]
    if event.superstep is None:
        facts[-1] = ("superstep", event.iteration)
    if event.state is not None:
        facts.append(("state", state_text(event.state)))
    if event.type == "request_info":
        facts += [("request", event.request_id), ("answer type", request_rows([event])[0][-1])]
    if event.details is not None:
        facts += [("error", event.details.error_type), ("message", event.details.message)]
    elif event.data is not None:
        facts.append(("data", line_preview(event.data, 400)))
    return facts


def _info_facts(info: Any) -> list[str]:
    return [str(info.checkpoint_id), f"chain {info.workflow_name}", f"superstep {info.iteration}"]


def _info_table(info: Any) -> Table:
    rows = [
        ("saved", info.timestamp),
        ("run", info.run_id),
        ("went on from", info.previous_checkpoint_id),
        ("forked from", info.forked_from),
        ("executors", ", ".join(info.writers)),
        ("messages", info.n_messages),
        ("requests", info.n_requests),
        ("size", f"{info.size_bytes:,} bytes" if info.size_bytes else ""),
    ]
    return Table("Checkpoint", ("field", "value"), [(name, value) for name, value in rows if value not in (None, "")])


def _mask(key: str, value: str) -> str:
    return MASK if is_secret_name(key) else value


def _values(requests: Any) -> list[Any]:
    return list(requests.values()) if isinstance(requests, Mapping) else list(requests)
