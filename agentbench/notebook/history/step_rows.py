"""The events of a run, superstep by superstep, as rows for tables."""

from collections.abc import Iterable, Sequence
from typing import Any

from agentbench._text.phrases import count_text
from agentbench._text.redact import line_preview
from agentbench.messages.joined_updates import join_updates
from agentbench.notebook.history.run_history import ExecutorCall, RunHistory, Superstep
from agentbench.notebook.runtime import settings

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
