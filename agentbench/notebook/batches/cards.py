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
    rows = [row_cells(row) for row in latest_rows(batch, progress, _ROWS)]
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
    tokens = None if row.tokens_in is None and row.tokens_out is None else (row.tokens_in or 0, row.tokens_out or 0)
    facts = [f"position {row.position}", count_text(row.attempts, "attempt")]
    if row.seconds is not None and not is_compared():
        facts.append(duration_text(row.seconds))
    fields = [
        ("input", line_preview(row.input, _VALUE)),
        ("output", "" if row.output is None else line_preview(row.output, _VALUE)),
        ("error", row.error and line_preview(mask_text(str(row.error)), _VALUE)),
        ("raised by", row.error and row.error.location),
        ("path", row.path),
        ("tokens", tokens and f"{tokens[0]:,} read, {tokens[1]:,} written"),
        ("cost", amount_text(row.cost)),
        ("run", row.run_id),
        ("worker", None if is_compared() else row.worker),
        ("repeats position", row.duplicate_of),
    ]
    known = [field for field in fields if field[1] not in (None, "")]
    page = Page(f"Row {row.key}", str(row.status), LOOKS[str(row.status)], facts)
    traceback = mask_text(row.error.traceback) if row.error is not None else ""
    html = replace(page, tables=[Table("Row", ("field", "value"), known, limit=_VALUE)]).html()
    text = [page.text(), *(f"  {name:16}  {line(value, 200)}" for name, value in known)]
    if traceback:
        shown = element("pre", Markup(esc(traceback, limit=20_000)))
        html += str(element("details", element("summary", "Traceback"), shown))
        text += ["traceback", *(f"  {line(each, 200)}" for each in traceback.splitlines()[-30:])]
    return {"text/plain": "\n".join(text), "text/html": html}
