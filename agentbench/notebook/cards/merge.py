"""The display of a merge: every change whole, so that nothing is applied that was not shown."""

from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench.notebook.look.html import Markup, Page, Table, element


def merge_bundle(merge: Any) -> dict[str, Any]:
    """Return the view of what the reader of a page sent back."""
    rows = [[_whole(cell) for cell in row] for row in merge.rows]
    asked = [[_whole(line)] for line in merge.asked]
    page = Page(
        "Merge",
        facts=[merge.author, f"at superstep {merge.checkpoint.iteration}", "not applied: apply() makes the branch"],
        tables=[
            Table("Changes", ("where", "before", "after"), rows),
            Table(
                f"{count_text(len(asked), 'approval')} for you: a file cannot approve, answer in the branch",
                ("question",),
                asked,
            ),
        ],
    )
    return {"text/plain": str(merge), "text/html": page.html()}


def _whole(text: str) -> Markup:
    """Return a cell that no table cuts."""
    return element("span", Markup(esc(text, limit=None)))
