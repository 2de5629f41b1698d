"""The comparison of two runs, as a data frame."""

from typing import TYPE_CHECKING

from agentbench.notebook.frames.columns import build_frame
from agentbench.notebook.history.compare import RunComparison
from agentbench.notebook.history.sources import Chosen

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["comparison_frame"]


def comparison_frame(found: RunComparison) -> "pd.DataFrame":
    """Tabulate what differs between two runs, one row for each part of a superstep."""
    rows = found.rows
    return build_frame(
        "compare",
        {
            "superstep": ("int64", [row.superstep for row in rows]),
            "part": ("string", [row.part for row in rows]),
            "kind": ("category", [row.kind for row in rows]),
            "op": ("category", [row.op for row in rows]),
            "a": ("string", [row.a or None for row in rows]),
            "b": ("string", [row.b or None for row in rows]),
        },
        index=["superstep", "part"],
        chosen=Chosen(),
        run_ids=(found.a.name, found.b.name),
    )
