"""The events of a run, superstep by superstep, as rows for tables."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench.notebook.history.supersteps import supersteps_of
from agentbench.notebook.runtime import settings
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.redact import line_preview

__all__ = ["SuperstepRow", "failure_rows", "output_rows", "request_rows", "superstep_rows", "warning_rows"]

#: Of a warning, in characters: it says how to mend what it is about, at its end.
WARNING_LIMIT = 600


@dataclass
class SuperstepRow:
    """One superstep: who ran, and what came of it."""

    number: int | None
    calls: Counter[str] = field(default_factory=Counter)
    failed: set[str] = field(default_factory=set)
    n_outputs: int = 0
    n_requests: int = 0
    n_warnings: int = 0
    duration_s: float | None = None
    checkpoint_id: str | None = None

    def cells(self) -> tuple[str, str, str, str]:
        """Number, executors, what happened, duration; the last is empty where outputs have to be equal in each run."""
        ran = ", ".join(
            f"{name}{f' x{count}' if count > 1 else ''}{' (failed)' if name in self.failed else ''}"
            for name, count in self.calls.items()
        )
        counts = ((self.n_outputs, "output"), (self.n_requests, "request"), (self.n_warnings, "warning"))
        happened = ", ".join(count_text(n, noun) for n, noun in counts if n)
        timed = self.duration_s is not None and not settings.current().deterministic
        return (
            "" if self.number is None else str(self.number),
            ran,
            happened,
            f"{1000 * (self.duration_s or 0):,.1f} ms" if timed else "",
        )


def superstep_rows(events: Sequence[Any]) -> list[SuperstepRow]:
    """Gather events by superstep; one in which nothing ran, and nothing but a warning came, is left out."""
    rows: list[SuperstepRow] = []
    now = SuperstepRow(next(iter(supersteps_of(events)), 0))
    for event in events:
        if event.type == "superstep_started":
            rows.append(now)
            now = SuperstepRow(event.iteration)
        else:
            _count(now, event)
    rows.append(now)
    return [row for row in rows if row.calls or row.n_outputs or row.n_requests]


def _count(row: SuperstepRow, event: Any) -> None:
    if event.type == "executor_invoked":
        row.calls[event.executor_id or "?"] += 1
    elif event.type == "executor_failed":
        row.failed.add(event.executor_id or "?")
    elif event.type in ("output", "intermediate", "data"):
        row.n_outputs += 1
    elif event.type == "request_info":
        row.n_requests += 1
    elif event.type in ("warning", "error"):
        row.n_warnings += 1
    elif event.type == "superstep_completed":
        row.duration_s = event.duration_s
    elif event.type == "checkpoint_saved":
        row.checkpoint_id = getattr(event.data, "checkpoint_id", None)


def warning_rows(events: Sequence[Any]) -> list[tuple[str, str]]:
    """Superstep and text of each warning and of each error that did not end the run."""
    return [
        (str(superstep), _warning(event.data))
        for event, superstep in zip(events, supersteps_of(events), strict=True)
        if event.type in ("warning", "error")
    ]


def _warning(data: object) -> str:
    text = f"{type(data).__name__}: {data}" if isinstance(data, BaseException) else data
    return line_preview(text, WARNING_LIMIT)


def output_rows(events: Iterable[Any]) -> list[tuple[str, str, str]]:
    """Executor, kind and preview of each output."""
    kinds = {"output": "output", "intermediate": "intermediate", "data": "intermediate"}
    return [
        (event.executor_id or "", kinds[event.type], line_preview(event.data))
        for event in events
        if event.type in kinds
    ]


def request_rows(requests: Iterable[Any]) -> list[tuple[str, str, str, str]]:
    """Id, executor, question and expected answer of each request."""
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
    """Executor, error and message of each failure; the run's own only where no executor failed."""
    wanted = [event for event in events if event.type == "executor_failed"]
    wanted = wanted or [event for event in events if event.type == "failed"]
    return [
        (event.executor_id or "", event.details.error_type, event.details.message)
        for event in wanted
        if event.details is not None
    ]
