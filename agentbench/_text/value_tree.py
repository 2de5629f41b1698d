"""Pure: values of any size as a tree of short rows, one level at a time, secrets masked.

The page asks for a level by the positions of its parent rows (`[2, 0]`: the first row below the third), so that it
cannot reach anything that was not sent to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from agentbench._secrets import is_secret_name, mask_secrets
from agentbench._text.escape import MASK, PREVIEW_LIMIT, esc
from agentbench._text.redact import fields_of, preview
from agentbench.checkpoints.difference.changes import LONGEST_KEY, step_text

LEVEL_LIMIT = 200
FULL_LIMIT = 1_000_000
_KEY_LIMIT = 120
_CONTAINERS = (Mapping, Set, list, tuple)
_ATOMS = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


@dataclass(frozen=True, slots=True)
class Entry:
    """One named value, with a note (`changed`) and the path for editing, if it is editable."""

    name: str
    value: object
    note: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One line of a tree, as text; `kind` is the type and length of the value, empty if the text contains it.

    `opens`: has a level below; `cut`: `text` is shortened; `path`: path for editing, `None` if masked.
    """

    name: str
    kind: str
    text: str
    note: str
    opens: bool
    cut: bool
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """Some consecutive rows of a level. `more`: number of rows after them."""

    rows: tuple[TreeRow, ...]
    start: int
    more: int


class ValueTree:
    """Named values, as a tree. Methods raise `LookupError` for an invalid path.

    `staged` are values by path that replace the current ones: edits that are not applied yet.
    """

    def __init__(self, entries: Sequence[Entry] = (), *, staged: Mapping[str, object] | None = None) -> None:
        self._staged = staged or {}
        self.entries = tuple(map(self._as_staged, entries))

    def level(self, path: Sequence[int] = (), start: int = 0) -> Level:
        """Return at most 200 rows below the row at `path`, starting at index `start`."""
        if path:
            entry = self.at(path)
            total, below = _size(entry.value), self._below(entry)
        else:
            total, below = len(self.entries), iter(self.entries)
        chosen = tuple(_row(each) for each in islice(below, start, start + LEVEL_LIMIT))
        return Level(chosen, start, max(0, total - start - len(chosen)))

    def at(self, path: Sequence[int]) -> Entry:
        """Return the entry at a path."""
        below: Iterator[Entry] = iter(self.entries)
        found: Entry | None = None
        for place in path:
            found = next(islice(below, max(place, 0), None), None)
            below = iter(()) if found is None else self._below(found)
        if found is None or min(path) < 0:
            msg = f"Row {list(path)} does not exist."
            raise LookupError(msg)
        return found

    def edit_path(self, path: Sequence[int]) -> str | None:
        """Return the edit path of the value at a path; `None` if it is not editable, for example masked."""
        return _row(self.at(path)).path

    def full_text(self, path: Sequence[int]) -> str:
        """Return the value at a path as text, up to a million characters, secrets masked."""
        entry = self.at(path)
        value = mask_secrets(entry.value, key=entry.name)
        return esc(preview(value, limit=FULL_LIMIT), into="text", limit=FULL_LIMIT)

    def _below(self, entry: Entry) -> Iterator[Entry]:
        return map(self._as_staged, _children(entry))

    def _as_staged(self, entry: Entry) -> Entry:
        if entry.path is None or entry.path not in self._staged:
            return entry
        return replace(entry, value=self._staged[entry.path], note="edited")


def _row(entry: Entry) -> TreeRow:
    value = mask_secrets(entry.value, key=entry.name)
    hidden = isinstance(value, str) and value == MASK
    text = preview(value, limit=PREVIEW_LIMIT)
    is_text = entry.value is None or isinstance(entry.value, str)
    count = f" ({len(entry.value):,})" if isinstance(entry.value, _CONTAINERS) else ""
    return TreeRow(
        name=esc(entry.name, into="line", limit=_KEY_LIMIT),
        kind="" if hidden or is_text else f"{type(entry.value).__name__}{count}",
        text=esc(text, into="text"),
        note=esc(entry.note, into="line", limit=_KEY_LIMIT),
        opens=not hidden and _size(entry.value) > 0,
        cut=not hidden and (len(text) > PREVIEW_LIMIT or text.endswith("…")),
        path=None if hidden else entry.path,
    )


def _size(value: object) -> int:
    if isinstance(value, _CONTAINERS):
        return len(value)
    return 0 if isinstance(value, _ATOMS) else sum(1 for _ in fields_of(value))


def _children(entry: Entry) -> Iterator[Entry]:
    value: Any = entry.value
    if is_secret_name(entry.name) or isinstance(value, _ATOMS):
        return
    editable = True
    children: Iterable[tuple[Any, object]]
    if isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, _CONTAINERS) and not hasattr(value, "_fields"):
        children, editable = enumerate(value), not isinstance(value, Set)
    else:
        children = fields_of(value)
        editable = isinstance(value, tuple) or dataclasses.is_dataclass(value) or hasattr(type(value), "model_fields")
    for key, item in children:
        # The key itself is never masked; its name decides whether the value is masked.
        name = key if isinstance(key, str) else preview(key, limit=_KEY_LIMIT)
        is_clear = type(key) is int or (isinstance(key, str) and key.isprintable() and len(key) <= LONGEST_KEY)
        path = f"{entry.path}{step_text(key)}" if editable and entry.path is not None and is_clear else None
        yield Entry(name, item, path=path)
