"""Pure functions that format batches as text and plain JSON; text is escaped, secrets are masked by default."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from agentbench._secrets import mask_text
from agentbench._signatures import type_name
from agentbench._signatures.reading import readable_by_pydantic
from agentbench._text.changes import short_value
from agentbench._text.phrases import count_text, duration_text
from agentbench._text.redact import line_preview, question_of
from agentbench.batch.batch import Batch
from agentbench.batch.rows import BatchRow, RowStatus
from agentbench.batch.views import Question
from agentbench.cli.checkpoint_text import align, line, stored_form

ROW_FIELDS = [each.name for each in fields(BatchRow) if each.name != "duplicate_of"]


def batch_facts(batch: Batch) -> dict[str, Any]:
    """Return the numbers of a batch as JSON values."""
    progress = batch.progress
    return {
        "name": batch.name,
        "counts": progress.counts,
        "running": batch.store.busy(),
        "tokens_in": progress.tokens_in,
        "tokens_out": progress.tokens_out,
        "cost": progress.cost,
        "errors": dict(progress.errors),
        "slowest": dict(batch.store.slowest(5)),
    }


def batches_text(batches: Sequence[dict[str, Any]]) -> str:
    """Return a table of batches."""
    head = ("name", *map(str, RowStatus), "tokens", "cost")
    table = [
        (
            line(each["name"], 40),
            *(f"{each['counts'].get(status, 0):,}" for status in RowStatus),
            f"{each['tokens_in'] + each['tokens_out']:,}",
            _cost(each["cost"]),
        )
        for each in batches
    ]
    return "\n".join(align([head, *table], right=set(range(1, len(head))))) if table else "No batches."


def batch_text(facts: dict[str, Any], questions: int) -> str:
    """Describe a batch by its numbers."""
    counts = [f"{count:,} {status}" for status, count in facts["counts"].items() if count]
    running = [f"{facts['running']:,} of them running now"] if facts["running"] else []
    lines = [
        f"{line(facts['name'])}: {count_text(sum(facts['counts'].values()), 'row')}",
        f"{'rows':10}{', '.join(counts + running) or 'none'}",
        f"{'tokens':10}{facts['tokens_in']:,} read, {facts['tokens_out']:,} written",
        f"{'cost':10}{_cost(facts['cost']) or 'unknown'}",
    ]
    lines += [f"{'error':10}{count:,} x {line(name)}" for name, count in facts["errors"].items()]
    lines += [f"{'slowest':10}{duration_text(seconds)}  {line(key, 60)}" for key, seconds in facts["slowest"].items()]
    if questions:
        lines.append(f"{'asks':10}{count_text(questions, 'question')}")
    return "\n".join(lines)


def rows_text(rows: Sequence[BatchRow], *, secrets: bool = False) -> str:
    """Return a table of rows."""
    head = ("key", "status", "seconds", "attempts", "input", "output or error")
    table = [head]
    for row in rows:
        result = ""
        if row.error is not None:
            result = line(f"{row.error}" if secrets else mask_text(str(row.error)), 60)
        elif row.status is RowStatus.FINISHED:
            result = short_value(row.output, limit=60, secrets=secrets)
        seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
        value = short_value(row.input, limit=40, secrets=secrets)
        table.append((line(row.key, 40), str(row.status), seconds, str(row.attempts), value, result))
    return "\n".join(align(table, right={2, 3}))


def row_json(row: BatchRow, *, secrets: bool = False) -> dict[str, Any]:
    """Describe a row as JSON values; input and output in their stored form, with a tag for each typed value."""
    found: dict[str, Any] = {name: getattr(row, name) for name in ROW_FIELDS}
    for name in ("input", "output"):
        found[name] = stored_form(found[name], secrets=secrets)
    found["status"] = str(row.status)
    if row.error is not None:
        error = asdict(row.error)
        found["error"] = error if secrets else {name: mask_text(text) for name, text in error.items()}
    if row.started is not None:
        found["started"] = datetime.fromtimestamp(row.started, UTC).isoformat()
    return found


def questions_text(questions: Sequence[Question]) -> str:
    """Return open questions, each with its row, its id and the answer that it expects."""
    parts = []
    for each in questions:
        facts = question_json(each)
        parts.append(
            f"{line(each.key, 60)} asks {line_preview(question_of(each.request.data), 300)}\n"
            f"  request  {line(facts['request_id'])}\n"
            f"  expects  {line(facts['expects'])}"
            + (f"\n  schema   {line(json.dumps(facts['schema']))}" if facts["schema"] else "")
        )
    return "\n".join(parts)


def question_json(question: Question) -> dict[str, Any]:
    """Describe a question as JSON values; `schema` is the JSON schema of an answer that has fields."""
    request, type_ = question.request, question.request.response_type
    schema = None
    if not isinstance(type_, str):
        from pydantic import PydanticUserError, TypeAdapter

        try:
            schema = TypeAdapter(readable_by_pydantic(type_)).json_schema()
        except (PydanticUserError, ValueError, TypeError):
            schema = None  # a type without a schema
    return {
        "key": question.key,
        "request_id": request.request_id,
        "executor": request.source_executor_id,
        "data": stored_form(request.data),
        "expects": str(type_) if isinstance(type_, str) else type_name(type_),
        "schema": schema if schema and "properties" in schema else None,
    }


def _cost(cost: float | None) -> str:
    return "" if cost is None else f"{cost:.4g}"
