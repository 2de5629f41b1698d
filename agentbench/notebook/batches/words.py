"""A batch and its rows in short, masked texts; without times if outputs are compared."""

from __future__ import annotations

from typing import Any

from agentbench._secrets import mask_text
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text
from agentbench._text.redact import line_preview
from agentbench.batch.rows import BatchProgress, BatchRow
from agentbench.notebook.progress_bar.progress import is_compared

LOOKS = {"finished": "done", "failed": "failed", "waiting": "waiting", "cancelled": "skipped", "open": "queued"}
"""The state of a graph element that has the colour and the sign of a row's status."""

ROW_HEAD = ("key", "status", "time", "result")


def line(text: object, limit: int = 80) -> str:
    """Return foreign text as one line."""
    return esc(text, into="line", limit=limit)


def amount_text(value: float | None) -> str:
    """Return a number as `1,204`, `12.5` or `0.0031`."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def ended(progress: BatchProgress) -> int:
    """Return the number of rows that are not open."""
    return sum(count for status, count in progress.counts.items() if str(status) != "open")


def share_text(progress: BatchProgress) -> str:
    """Return how many inputs have ended: `812 of 10,000 inputs`."""
    if progress.total is None:
        return f"{count_text(ended(progress), 'input')} of a number not known yet"
    return f"{ended(progress):,} of {count_text(progress.total, 'input')}"


def count_texts(progress: BatchProgress) -> dict[str, str]:
    """Return the counts that are not 0 in words, by status."""
    counts = {str(status): count for status, count in progress.counts.items()} | {"open": progress.running}
    texts = {status: f"{counts.get(status, 0):,} {status}" for status in LOOKS if counts.get(status)}
    return texts | ({"open": f"{progress.running:,} running"} if "open" in texts else {})


def speed_texts(progress: BatchProgress) -> list[str]:
    """Return the rate and the remaining time of a running batch."""
    if is_compared() or progress.state != "running":
        return []
    rate = [f"{amount_text(progress.rate)} per second"] if progress.rate else []
    return rate if progress.remaining_s is None else [*rate, f"about {duration_text(progress.remaining_s)} left"]


def use_texts(progress: BatchProgress) -> list[str]:
    """Return what the batch has used, the budget, and where its rows come from."""
    amounts = {"tokens": progress.tokens_in + progress.tokens_out, "cost": progress.cost or 0} | progress.budget
    if is_compared():
        amounts.pop("seconds", None)
    texts = []
    for name, amount in amounts.items():
        text = " of ".join(map(amount_text, amount if isinstance(amount, tuple) else (amount,)))
        if amount:
            texts.append(f"cost {text}" if name == "cost" else f"{text} {line(name)}")
    if progress.skipped:
        texts.append(f"{progress.skipped:,} from earlier calls")
    if progress.duplicates:
        texts.append(f"{progress.duplicates:,} repeated inputs")
    if progress.rejected and not is_compared():
        texts.append(f"{progress.rejected:,} calls rejected by a busy service")
    return texts


def progress_line(progress: BatchProgress) -> str:
    """Return the state of a batch in one line of text."""
    facts = [share_text(progress), *count_texts(progress).values(), *speed_texts(progress), *use_texts(progress)]
    reason = [line(mask_text(progress.reason), 200)] if progress.reason else []
    return f"{line(progress.name)}, {progress.state}: {', '.join([*facts, *reason])}"


def row_cells(row: BatchRow) -> tuple[str, str, str, str]:
    """Return key, status, duration and result of a row; the result is the error or a short form of the output."""
    took = "" if row.seconds is None or is_compared() else duration_text(row.seconds)
    if row.error is not None:
        result = line_preview(mask_text(str(row.error)), 160)
    else:
        result = "" if row.output is None else line_preview(row.output, 160)
    return line(row.key), str(row.status), took, result


def latest_rows(batch: Any, limit: int) -> list[BatchRow]:
    """Return the rows that have ended last, in the order in which they ended."""
    rows: list[BatchRow] = batch.rows(limit=limit, newest=True)
    return rows[::-1]
