"""The notebook views of staged edits: the values before and after, with the changed words marked; secrets masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentbench.checkpoints.editing import Edit, StagedEdits
from agentbench.notebook.history.changes import changes_html
from agentbench.notebook.look.html import element

__all__ = ["edit_bundle", "edits_bundle"]


def edit_bundle(edit: Edit) -> dict[str, Any]:
    """Return the views of one edit by media type."""
    return {"text/plain": repr(edit), "text/html": _html([edit])}


def edits_bundle(edits: StagedEdits) -> dict[str, Any]:
    """Return the views of staged edits by media type: a row and a line of text for each."""
    return {"text/plain": str(edits), "text/html": _html(edits)}


def _html(edits: Sequence[Edit]) -> str:
    above = [] if len(edits) else [element("p", "No edits are staged.", class_="ab_head")]
    return changes_html([edit.change for edit in edits], "Staged edits", *above)
