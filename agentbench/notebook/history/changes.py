"""The differences between two checkpoints as rows and as a table; secrets masked, everything escaped."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agentbench._text.changes import SIGNS, checkpoints_of, counts, diff_text, hides, masked_path, same_start, values_of
from agentbench._text.escape import MASK, esc
from agentbench._text.redact import preview
from agentbench.checkpoints.difference.changes import CheckpointChange
from agentbench.checkpoints.editing import Edit
from agentbench.notebook.look.html import MAX_ROWS, Markup, Table, element
from agentbench.notebook.look.style import read_static

MAX_CHANGES = 200

_CELL_LIMIT = 300
_MOST_WORDS = 400
_LONGEST_RUN = 60
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")

Pieces = tuple[tuple[bool, str], ...]
"""A text in pieces: (whether it differs from the other side, text)."""


class ChangeRow(NamedTuple):
    """One change in the page's format; a side without a value is empty. `discards` is the path of a staged edit."""

    sign: str
    words: str
    path: str
    before: Pieces
    after: Pieces
    discards: str = ""


def change_row(change: CheckpointChange, *, discards: str = "") -> ChangeRow:
    """Return a change as a row, with the differing words of texts marked."""
    before, after = values_of(change)
    old: Pieces
    new: Pieces
    if not hides(change) and change.op == "changed" and type(change.before) is type(change.after) is str:
        old, new = _mark_words(change.before, change.after)
    else:
        old, new = (((False, _cut(_cell_text(change, value))),) for value in (before, after))
    path = esc(masked_path(change), into="line", limit=_CELL_LIMIT)
    old, new = () if change.op == "added" else _inert(old), () if change.op == "removed" else _inert(new)
    return ChangeRow(SIGNS[change.op], change.op, path, old, new, discards)


def _inert(pieces: Pieces) -> Pieces:
    return tuple((differs, esc(text, into="text", limit=None)) for differs, text in pieces)


def edit_rows(edits: Iterable[Edit]) -> tuple[ChangeRow, ...]:
    """Return staged edits as rows that can be discarded."""
    return tuple(change_row(edit.change, discards=edit.path) for edit in edits)


def diff_bundle(diff: Any) -> dict[str, Any]:
    """Return a diff by media type: a table with the changed words marked, and the lines of `diff_text`."""
    head = element("p", element("b", "CheckpointDiff"), " ", element("span", counts(diff)), class_="ab_head")
    sides = Table("Checkpoints", ("", "checkpoint"), list(checkpoints_of(diff))).html()
    return {
        "text/plain": diff_text(diff, limit=MAX_ROWS),
        "text/html": changes_html(diff.changes, "Changes", head, sides),
    }


def changes_html(changes: Sequence[CheckpointChange], title: str, *above: Markup) -> str:
    """Return changes as a table, below other elements."""
    rows: list[Sequence[object]] = [_cells(change_row(change)) for change in changes[:MAX_ROWS]]
    rows += [()] * (len(changes) - len(rows))  # only counted
    style = element("style", Markup(read_static("views.css") + read_static("diff.css")))
    table = Table(title, ("", "path", "before", "after"), rows).html() if rows else None
    return str(element("div", style, *above, table, class_="ab_view ab_diff"))


def edit_bundle(edit: Edit) -> dict[str, Any]:
    """Return the views of a staged edit by media type."""
    return {"text/plain": repr(edit), "text/html": changes_html([edit.change], "Staged edits")}


def edits_bundle(edits: Sequence[Edit]) -> dict[str, Any]:
    """Return the views of staged edits by media type: a row and a line of text for each."""
    above = [] if len(edits) else [element("p", "No edits are staged.", class_="ab_head")]
    html = changes_html([edit.change for edit in edits], "Staged edits", *above)
    return {"text/plain": str(edits), "text/html": html}


def _cells(row: ChangeRow) -> Sequence[object]:
    before, after = (
        [Markup(esc(text, limit=None)) if not differs else element(tag, text) for differs, text in pieces]
        for tag, pieces in (("del", row.before), ("ins", row.after))
    )
    sides = [element("span", *side) if len(side) > 1 else Markup("".join(side)) for side in (before, after)]
    return f"{row.sign} {row.words}", element("code", row.path), *sides


def _cell_text(change: CheckpointChange, value: object) -> str:
    if hides(change):
        return MASK
    text = preview(value, limit=_CELL_LIMIT)
    return repr(text) if change.op == "changed" and isinstance(value, str) else text  # distinguishes '1' from 1


def _cut(text: str) -> str:
    size = len(text)
    return text if size <= _CELL_LIMIT else f"{text[:_CELL_LIMIT]}… ({size - _CELL_LIMIT:,} more characters)"


def _mark_words(before: str, after: str) -> tuple[Pieces, Pieces]:
    """Return two texts in pieces: common words, and words that occur in only one of them.

    Long common parts are cut, and so is everything after a few hundred words.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    same = same_start(old, new)
    lead = (False, _shorten("".join(old[:same])))
    ends = [[(False, "…")] if len(words) - same > _MOST_WORDS else [] for words in (old, new)]
    old, new = old[same : same + _MOST_WORDS], new[same : same + _MOST_WORDS]
    sides: tuple[list[tuple[bool, str]], ...] = ([lead], [lead])
    for op, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, words in zip(sides, (old[a:b], new[c:d]), strict=True):
            text = "".join(words)
            side.append((False, _shorten(text)) if op == "equal" else (True, _cut(text)))
    marked = (tuple(piece for piece in (*side, *end) if piece[1]) for side, end in zip(sides, ends, strict=True))
    one, other = marked
    return one, other


def _shorten(text: str) -> str:
    return f"{text[:_LONGEST_RUN]} … {text[-_LONGEST_RUN:]}" if len(text) > 2 * _LONGEST_RUN else text
