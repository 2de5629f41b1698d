"""Pure: the log of a run as readable lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_name
from agentbench._text.redact import line_preview
from agentbench.messages.joined_updates import join_updates
from agentbench.notebook.history.run_history import BEGINNINGS, ExecutorCall, RunHistory, Superstep
from agentbench.notebook.runtime import settings
from agentbench.workflows.events.events import WithdrawnWarning, WorkflowErrorDetails, WorkflowEvent
from agentbench.workflows.run.step_report import StepReport

LINE_LIMIT = 400
_NAMED = 6

_WHY_DROPPED = {
    "dropped condition evaluated to false": "the condition of its edge was false",
    "dropped type mismatch": "no handler there takes its type",
    "dropped target mismatch": "no edge leads there",
    "no outgoing edge": "the executor has no outgoing edge",
}

LogKind = Literal["step", "text", "warning", "error", "fork", "edit"]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log, without markup and of limited length; important kinds are displayed as a word."""

    kind: LogKind
    text: str

    @classmethod
    def of_fork(cls, old_run: str, superstep: int | None, new_run: str) -> LogLine:
        """Return the line of a new run that started from a checkpoint of an old one."""
        at_input = superstep is not None and superstep < 0
        place = "starts from the input" if at_input else f"continues from superstep {superstep}"
        text = f"{run_name(new_run)} {place} of {run_name(old_run)}, which does not change"
        return cls("fork", text)

    @classmethod
    def of_edit(cls, edit: object) -> LogLine:
        """Return the line of an edit in a fork; the text of `edit` masks secrets."""
        return cls("edit", esc(f"edited {str(edit).removeprefix('~ ')}", into="line", limit=LINE_LIMIT))


def deliveries_text(executors: Iterable[str]) -> str:
    """Return the number of messages per executor; `executors` has one name per delivery. Empty for none."""
    got = Counter(executors)
    named = [f"{_name(executor)} gets {count_text(n, 'message')}" for executor, n in list(got.items())[:_NAMED]]
    if len(got) > _NAMED:
        named.append(f"{len(got) - _NAMED:,} more")
    return ", ".join(named)


def outputs_of(report: StepReport) -> list[WorkflowEvent[Any]]:
    """Return the output events of a superstep, in plan order; a streamed answer is one event, its response."""
    return join_updates(_of(report, "output"))


def failures_of(report: StepReport) -> list[WorkflowEvent[Any]]:
    """Return the events of failed handlers, in plan order."""
    return _of(report, "executor_failed")


def number_of(event: WorkflowEvent[Any], report: StepReport) -> int:
    """Return the superstep of an event; events of unobserved runs do not contain it themselves."""
    return report.superstep if event.superstep is None else event.superstep


def _of(report: StepReport, kind: str) -> list[WorkflowEvent[Any]]:
    return sorted((e for e in report.events if e.type == kind), key=lambda e: (e.order or 0, e.seq or 0))


def lines_of_report(report: StepReport) -> list[LogLine]:
    """Return the lines of a finished superstep: deliveries and results.

    A report may contain a second, empty superstep: it follows start executors that send nothing.
    """
    numbers = {number_of(event, report) for event in report.events if event.type in BEGINNINGS} or {report.superstep}
    parts = []
    for number in sorted(numbers):
        got, opened = (
            [event for event in _of(report, kind) if number_of(event, report) == number]
            for kind in ("executor_invoked", "request_info")
        )
        delivered = deliveries_text(str(event.source_id) for event in got).replace(" gets ", " got ")
        parts.append(f"superstep {number}: {delivered or 'nothing was delivered'}")
        if opened:
            parts.append(f"{count_text(len(opened), 'request')} opened")
    withdrawn = [event for event in _of(report, "warning") if isinstance(event.data, WithdrawnWarning)]
    if withdrawn:
        parts.append(f"{count_text(len(withdrawn), 'request')} withdrawn")
    lines = [LogLine("step", "; ".join(parts)), *_lines_inside(report)]
    lines += [
        LogLine("text", f"output of {_name(event.source_id)}: {line_preview(event.data)}")
        for event in outputs_of(report)
    ]
    for event in failures_of(report):
        what = event.details or WorkflowErrorDetails("error", "")
        lines.append(LogLine("error", f"{_name(event.source_id)} failed: {what.error_type}: {_short(what.message)}"))
    return lines


def _lines_inside(report: StepReport) -> list[LogLine]:
    """Return a line with the deliveries for each superstep of each sub-workflow."""
    got: dict[tuple[str, int | None], list[str]] = {}
    for event in _of(report, "sub_workflow"):
        if event.data.type == "executor_invoked":
            node = "/".join(event.data.path)
            got.setdefault((node, event.data.superstep), []).append(str(event.data.source_id))
    return [
        LogLine("text", f"in {_name(node)}, superstep {number}: {deliveries_text(names).replace(' gets ', ' got ')}")
        for (node, number), names in got.items()
    ]


_OF_PATTERNS = frozenset({"group_chat", "handoff_sent", "magentic_orchestrator"})
"""Events whose data is a sentence: who speaks next and why, or the plan and its progress."""


def lines_of_event(event: WorkflowEvent[Any]) -> list[LogLine]:
    """Return the lines of an event of the superstep in flight; none if the superstep's own lines cover it."""
    kind, who = event.type, _name(event.source_id)
    if kind == "log":
        return [LogLine("text", f"{who}: {_short(line)}") for line in str(event.data).splitlines() if line.strip()]
    if kind == "warning":
        return [LogLine("warning", _short(event.data))]
    if kind == "error":
        return [LogLine("error", f"{type(event.data).__name__}: {_short(event.data)}")]
    if kind in _OF_PATTERNS:
        return [LogLine("text", f"{who}: {_short(event.data)}")]
    if kind == "message_dropped" and event.data.get("type") != "AgentExecutorResponse":  # the last one is an output
        return [LogLine("warning", _drop_text(event.data))]
    return []


def _drop_text(facts: Mapping[str, Any]) -> str:
    to = f" for {_short(facts['target'])}" if facts["target"] else ""
    why = _WHY_DROPPED.get(facts["reason"], _short(facts["reason"]))
    return f"a message of {_name(facts['source'])}{to} was dropped: {why} ({_short(facts['type'])})"


def _name(executor: object) -> str:
    return esc(executor, into="line", limit=60)


def _short(text: object) -> str:
    return esc(text, into="line", limit=LINE_LIMIT)


WARNING_LIMIT = 600
"""Characters of a warning; long, because the advice is at its end."""


def superstep_rows(run: RunHistory) -> list[tuple[str, str, str, str]]:
    """Return number, executors, results and duration of each superstep in which an executor ran or produced output.

    Durations are empty if outputs must be equal in each run.
    """
    rows = []
    for step in run.supersteps:
        calls = step.calls.values()
        ran = ", ".join(map(_call_text, (call for call in calls if call.messages_in or call.status == "failed")))
        counts = ((len(_outputs(step)), "output"), (sum(len(call.requests) for call in calls), "request"))
        if ran or any(n for n, _ in counts):
            happened = ", ".join(count_text(n, noun) for n, noun in (*counts, (len(step.warnings), "warning")) if n)
            timed = step.duration_s is not None and not settings.current().deterministic
            rows.append((str(step.number), ran, happened, f"{1000 * (step.duration_s or 0):,.1f} ms" if timed else ""))
    return rows


def _call_text(call: ExecutorCall) -> str:
    many = f" x{call.messages_in}" if call.messages_in > 1 else ""
    return f"{call.executor}{many}{' (failed)' if call.status == 'failed' else ''}"


def warning_rows(run: RunHistory) -> list[tuple[str, str]]:
    """Return superstep and text of each warning and of each error that did not end the run."""
    warnings = [(step.number, event.data) for step in run.supersteps for event in step.warnings]
    named = [(n, f"{type(w).__name__}: {w}" if isinstance(w, BaseException) else w) for n, w in warnings]
    return [(str(number), line_preview(text, WARNING_LIMIT)) for number, text in named]


def output_rows(run: RunHistory) -> list[tuple[str, str, str]]:
    """Return executor, kind and preview of each output."""
    return [row for step in run.supersteps for row in _outputs(step)]


def _outputs(step: Superstep) -> list[tuple[str, str, str]]:
    return [
        (event.executor_id or "", "output" if event.type == "output" else "intermediate", line_preview(event.data))
        for event in join_updates(step.outputs)
    ]


def request_rows(requests: Iterable[Any]) -> list[tuple[str, str, str, str]]:
    """Return id, executor, question and answer type of each request."""
    return [
        (
            event.request_id,
            event.source_executor_id,
            line_preview(event.data),
            getattr(event.response_type, "__name__", str(event.response_type)),
        )
        for event in requests
    ]


def failure_rows(events: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return executor, error and message of each failure; the run's own failure only if no executor failed."""
    wanted = [event for event in events if event.type == "executor_failed"]
    wanted = wanted or [event for event in events if event.type == "failed"]
    return [
        (event.executor_id or "", event.details.error_type, event.details.message)
        for event in wanted
        if event.details is not None
    ]
