"""Drafts of any number: rows of one shape, and pairs of key and value."""

from collections.abc import Iterator
from typing import Any, TypeVar

from typing_extensions import override

from agentbench.notebook.forms.fields.field import NO_VALUE, Raw
from agentbench.notebook.forms.fields.shapes import Many, Pairs, Rows, Shape
from agentbench.notebook.forms.values.drafts import Draft, LeafDraft, Reading, below, draft_of, drafted_by, items_of
from agentbench.notebook.forms.values.groups import OneOfDraft

__all__ = ["ManyDraft", "PairDraft", "PairsDraft", "RowsDraft"]

# Most rows that code may add at once; a button adds one.
_MANY = 1000

M = TypeVar("M", bound=Many)


class ManyDraft(Draft[M]):
    """Any number of places of one shape.

    Attributes:
        rows: The places, in order.
    """

    def __init__(self, shape: M, key: str, parent: Draft[Any] | None = None) -> None:
        super().__init__(shape, key, parent)
        self.rows: list[Any] = []
        self._spare: list[Any] = []
        self._made = 0
        self.grow(shape.least)

    def make(self) -> Any:
        """Return a new row that is not yet in `rows`."""
        self._made += 1
        return self._row(below(self, f"+{self._made}"))

    def _row(self, key: str) -> Draft[Any]:
        raise NotImplementedError

    def grow(self, count: int) -> None:
        """Set the number of rows; rows that are removed come back when it grows again."""
        while len(self.rows) > count:
            self._spare.append(self.rows.pop())
        while len(self.rows) < count:
            self.rows.append(self._spare.pop() if self._spare else self.make())

    def add(self) -> Draft[Any]:
        """Add an empty row at the end and return it."""
        row: Draft[Any] = self.make()
        self.rows.append(row)
        self.touch()
        return row

    def remove(self, at: int) -> None:
        """Remove a row."""
        del self.rows[at]
        self.touch()

    def move(self, at: int, to: int) -> None:
        """Move a row."""
        self.rows.insert(to, self.rows.pop(at))
        self.touch()

    @override
    def children(self) -> Iterator[tuple[str, Draft[Any]]]:
        return ((str(at), row) for at, row in enumerate(self.rows))

    @override
    def child(self, name: str) -> Draft[Any] | None:
        if name == str(len(self.rows)):
            self.grow(len(self.rows) + 1)
        return super().child(name)

    @override
    def names(self) -> Iterator[str]:
        return (str(at) for at in range(len(self.rows) + 1))

    @override
    def raw(self) -> Any:
        if self.is_none:
            return None
        return str(len(self.rows)) if self.present or self.touched else NO_VALUE

    @override
    def may_set(self, text: Raw) -> str:
        if text in (None, "") or (text.isascii() and text.isdigit() and int(text) <= _MANY):
            return ""
        return f"The text of a list is the number of its rows, at most {_MANY}; name a row to type into it."

    @override
    def set_raw(self, text: Raw) -> None:
        super().set_raw(text)
        if text:
            self.grow(int(text))

    @override
    def clear(self) -> None:
        super().clear()
        self.rows = []

    def _check_count(self, reading: Reading) -> None:
        count, least, most = len(self.rows), self.shape.least, self.shape.most
        if count < least:
            reading.refuse(self, f"At least {least} needed; there {'is' if count == 1 else 'are'} {count}.")
        if most is not None and count > most:
            reading.refuse(self, f"At most {most} allowed; there are {count}.")


@drafted_by(Rows)
class RowsDraft(ManyDraft[Rows]):
    """Rows of one shape."""

    def _row(self, key: str) -> Draft[Any]:
        row = draft_of(self.shape.item(), key, self)
        last = self.rows[-1] if self.rows else None
        if isinstance(row, OneOfDraft) and isinstance(last, OneOfDraft):
            row.picked = last.picked
        return row

    def _fill(self, value: object) -> None:
        self.rows, self._spare = [], []
        for item in _list_of(value):
            row = self.make()
            self.rows.append(row)
            row.fill(item)

    def _read(self, reading: Reading) -> object:
        whole = self.shape.check is None
        items = [row.value(reading) if whole else row.read(reading) for row in self.rows]
        self._check_count(reading)
        if self.shape.unique:
            self._compare(items, reading)
        if any(item is NO_VALUE for item in items):
            return NO_VALUE
        try:
            return self.shape.makes(items)
        except TypeError:  # the parts are not hashable, but the value made of them may be
            return items

    def _compare(self, items: list[object], reading: Reading) -> None:
        for at, item in enumerate(items):
            if item is not NO_VALUE and item in items[:at]:
                first = items.index(item)
                reading.refuse(self.rows[at], f"Row {first + 1} has the same value.")


class PairDraft(Draft[Shape]):
    """A key and its value."""

    def __init__(self, shape: Pairs, key: str, parent: "PairsDraft") -> None:
        super().__init__(shape, key, parent)
        self.name = LeafDraft(shape.key, f"{key}.key", self)
        self.item = draft_of(shape.item(), f"{key}.value", self)

    @override
    def children(self) -> Iterator[tuple[str, Draft[Any]]]:
        yield "key", self.name
        yield "value", self.item

    @override
    def raw(self) -> Any:
        return NO_VALUE

    @override
    def step(self, part: object) -> Draft[Any] | None:
        return self.name if part == "[key]" else self.item.step(part)


@drafted_by(Pairs)
class PairsDraft(ManyDraft[Pairs]):
    """Pairs of key and value."""

    def _row(self, key: str) -> Draft[Any]:
        return PairDraft(self.shape, key, self)

    @override
    def step(self, part: object) -> Draft[Any] | None:
        return next((row for row in self.rows if row.name.text == str(part) or row.name.original == part), None)

    def _fill(self, value: object) -> None:
        self.rows, self._spare = [], []
        for name, item in items_of(value):
            row = self.make()
            self.rows.append(row)
            row.name.fill(name)
            row.item.fill(item)

    def _read(self, reading: Reading) -> object:
        whole = self.shape.check is None
        found: dict[Any, object] = {}
        for row in self.rows:
            name = row.name.value(reading)
            item = row.item.value(reading) if whole else row.item.read(reading)
            if name is NO_VALUE:
                continue
            if name in found:
                reading.refuse(row.name, "This key is there twice.")
            found[name] = item
        self._check_count(reading)
        return NO_VALUE if any(item is NO_VALUE for item in found.values()) else found


def _list_of(value: object) -> list[object]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return []
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
