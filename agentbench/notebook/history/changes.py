"""The differences between two checkpoints as lines of text, rows or a table; secrets masked, everything escaped."""

import difflib
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agentbench._secrets import is_secret_name, mask_secrets
from agentbench.checkpoints.difference.changes import CheckpointChange, path_text
from agentbench.checkpoints.editing import Edit
from agentbench.notebook.look.html import MAX_ROWS, Markup, Table, element
from agentbench.notebook.look.style import read_static
from agentbench.notebook.text.escape import MASK, esc
from agentbench.notebook.text.redact import preview
from agentbench.workflows.executors.message import WorkflowMessage

__all__ = [
    "MAX_CHANGES",
    "ChangeRow",
    "Pieces",
    "change_line",
    "change_row",
    "changes_html",
    "counts",
    "diff_bundle",
    "diff_text",
    "edit_bundle",
    "edit_rows",
    "edits_bundle",
    "hides",
    "masked_path",
    "short_value",
]

MAX_CHANGES = 200

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "reordered": ">"}
_LINE_LIMIT = 80
_CELL_LIMIT = 300
_CONTEXT = 20
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
    before, after = _values_of(change)
    old: Pieces
    new: Pieces
    if not hides(change) and change.op == "changed" and type(change.before) is type(change.after) is str:
        old, new = _mark_words(change.before, change.after)
    else:
        old, new = (((False, _cut(_cell_text(change, value))),) for value in (before, after))
    path = esc(masked_path(change), into="line", limit=_CELL_LIMIT)
    old, new = () if change.op == "added" else _inert(old), () if change.op == "removed" else _inert(new)
    return ChangeRow(_SIGNS[change.op], change.op, path, old, new, discards)


def _inert(pieces: Pieces) -> Pieces:
    return tuple((differs, esc(text, into="text", limit=None)) for differs, text in pieces)


def edit_rows(edits: Iterable[Edit]) -> tuple[ChangeRow, ...]:
    """Return staged edits as rows that can be discarded."""
    return tuple(change_row(edit.change, discards=edit.path) for edit in edits)


def hides(change: CheckpointChange) -> bool:
    """Whether a key on the path of a change is the name of a secret."""
    return any(map(is_secret_name, change.keys))


def masked_path(change: CheckpointChange) -> str:
    """Return the path of a change, cut after the name of a secret, because keys below it may be secret too."""
    secret = next((place for place, key in enumerate(change.keys) if is_secret_name(key)), None)
    return change.path if secret is None else path_text(change.keys[: secret + 1])


def _values_of(change: CheckpointChange) -> tuple[object, object]:
    """Return both values of a change; a request or a message is represented by its data."""
    is_request = change.op != "changed" and len(change.keys) == 2 and change.keys[0] == "requests"
    return _content_of(change.before, is_request), _content_of(change.after, is_request)


def _content_of(value: object, is_request: bool) -> object:
    if isinstance(value, WorkflowMessage):  # the sender is in the path
        return value.data
    if isinstance(value, list) and any(isinstance(each, WorkflowMessage) for each in value):
        return [_content_of(each, is_request) for each in value]
    return value["data"] if is_request and isinstance(value, dict) and "data" in value else value


# ---- lines of text ----------------------------------------------------------------------------------------------


def diff_text(diff: Any, *, limit: int | None = None, secrets: bool = False) -> str:
    """Return a `CheckpointDiff` as text: a line per checkpoint and a line per change, up to `limit`."""
    lines = [f"CheckpointDiff: {counts(diff)}", *(f"  {side:6}  {text}" for side, text in _sides(diff))]
    lines += (change_line(change, secrets=secrets) for change in diff.changes[:limit])
    if limit is not None and len(diff) > limit:
        lines.append(f"… {len(diff) - limit:,} more")
    return "\n".join(lines)


def counts(diff: Any) -> str:
    """Return the number of changes of each kind, in words."""
    counts = Counter(change.op for change in diff)
    return ", ".join(f"{counts[op]:,} {op}" for op in _SIGNS if counts[op]) or "no difference"


def change_line(change: CheckpointChange, *, secrets: bool = False) -> str:
    """Return a change as one line, such as `+ state.conv[12] = 'x'`."""
    values, start = _values_of(change), 0
    old, new = values
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > _LINE_LIMIT:
        start = max(0, _same_start(old, new) - _CONTEXT)  # so that the first difference is visible
    before, after = (short_value(value, secrets=secrets, start=start) for value in values)
    if hides(change) and not secrets:
        before = after = MASK
    path = esc(change.path if secrets else masked_path(change), into="line", limit=None)
    if change.op in ("added", "removed"):
        return f"{_SIGNS[change.op]} {path} = {after if change.op == 'added' else before}"
    return f"{_SIGNS[change.op]} {path}: {'reordered ' if change.op == 'reordered' else ''}{before} -> {after}"


def _same_start(before: Sequence[str], after: Sequence[str]) -> int:
    shorter = min(len(before), len(after))
    return next((at for at in range(shorter) if before[at] != after[at]), shorter)


def short_value(value: object, *, limit: int = _LINE_LIMIT, secrets: bool = False, start: int = 0) -> str:
    """Return a value as one line, cut with `…`; texts are quoted."""
    value = value if secrets else mask_secrets(value)
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


# ---- a table ----------------------------------------------------------------------------------------------------


def diff_bundle(diff: Any) -> dict[str, Any]:
    """Return a diff by media type: a table with the changed words marked, and the lines of `diff_text`."""
    head = element("p", element("b", "CheckpointDiff"), " ", element("span", counts(diff)), class_="ab_head")
    sides = Table("Checkpoints", ("", "checkpoint"), list(_sides(diff))).html()
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


def _sides(diff: Any) -> Iterator[tuple[str, str]]:
    for side, info in (("before", diff.before), ("after", diff.after)):
        facts = f"{info.checkpoint_id}  chain {info.workflow_name}, superstep {info.iteration}, {info.timestamp}"
        yield side, esc(facts, into="line", limit=400)


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
    same = _same_start(old, new)
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
