"""Two batches row by row: the same, changed, a new error; and the first divergence of each pair in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from agentbench._display import Displayable, call_view, drawn_by
from agentbench._secrets import mask_text
from agentbench._text.changes import hides, masked_path
from agentbench._text.escape import MASK
from agentbench._text.redact import line_preview
from agentbench.batch.rows import BatchRow, RowStatus
from agentbench.checkpoints.difference.comparison import Comparison

Verdict = Literal["same", "changed", "new error", "fixed", "only here", "only there"]


@dataclass(frozen=True, slots=True)
class PairedRow:
    """The rows of one input in two batches, compared.

    Attributes:
        key: The key of both rows.
        verdict: `same`, `changed`, `new error` (it failed here and not there), `fixed` (it failed there and not here),
            `only here` or `only there`.
        where: The first divergence in words; empty if there is none.

    Example:
        for pair in batch.compare(earlier).changed:
            print(pair.key, pair.verdict, pair.where)
    """

    key: str
    verdict: Verdict
    where: str = ""


@drawn_by("agentbench.notebook.batches.comparison:comparison_bundle")
@dataclass(frozen=True)
class BatchComparison(Displayable):
    """Two batches, row by row; made by `Batch.compare`. A cell displays the counts and the rows that differ.

    Attributes:
        rows: The pairs, in the order of the first batch, and then the rows that only the other one has.

    Example:
        comparison = batch.compare(earlier)
        print(comparison.counts)
    """

    rows: list[PairedRow]

    @property
    def counts(self) -> dict[str, int]:
        """The number of pairs by verdict, without verdicts that do not occur."""
        return dict(Counter(str(pair.verdict) for pair in self.rows))

    @property
    def changed(self) -> list[PairedRow]:
        """The pairs that are not the same."""
        return [pair for pair in self.rows if pair.verdict != "same"]

    def frame(self) -> Any:
        """Return the pairs as a data frame with the columns `key`, `verdict` and `where`."""
        return call_view("agentbench.notebook.batches.comparison:comparison_frame", self)

    def __repr__(self) -> str:
        return f"BatchComparison({', '.join(f'{count:,} {name}' for name, count in self.counts.items()) or 'no rows'})"


def compare_rows(a: Iterable[BatchRow], b: Iterable[BatchRow]) -> BatchComparison:
    """Compare the rows of two batches by key; `a` is here, `b` is there.

    Rows are the same if their status, path, output and error are. Times, tokens and ids do not count.

    Args:
        a: The rows of the batch of interest.
        b: The rows of the batch to compare it with.

    Returns:
        A pair for each key of either batch.

    Example:
        comparison = compare_rows(new.rows(), old.rows())
    """
    others = {row.key: row for row in b}
    pairs = [_pair(row, others.pop(row.key, None)) for row in a]
    return BatchComparison([*pairs, *(PairedRow(key, "only there") for key in others)])


def _pair(here: BatchRow, there: BatchRow | None) -> PairedRow:
    if there is None:
        return PairedRow(here.key, "only here")
    where = divergence(here, there)
    verdict: Verdict = "changed" if where else "same"
    if here.status != there.status and RowStatus.FAILED in (here.status, there.status):
        verdict = "new error" if here.status == RowStatus.FAILED else "fixed"
    return PairedRow(here.key, verdict, where)


def divergence(here: BatchRow, there: BatchRow, first: int = 0) -> str:
    """Return the first difference in words: of the paths, then of the outputs, the errors and the statuses.

    `first` is the superstep with which the paths begin.
    """
    steps = zip_longest(here.path.split(" > "), there.path.split(" > "), fillvalue="")
    for superstep, (ran, other) in enumerate(steps, first):
        if ran != other:
            return f"superstep {superstep}: here {ran or _how_it_ended(here)}, there {other or _how_it_ended(there)}"
    if here.status == there.status:
        for change in Comparison().changes(there.output, here.output, ("output",)):
            now, before = (MASK if hides(change) else line_preview(each, 60) for each in (change.after, change.before))
            return f"{masked_path(change)}: here {now}, there {before}"
    if _kind_of_error(here) != _kind_of_error(there):
        return f"here {_how_it_ended(here)}, there {_how_it_ended(there)}"
    return "" if here.status == there.status else f"status: here {here.status}, there {there.status}"


def _how_it_ended(row: BatchRow) -> str:
    return f"failed with {line_preview(mask_text(str(row.error)))}" if row.error else str(row.status)


def _kind_of_error(row: BatchRow) -> tuple[str, str] | None:
    return None if row.error is None else (row.error.type, row.error.message)
