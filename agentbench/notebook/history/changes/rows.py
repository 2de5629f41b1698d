"""Pure: changes of values as short rows for a page, with the parts that differ marked; secrets masked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentbench.checkpoints.difference.changes import CheckpointChange
from agentbench.checkpoints.editing import Edit
from agentbench.notebook.history.changes.lines import hides, masked_path, short_value
from agentbench.notebook.text.escape import MASK, esc

__all__ = ["MAX_CHANGES", "ChangeRow", "Pieces", "change_row", "edit_rows"]

MAX_CHANGES = 200
_VALUE_LIMIT = 600
_PATH_LIMIT = 200
_CONTEXT = 60  # characters of the common text before and after a difference

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "reordered": "↕"}

#: A text in pieces: whether each differs, and the piece.
Pieces = tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change, as the page displays it.

    Attributes:
        sign: The kind of change as a sign.
        words: The kind of change in a word.
        path: The path of the value.
        before: The value before, in pieces; empty if there was none.
        after: The value after, in pieces; empty if there is none.
        discards: For a staged edit, the path to discard it by; else empty.
    """

    sign: str
    words: str
    path: str
    before: Pieces
    after: Pieces
    discards: str = ""


def change_row(change: CheckpointChange, *, discards: str = "") -> ChangeRow:
    """Return a change as a row.

    Args:
        change: The change.
        discards: For a staged edit, its path.
    """
    before, after = _texts(change)
    if before is not None and after is not None:
        old, new = _mark(before, after)
    else:
        old, new = (() if text is None else ((False, _cut(text)),) for text in (before, after))
    path = esc(masked_path(change), into="line", limit=_PATH_LIMIT)
    return ChangeRow(_SIGNS[change.op], change.op, path, old, new, discards)


def edit_rows(edits: Iterable[Edit]) -> tuple[ChangeRow, ...]:
    """Return staged edits as rows that can be discarded."""
    return tuple(change_row(edit.change, discards=edit.path) for edit in edits)


def _texts(change: CheckpointChange) -> tuple[str | None, str | None]:
    before = None if change.op == "added" else _text(change.before, hidden=hides(change))
    after = None if change.op == "removed" else _text(change.after, hidden=hides(change))
    return before, after


def _text(value: object, *, hidden: bool) -> str:
    # Long enough that the first difference of two long values is within it; the pieces are cut afterwards.
    return MASK if hidden else short_value(value, limit=20_000)


def _mark(before: str, after: str) -> tuple[Pieces, Pieces]:
    """Return two texts in pieces, with the part between their common beginning and end marked."""
    shorter = min(len(before), len(after))
    same = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    left = shorter - same
    tail = next((at for at in range(left) if before[-1 - at] != after[-1 - at]), left)
    return _pieces(before, same, tail), _pieces(after, same, tail)


def _pieces(text: str, same: int, tail: int) -> Pieces:
    end = len(text) - tail
    head, middle, rest = text[:same], text[same:end], text[end:]
    if len(head) > 2 * _CONTEXT:
        head = f"…{head[-_CONTEXT:]}"
    if len(rest) > 2 * _CONTEXT:
        rest = f"{rest[:_CONTEXT]}…"
    return tuple(piece for piece in ((False, head), (True, _cut(middle)), (False, rest)) if piece[1])


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_LIMIT else f"{text[:_VALUE_LIMIT]}…"
