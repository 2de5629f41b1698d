"""The static displays of a batch and of one of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentbench._secrets import mask_text
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text
from agentbench._text.redact import line_preview
from agentbench.batch.rows import BatchRow
from agentbench.notebook.batches.words import (
    LOOKS,
    ROW_HEAD,
    amount_text,
    count_texts,
    latest_rows,
    line,
    row_cells,
    share_text,
    speed_texts,
    use_texts,
)
from agentbench.notebook.look.html import Markup, Page, Table, element
from agentbench.notebook.progress_bar.progress import is_compared

_ROWS = 10
_VALUE = 2000
_STATES = {"running": "running", "done": "done", "cancelled": "skipped", "stopped": "failed"}


def batch_bundle(batch: Any) -> dict[str, str]:
    """Return a batch by media type: counts, classes of errors, the slowest runs and the latest rows."""
    progress = batch.progress
    facts = [share_text(progress), *count_texts(progress).values(), *speed_texts(progress), *use_texts(progress)]
    if progress.reason:
        facts.append(mask_text(progress.reason))
    errors = [(name, f"{count:,}") for name, count in progress.errors]
    slowest = [] if is_compared() else [(key, duration_text(seconds)) for key, seconds in progress.slowest]
    rows = [row_cells(row) for row in latest_rows(batch, _ROWS)]
    return Page(
        f"Batch {progress.name}",
        progress.state,
        _STATES.get(progress.state, "idle"),
        facts,
        [
            Table("Errors", ("class", "rows"), errors),
            Table("Slowest", ("key", "time"), slowest),
            Table("Rows" if len(rows) < _ROWS else f"Latest {_ROWS} rows", ROW_HEAD, rows),
        ],
    ).bundle()


def row_bundle(row: BatchRow) -> dict[str, str]:
    """Return one row of a batch by media type: its input, its result, its path and what it used."""
    *fields, (_, traceback) = [*row_fields(row), ("traceback", _traceback(row))]
    page = Page(f"Row {row.key}", str(row.status), LOOKS[str(row.status)], row_facts(row))
    html = replace(page, tables=[Table("Row", ("field", "value"), fields, limit=_VALUE)]).html()
    text = [page.text(), *(f"  {name:16}  {line(value, 200)}" for name, value in fields)]
    if traceback:
        html += str(element("details", element("summary", "Traceback"), element("pre", Markup(esc(traceback)))))
        text += ["traceback", *(f"  {line(each, 200)}" for each in traceback.splitlines()[-30:])]
    return {"text/plain": "\n".join(text), "text/html": html}


def row_facts(row: BatchRow) -> list[str]:
    """Return short facts about a row for its first line."""
    facts = [f"position {row.position}", count_text(row.attempts, "attempt")]
    return facts if row.seconds is None or is_compared() else [*facts, duration_text(row.seconds)]


def row_fields(row: BatchRow, limit: int = _VALUE) -> list[tuple[str, str]]:
    """Return what is known about a row as pairs of a name and a text, masked and cut to `limit` characters."""
    tokens = None if row.tokens_in is None and row.tokens_out is None else (row.tokens_in or 0, row.tokens_out or 0)
    fields = [
        ("input", line_preview(row.input, limit)),
        ("output", "" if row.output is None else line_preview(row.output, limit)),
        ("error", row.error and line_preview(mask_text(str(row.error)), limit)),
        ("raised by", row.error and row.error.location),
        ("path", row.path),
        ("tokens", tokens and f"{tokens[0]:,} read, {tokens[1]:,} written"),
        ("cost", amount_text(row.cost)),
        ("run", row.run_id),
        ("worker", None if is_compared() else row.worker),
        ("repeats position", None if row.duplicate_of is None else str(row.duplicate_of)),
    ]
    return [(name, line(value, limit)) for name, value in fields if value]


def row_details(row: BatchRow, limit: int = _VALUE) -> dict[str, Any]:
    """Return a row as a page shows it when it is opened."""
    traceback = esc(_traceback(row), into="text", limit=2 * limit)
    fields = [*row_fields(row, limit), *([("traceback", traceback)] if traceback else [])]
    return {"title": f"Row {line(row.key)}: {', '.join([str(row.status), *row_facts(row)])}", "fields": fields}


def _traceback(row: BatchRow) -> str:
    """Return the end of the traceback, where the error was raised."""
    text = "" if row.error is None else mask_text(row.error.traceback)
    return text if len(text) <= _VALUE else "…" + text[-_VALUE:]
