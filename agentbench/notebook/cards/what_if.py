"""What-ifs as cards and as a frame: per variant what changed, and whether that is more than chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench._secrets import mask_secrets, mask_text
from agentbench._text.phrases import count_text
from agentbench.notebook.frames.columns import build_array
from agentbench.notebook.look.html import Page, Table
from agentbench.revisions.what_if.results import WhatIf, WhatIfSummary, verdict_text
from agentbench.revisions.what_if.variants import AS_IT_WAS

if TYPE_CHECKING:
    import pandas as pd

_CHANGE = 240


def what_if_bundle(result: WhatIf) -> dict[str, str]:
    """Return a what-if by media type: its summary."""
    facts = [count_text(len(result.rows), "run"), f"from superstep {result.at}"]
    return _page("What if", result.summary(), facts).bundle()


def summary_bundle(summary: WhatIfSummary) -> dict[str, str]:
    """Return a summary by media type: a row for each variant."""
    return _page("What if", summary, []).bundle()


def _page(title: str, summary: WhatIfSummary, facts: list[str]) -> Page:
    found = sum(effect.is_found for effect in summary.effects)
    rows = [(AS_IT_WAS, f"{summary.varied} of {summary.runs}", "without a change", "")]
    for effect in summary.effects:
        changed = f"{effect.changed} of {effect.runs}"
        rows.append((mask_text(effect.variant), changed, verdict_text(effect), mask_text(effect.change)))
    tables = [
        Table("Variants", ("variant", "differ", "verdict", "most frequent difference"), rows, limit=_CHANGE),
        Table("Notes", ("note",), [(mask_text(note),) for note in summary.notes], limit=_CHANGE),
    ]
    state, look = (count_text(found, "effect"), "done") if found else ("no effect found", "idle")
    return Page(title, state, look, facts, tables)


def what_if_frame(result: WhatIf) -> pd.DataFrame:
    """Return the branches as a frame with a row for each; secrets are masked."""
    require("pandas", extra="notebook", purpose="tabulate a what-if")
    import pandas as pd

    rows = result.rows
    columns: dict[str, Any] = {
        "variant": build_array("category", [mask_text(row.variant) for row in rows]),
        "repeat": build_array("int64", [row.repeat for row in rows]),
        "status": build_array("category", [str(row.status) for row in rows]),
        "output": build_array("object", [mask_secrets(row.output) for row in rows]),
        "path": build_array("category", [row.path for row in rows]),
        "supersteps": build_array("UInt64", [row.supersteps for row in rows]),
        "tokens": build_array("UInt64", [row.tokens for row in rows]),
        "cost": build_array("Float64", [row.cost for row in rows]),
        "seconds": build_array("Float64", [row.seconds for row in rows]),
        "divergence": build_array("string", [mask_text(row.divergence) for row in rows]),
        "error": build_array("string", [None if row.error is None else str(row.error) for row in rows]),
    }
    return pd.DataFrame(columns, copy=False)
