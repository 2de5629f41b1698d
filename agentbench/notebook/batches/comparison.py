"""Two batches side by side, as a card and as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench._extras import require
from agentbench.batch.comparison import BatchComparison
from agentbench.notebook.frames.columns import build_array
from agentbench.notebook.look.html import Page, Table

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 50
_WHERE = 240
# The most serious first.
_VERDICTS = ("new error", "changed", "fixed", "only here", "only there", "same")


def comparison_bundle(comparison: BatchComparison) -> dict[str, str]:
    """Return a comparison by media type: its counts, and the first fifty rows that differ."""
    counts = comparison.counts
    facts = [f"{counts[verdict]:,} {verdict}" for verdict in _VERDICTS if verdict in counts]
    changed = sorted(comparison.changed, key=lambda pair: _VERDICTS.index(pair.verdict))
    rows: list[tuple[str, str, str]] = [(pair.key, pair.verdict, pair.where) for pair in changed[:_ROWS]]
    if len(changed) > _ROWS:
        rows.append(("…", f"{len(changed) - _ROWS:,} more", "in .changed and .frame()"))
    state, look = ("no difference", "done") if not changed else ("", "idle")
    if "new error" in counts:
        state, look = "new errors", "failed"
    table = Table("Rows that differ", ("key", "verdict", "first difference"), rows, limit=_WHERE)
    return Page("Comparison of batches", state, look, facts, [table]).bundle()


def comparison_frame(comparison: BatchComparison) -> pd.DataFrame:
    """Return a comparison as a frame with a row for each pair: `key`, `verdict` (a category) and `where`."""
    require("pandas", extra="notebook", purpose="tabulate a comparison")
    import pandas as pd

    rows = comparison.rows
    columns = {
        "key": build_array("string", [pair.key for pair in rows]),
        "verdict": build_array("category", [pair.verdict for pair in rows]),
        "where": build_array("string", [pair.where for pair in rows]),
    }
    return pd.DataFrame(columns, copy=False)
