"""Changes of values as short rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.difference.changes import ChangeOp, CheckpointChange
from agentbench.notebook.diff_content import change_row, edit_rows
from agentbench.notebook.stepper_edits import Edit


def change(before: Any = None, after: Any = None, op: ChangeOp = "changed", *keys: Any) -> CheckpointChange:
    return CheckpointChange("state.x", op, before, after, keys or ("state", "x"))


def text(pieces: tuple[tuple[bool, str], ...]) -> str:
    return "".join(piece for _, piece in pieces)


def test_what_differs_is_marked_and_the_rest_is_not() -> None:
    row = change_row(change("Draft 3, long", "Draft 12, long"))
    assert row.before == ((False, "'Draft "), (True, "3"), (False, ", long'"))
    assert row.after == ((False, "'Draft "), (True, "12"), (False, ", long'"))


@pytest.mark.parametrize(
    ("given_", "sign", "before", "after"),
    [
        (change(after=1, op="added"), "+", "", "1"),
        (change(before=1, op="removed"), "-", "1", ""),
        (change([1, 2], [2, 1], "reordered"), "↕", "[1, 2]", "[2, 1]"),
        (change(None, 0), "~", "None", "0"),
        (change("1", 1), "~", "'1'", "1"),
    ],
)
def test_each_sort_of_change_has_a_sign_and_its_sides(
    given_: CheckpointChange, sign: str, before: str, after: str
) -> None:
    row = change_row(given_)
    assert (row.sign, row.words, text(row.before), text(row.after)) == (sign, given_.op, before, after)


def test_a_difference_deep_in_a_long_text_is_visible() -> None:
    row = change_row(change("a" * 5000 + "X" + "b" * 5000, "a" * 5000 + "Y" + "b" * 5000))
    assert (True, "X") in row.before
    assert (True, "Y") in row.after
    assert len(text(row.before)) < 200


@given(st.text(max_size=9), st.text(max_size=9))
def test_the_pieces_of_short_texts_are_the_whole_texts(before: str, after: str) -> None:
    row = change_row(change(before, after))
    assert text(row.before) == text(change_row(change(before, op="removed")).before)
    assert text(row.after) == text(change_row(change(after=after, op="added")).after)


def test_secrets_stay_hidden() -> None:
    row = change_row(change("old", "new", "changed", "state", "api_key"))
    assert "old" not in str(row)
    assert "new" not in str(row)


def test_staged_edits_can_be_discarded_by_their_path() -> None:
    [row] = edit_rows([Edit("draft.title", "Cats", "Dogs", ("state", "draft", "title"))])
    assert (row.path, row.discards) == ("draft.title", "draft.title")
    assert change_row(change(1, 2)).discards == ""
