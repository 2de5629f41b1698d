"""Changes of values as short rows."""

from __future__ import annotations

from typing import Any

from agentbench.checkpoints.difference.changes import ChangeOp, CheckpointChange
from agentbench.notebook.diff_content import change_row, edit_rows
from agentbench.notebook.stepper_edits import Edit


def change(before: Any = None, after: Any = None, op: ChangeOp = "changed", *keys: Any) -> CheckpointChange:
    return CheckpointChange("state.x", op, before, after, keys or ("state", "x"))


def text(pieces: tuple[tuple[bool, str], ...]) -> str:
    return "".join(piece for _, piece in pieces)


def test_a_difference_deep_in_a_long_text_is_visible() -> None:
    row = change_row(change("a" * 5000 + "X" + "b" * 5000, "a" * 5000 + "Y" + "b" * 5000))
    assert (True, "X") in row.before
    assert (True, "Y") in row.after
    assert len(text(row.before)) < 200


def test_secrets_stay_hidden() -> None:
    row = change_row(change("old", "new", "changed", "state", "api_key"))
    assert "old" not in str(row)
    assert "new" not in str(row)


def test_staged_edits_can_be_discarded_by_their_path() -> None:
    [row] = edit_rows([Edit("draft.title", "Cats", "Dogs", ("state", "draft", "title"))])
    assert (row.path, row.discards) == ("draft.title", "draft.title")
    assert change_row(change(1, 2)).discards == ""
