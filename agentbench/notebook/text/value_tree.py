"""Pure: values of any size as a tree of short rows, one level at a time, secrets masked.

The page asks for a level by the places of the rows above it (`[2, 0]`: the first row under the third), so that it can
reach nothing that was not sent to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench.notebook.text.escape import MASK, PREVIEW_LIMIT, esc
from agentbench.notebook.text.redact import fields_of, mask_secrets, preview, tuple_fields

__all__ = ["LEVEL_LIMIT", "Entry", "Level", "Row", "ValueTree"]

LEVEL_LIMIT = 200
FULL_LIMIT = 1_000_000
_KEY_LIMIT = 120
_ATOMS = (str, bytes, bytearray, int, float, complex, bool, type(None), type)


@dataclass(frozen=True, slots=True)
class Entry:
    """One named value.

    Attributes:
        name: The key.
        value: The value.
        note: A word beside the name, such as `changed`.
        path: Where the value may be edited, such as `draft.title`; `None` where it may not.
    """

    name: str
    value: object
    note: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a tree.

    Attributes:
        name: The key, as text.
        kind: Type of the value, and its length where it has one; empty where the text has it.
        text: The value in short.
        note: A word beside the name.
        opens: Whether there is a level below.
        cut: Whether `text` is not all of it.
        path: Where the value may be edited, `None` where it may not.
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
    """Named values, as a tree.

    Args:
        entries: The first level.
        staged: Values to show in place of those at these paths: edits that do not apply yet.
    """

    def __init__(self, entries: Sequence[Entry] = (), *, staged: Mapping[str, object] | None = None) -> None:
        self._staged = staged or {}
        self.entries = tuple(map(self._as_staged, entries))

    def level(self, path: Sequence[int] = (), start: int = 0) -> Level:
        """The rows below the row at `path`, from the `start`-th on; at most 200.

        Raises:
            LookupError: There is no such row.
        """
        if path:
            entry = self.at(path)
            total = _size(entry.value)
            below: Iterator[Entry] = self._below(entry)
        else:
            total, below = len(self.entries), iter(self.entries)
        chosen = tuple(_row(each) for each in islice(below, start, start + LEVEL_LIMIT))
        return Level(chosen, start, max(0, total - start - len(chosen)))

    def at(self, path: Sequence[int]) -> Entry:
        """The entry at a place.

        Raises:
            LookupError: There is none.
        """
        below: Iterator[Entry] = iter(self.entries)
        found: Entry | None = None
        for place in path:
            found = next(islice(below, place, None), None) if place >= 0 else None
            if found is None:
                break
            below = self._below(found)
        if found is None:
            msg = f"There is no row at {list(path)}."
            raise LookupError(msg)
        return found

    def edit_path(self, path: Sequence[int]) -> str | None:
        """Where the value at a place may be edited; `None` where it may not, as for what is masked.

        Raises:
            LookupError: There is no such place.
        """
        return _row(self.at(path)).path

    def _below(self, entry: Entry) -> Iterator[Entry]:
        return map(self._as_staged, _children(entry))

    def _as_staged(self, entry: Entry) -> Entry:
        if entry.path is None or entry.path not in self._staged:
            return entry
        return replace(entry, value=self._staged[entry.path], note="staged")

    def full_text(self, path: Sequence[int]) -> str:
        """All of the value at a place as text, up to a million characters, secrets masked.

        Raises:
            LookupError: There is none.
        """
        entry = self.at(path)
        value = mask_secrets(entry.value, key=entry.name)
        return esc(preview(value, limit=FULL_LIMIT), into="text", limit=FULL_LIMIT)


def _row(entry: Entry) -> Row:
    value = mask_secrets(entry.value, key=entry.name)
    hidden = value == MASK if isinstance(value, str) else False
    text = preview(value, limit=PREVIEW_LIMIT)
    return Row(
        name=esc(entry.name, into="line", limit=_KEY_LIMIT),
        kind="" if hidden else _kind(entry.value),
        text=esc(text, into="text"),
        note=esc(entry.note, into="line", limit=_KEY_LIMIT),
        opens=not hidden and _size(entry.value) > 0,
        cut=not hidden and (len(text) > PREVIEW_LIMIT or text.endswith("…")),
        path=None if hidden else entry.path,
    )


def _kind(value: object) -> str:
    if value is None or isinstance(value, str):
        return ""
    name = type(value).__name__
    if isinstance(value, (Mapping, Set, list, tuple)):
        return f"{name} ({len(value):,})"
    return name


def _size(value: object) -> int:
    if isinstance(value, (Mapping, Set, list, tuple)):
        return len(value)
    return 0 if isinstance(value, _ATOMS) else sum(1 for _ in fields_of(value))


def _children(entry: Entry) -> Iterator[Entry]:
    value: Any = entry.value
    if is_secret_name(entry.name) or isinstance(value, _ATOMS):
        return
    if isinstance(value, Mapping):
        # The key itself is never masked; its name decides whether its value is.
        yield from (
            Entry(key if isinstance(key, str) else preview(key, limit=_KEY_LIMIT), v, path=_below_path(entry, key))
            for key, v in value.items()
        )
    elif isinstance(value, (Set, list, tuple)):
        yield from (
            Entry(str(key), item, path=None if isinstance(value, Set) else _below_path(entry, key))
            for key, item in zip(tuple_fields(value) or range(len(value)), value, strict=True)
        )
    else:
        declared = dataclasses.is_dataclass(value) or hasattr(type(value), "model_fields")
        yield from (
            Entry(name, item, path=_below_path(entry, name) if declared else None) for name, item in fields_of(value)
        )


def _below_path(entry: Entry, key: object) -> str | None:
    """Path of a value inside another one; `None` where a path could mean two places."""
    if entry.path is None or not (isinstance(key, int) or (isinstance(key, str) and key and "." not in key)):
        return None
    return f"{entry.path}.{key}"
