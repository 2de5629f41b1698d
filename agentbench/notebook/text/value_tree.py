"""Pure: values of any size as a tree of short rows, one level at a time, secrets masked.

The page asks for a level by the places of the rows above it (`[2, 0]`: the first row under the third), so that it can
reach nothing that was not sent to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from agentbench._secrets import is_secret_name, mask_secrets
from agentbench.checkpoints.difference.changes import LONGEST_KEY, step_text
from agentbench.notebook.text.escape import MASK, PREVIEW_LIMIT, esc
from agentbench.notebook.text.redact import fields_of, preview

__all__ = ["LEVEL_LIMIT", "Entry", "Level", "Row", "ValueTree"]

LEVEL_LIMIT = 200
FULL_LIMIT = 1_000_000
_KEY_LIMIT = 120
_CONTAINERS = (Mapping, Set, list, tuple)
_ATOMS = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


@dataclass(frozen=True, slots=True)
class Entry:
    """One named value, with a word beside the name (`changed`) and the path where it may be edited, if it may."""

    name: str
    value: object
    note: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a tree, as text; `kind` is the type and length of the value, empty where the text has it.

    `opens`: there is a level below; `cut`: `text` is not all of it; `path`: where it may be edited, `None` if masked.
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
    """Some rows that lie beside each other. `more`: how many follow them."""

    rows: tuple[Row, ...]
    start: int
    more: int


class ValueTree:
    """Named values, as a tree. Methods raise `LookupError` for a path that leads nowhere.

    `staged` are values to show in place of those at these paths: edits that do not apply yet.
    """

    def __init__(self, entries: Sequence[Entry] = (), *, staged: Mapping[str, object] | None = None) -> None:
        self._staged = staged or {}
        self.entries = tuple(map(self._as_staged, entries))

    def level(self, path: Sequence[int] = (), start: int = 0) -> Level:
        """Return the rows below the row at `path`, from the `start`-th on; at most 200."""
        if path:
            entry = self.at(path)
            total, below = _size(entry.value), self._below(entry)
        else:
            total, below = len(self.entries), iter(self.entries)
        chosen = tuple(_row(each) for each in islice(below, start, start + LEVEL_LIMIT))
        return Level(chosen, start, max(0, total - start - len(chosen)))

    def at(self, path: Sequence[int]) -> Entry:
        """Return the entry at a place."""
        below: Iterator[Entry] = iter(self.entries)
        found: Entry | None = None
        for place in path:
            found = next(islice(below, max(place, 0), None), None)
            below = iter(()) if found is None else self._below(found)
        if found is None or min(path) < 0:
            msg = f"There is no row at {list(path)}."
            raise LookupError(msg)
        return found

    def edit_path(self, path: Sequence[int]) -> str | None:
        """Return where the value at a place may be edited; `None` where it may not, as for what is masked."""
        return _row(self.at(path)).path

    def full_text(self, path: Sequence[int]) -> str:
        """Return all of the value at a place as text, up to a million characters, secrets masked."""
        entry = self.at(path)
        value = mask_secrets(entry.value, key=entry.name)
        return esc(preview(value, limit=FULL_LIMIT), into="text", limit=FULL_LIMIT)

    def _below(self, entry: Entry) -> Iterator[Entry]:
        return map(self._as_staged, _children(entry))

    def _as_staged(self, entry: Entry) -> Entry:
        if entry.path is None or entry.path not in self._staged:
            return entry
        return replace(entry, value=self._staged[entry.path], note="edited")


def _row(entry: Entry) -> Row:
    value = mask_secrets(entry.value, key=entry.name)
    hidden = isinstance(value, str) and value == MASK
    text = preview(value, limit=PREVIEW_LIMIT)
    is_text = entry.value is None or isinstance(entry.value, str)
    count = f" ({len(entry.value):,})" if isinstance(entry.value, _CONTAINERS) else ""
    return Row(
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
        # The key itself is never masked; its name decides whether its value is.
        name = key if isinstance(key, str) else preview(key, limit=_KEY_LIMIT)
        is_clear = type(key) is int or (isinstance(key, str) and key.isprintable() and len(key) <= LONGEST_KEY)
        path = f"{entry.path}{step_text(key)}" if editable and entry.path is not None and is_clear else None
        yield Entry(name, item, path=path)
