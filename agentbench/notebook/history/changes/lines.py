"""What differs between two checkpoints, as lines of text and as a table; secrets masked, everything escaped."""

import difflib
import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agentbench._secrets import is_secret_name
from agentbench.checkpoints.difference.changes import CheckpointChange, path_text
from agentbench.notebook.look.html import MAX_ROWS, Markup, Table, element
from agentbench.notebook.look.style import read_static
from agentbench.notebook.text.escape import MASK, esc
from agentbench.notebook.text.redact import preview
from agentbench.workflows.executors.message import WorkflowMessage

__all__ = [
    "Piece",
    "cells_of",
    "change_line",
    "counts",
    "diff_bundle",
    "diff_text",
    "hides",
    "masked_path",
    "short_value",
    "word_marks",
]

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "reordered": ">"}
_LINE_LIMIT = 80
_CELL_LIMIT = 300
_CONTEXT = 20
_KEYS_OF_REQUEST = 2


_MOST_WORDS = 400
_LONGEST_RUN = 60
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def diff_text(diff: Any, *, limit: int | None = None, secrets: bool = False) -> str:
    """Return a diff as text: a line about each checkpoint and one per change.

    Args:
        diff: A `CheckpointDiff`.
        limit: At most so many changes; a last line counts the others.
        secrets: Whether secrets are displayed.
    """
    lines = [f"CheckpointDiff: {counts(diff)}", *(f"  {side:6}  {text}" for side, text in _sides(diff))]
    lines += (change_line(change, secrets=secrets) for change in diff.changes[:limit])
    if limit is not None and len(diff) > limit:
        lines.append(f"… {len(diff) - limit:,} more")
    return "\n".join(lines)


def change_line(change: CheckpointChange, *, secrets: bool = False) -> str:
    """Return a change as one line, such as `+ state.conv[12] = 'x'`.

    Args:
        change: The change.
        secrets: Whether secrets are displayed.
    """
    before, after = _short_values(change, secrets=secrets)
    path = esc(change.path if secrets else masked_path(change), into="line", limit=None)
    if change.op == "added":
        what = f" = {after}"
    elif change.op == "removed":
        what = f" = {before}"
    else:
        what = f": {'reordered ' if change.op == 'reordered' else ''}{before} -> {after}"
    return f"{_SIGNS[change.op]} {path}{what}"


def diff_bundle(diff: Any) -> dict[str, Any]:
    """Return a diff by media type: a table with the changed words marked, and the lines of `diff_text`."""
    rows: list[Sequence[object]] = [change_cells(change) for change in diff.changes[:MAX_ROWS]]
    rows += [()] * (len(diff) - len(rows))  # only counted
    html = element(
        "div",
        element("style", Markup(read_static("views.css") + read_static("diff.css"))),
        element("p", element("b", "CheckpointDiff"), element("span", counts(diff)), class_="ab_head"),
        Table("Checkpoints", ("", "checkpoint"), list(_sides(diff))).html(),
        Table("Changes", ("", "path", "before", "after"), rows).html() if rows else None,
        class_="ab_view ab_diff",
    )
    return {"text/plain": diff_text(diff, limit=MAX_ROWS), "text/html": str(html)}


def hides(change: CheckpointChange) -> bool:
    """Whether a key on the path of a change is the name of a secret."""
    return any(map(is_secret_name, change.keys))


def masked_path(change: CheckpointChange) -> str:
    """Return the path of a change, cut after the name of a secret: keys below it may be secret too."""
    secret = next((place for place, key in enumerate(change.keys) if is_secret_name(key)), None)
    return change.path if secret is None else path_text(change.keys[: secret + 1])


# ---- heads ------------------------------------------------------------------------------------------------------


def counts(diff: Any) -> str:
    """Return the number of changes of each kind, in words."""
    counts = Counter(change.op for change in diff)
    return ", ".join(f"{counts[op]:,} {op}" for op in _SIGNS if counts[op]) or "no difference"


def _sides(diff: Any) -> Iterator[tuple[str, str]]:
    for side, info in (("before", diff.before), ("after", diff.after)):
        facts = f"{info.checkpoint_id}  chain {info.workflow_name}, superstep {info.iteration}, {info.timestamp}"
        yield side, esc(facts, into="line", limit=400)


def _values_of(change: CheckpointChange) -> tuple[object, object]:
    """Return both values of a change; for an added or removed request its data, for a message its data."""
    is_request = change.op != "changed" and len(change.keys) == _KEYS_OF_REQUEST and change.keys[0] == "requests"
    return _content_of(change.before, is_request), _content_of(change.after, is_request)


def _content_of(value: object, is_request: bool) -> object:
    if isinstance(value, WorkflowMessage):  # the path names its sender
        return value.data
    return value["data"] if is_request and isinstance(value, dict) and "data" in value else value


# ---- values in a line -------------------------------------------------------------------------------------------


def _short_values(change: CheckpointChange, *, secrets: bool) -> tuple[str, str]:
    before, after = _values_of(change)
    if hides(change) and not secrets:
        return MASK, MASK
    start = _start(before, after) if isinstance(before, str) and isinstance(after, str) else 0
    return short_value(before, secrets=secrets, start=start), short_value(after, secrets=secrets, start=start)


def _start(before: str, after: str) -> int:
    """Return where to cut two long texts, so that their first difference is visible."""
    if max(len(before), len(after)) <= _LINE_LIMIT:
        return 0
    shorter = min(len(before), len(after))
    same = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    return max(0, same - _CONTEXT)


def short_value(value: object, *, limit: int = _LINE_LIMIT, secrets: bool = False, start: int = 0) -> str:
    """Return a value as one line, cut with `…`; texts are quoted.

    Args:
        value: Any value.
        limit: Most characters.
        secrets: Whether secrets are displayed.
        start: Position of the first character, for texts.
    """
    if isinstance(value, str):
        text, value = repr(value[start : start + limit]), value[start:]
        text = f"{'…' if start else ''}{text}{'…' if len(value) > limit else ''}"
    else:
        text = _Unmasked(limit).repr(value) if secrets else preview(value, limit=limit)
        text = text if len(text) <= limit else text[:limit] + "…"
    return esc(text, into="line", limit=None)


class _Unmasked(reprlib.Repr):
    """`repr` that stops early on large values."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = self.maxlong = limit


# ---- values in a table ------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """A part of a text: in both sides (`equal`), only in the one before (`del`) or only in the one after (`ins`)."""

    kind: str
    text: str


def cells_of(change: CheckpointChange) -> tuple[list[Piece], list[Piece]]:
    """Return both values of a change in pieces; secrets masked, no pieces for a side that has no value."""
    values = _values_of(change)
    if hides(change):
        texts: list[object] = [None if value is None else MASK for value in values]
    elif type(change.before) is str and type(change.after) is str and change.op == "changed":
        return word_marks(change.before, change.after)
    else:
        quoted = change.op == "changed"  # '1' has become 1
        texts = [_preview(value, quoted=quoted) for value in values]
    before, after = ([_piece(value)] for value in texts)
    return [] if change.op == "added" else before, [] if change.op == "removed" else after


def _piece(value: object) -> Piece:
    return Piece("equal", _cut(str(value)))


def _cut(text: str) -> str:
    size = len(text)
    return text if size <= _CELL_LIMIT else f"{text[:_CELL_LIMIT]}… ({size - _CELL_LIMIT:,} more characters)"


def change_cells(change: CheckpointChange) -> Sequence[object]:
    """Return a change as cells: kind, path, before and after, with changed words marked."""
    path = element("code", esc(masked_path(change), into="line", limit=_CELL_LIMIT))
    return f"{_SIGNS[change.op]} {change.op}", path, *map(_cell, cells_of(change))


def _cell(side: Sequence[Piece]) -> Markup:
    pieces = list(map(_html, side))
    return element("span", *pieces) if len(pieces) > 1 else Markup("".join(pieces))


def _preview(value: object, *, quoted: bool) -> str:
    text = preview(value, limit=_CELL_LIMIT)
    return repr(text) if quoted and isinstance(value, str) else text


def word_marks(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Return two texts in pieces: common words, and words that only one of them has.

    Long common stretches are cut, and so is everything after some hundred words.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    same = next((at for at, (x, y) in enumerate(zip(old, new, strict=False)) if x != y), min(len(old), len(new)))
    lead = "".join(old[:same])
    old, new = old[same:], new[same:]
    cut = [len(words) > _MOST_WORDS for words in (old, new)]
    old, new = old[:_MOST_WORDS], new[:_MOST_WORDS]
    sides: tuple[list[Piece], list[Piece]] = ([Piece("equal", _shorten(lead))], [Piece("equal", _shorten(lead))])
    for op, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, kind, words in zip(sides, ("del", "ins"), (old[a:b], new[c:d]), strict=True):
            if words:
                text = "".join(words)
                side.append(Piece("equal", _shorten(text)) if op == "equal" else Piece(kind, _cut(text)))
    for side, is_cut in zip(sides, cut, strict=True):
        if is_cut:
            side.append(Piece("equal", "…"))
    return sides


def _shorten(text: str) -> str:
    return f"{text[:_LONGEST_RUN]} … {text[-_LONGEST_RUN:]}" if len(text) > 2 * _LONGEST_RUN else text


def _html(piece: Piece) -> Markup:
    kind, text = piece
    escaped = Markup(esc(text, limit=None))
    return escaped if kind == "equal" else element(kind, escaped)
