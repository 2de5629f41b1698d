"""The content of a form: its initial value, overlaid by the typed texts in one flat dictionary.

Texts stay texts until the value is read. For an unchanged place, the value is returned as the same
object. Keys identify places for the page and do not change when rows move; paths are for people: `address.city`,
`tags.0`, `limits.1.key`, `value.int`; `value` is the whole form.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from agentbench.notebook.forms.fields import NO_VALUE, ROOT, Field, Raw, holds, text_of

# Maximum number of rows that code may set at once; a button adds one row.
_MANY = 1000
_NAMED = 10


@dataclass
class Texts:
    """The content of a form: the initial value, and the changes by key."""

    value: object = NO_VALUE
    typed: dict[str, Raw] = field(default_factory=dict)
    """For a union the name of the chosen type, for other boxes empty; `None` for "none"."""
    rows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the rows of each changed list."""
    extra: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The entries without a field, for each group where JSON changed them."""
    cleared: frozenset[str] = frozenset()
    """Places whose value and default were cleared."""
    rows_made: int = 0

    def copy(self) -> "Texts":
        """Return a mutable copy."""
        return replace(self, typed=dict(self.typed), rows=dict(self.rows), extra=dict(self.extra))

    def drop(self, key: str) -> None:
        """Remove all changes at and below a place."""
        for changed in (self.typed, self.rows, self.extra):
            for each in [each for each in changed if is_in(each, key)]:
                del changed[each]
        self.cleared = frozenset(each for each in self.cleared if not is_in(each, key))


def is_in(key: str, around: str) -> bool:
    """Whether a key belongs to a place or to one below it."""
    return not around or key == around or key.startswith(f"{around}.")


def _around(keys: set[str]) -> set[str]:
    """Return the keys of all enclosing places."""
    enclosing = {""} if keys else set()
    for key in keys:
        while key := key.rpartition(".")[0]:
            enclosing.add(key)
    return enclosing


class ValuePlace:
    """A field with its content: one place of a form, as a view of its texts, rebuilt after each change.

    `value` is the initial value or the default of the type. `is_answer` tells whether it is the answer until it is
    changed: a default is added by the type itself.
    """

    def __init__(
        self, field: Field, texts: Texts, name: str = "", parent: "ValuePlace | None" = None, at: int = -1
    ) -> None:
        self.field, self.texts, self.name, self.parent = field, texts, name, parent
        if parent is None:
            self.key, self.path = "" if field.kind == "group" and not field.nullable else ROOT, ROOT
            self.value, self.is_answer, cleared = texts.value, texts.value is not NO_VALUE, False
            # The keys of places with typed text at or below them, only below them, or that were cleared.
            typed = {*texts.typed, *texts.rows, *texts.extra}
            below = _around(typed)
            self.changed = typed | below, below, texts.cleared | _around({*texts.cleared})
        else:
            # Schema names may be any text, and keys are sent to the page.
            word = name if name.isidentifier() or at >= 0 else f"#{parent.field.labels.index(name)}"
            self.key = f"{parent.key}.{word}" if parent.key else word
            first = parent.parent is None and parent.field.kind == "group" and not parent.field.positional
            label = name if at < 0 else str(at)
            inside = f"{parent.path}[{label}]" if at >= 0 or parent.field.positional else f"{parent.path}.{label}"
            self.path = label if first and (name != ROOT or not parent.key) else inside
            self.changed = parent.changed
            # The type does not distinguish a default from a value that was set.
            was_set = getattr(parent.value, "__pydantic_fields_set__", None)
            self.value = parent.part_value(name)
            self.is_answer = parent.is_answer and (was_set is None or name in was_set)
            cleared = parent.is_cleared and at < 0
        self.is_cleared: bool = cleared or self.key in texts.cleared
        if self.value is NO_VALUE:
            self.value, self.is_answer = field.default, False
        if self.is_cleared or (field.secret and not self.is_answer):
            self.value, self.is_answer = NO_VALUE, False

    def part_value(self, name: str) -> object:
        """Return the part of the value that belongs to a child place."""
        value = self.value
        if value is NO_VALUE or value is None:
            return NO_VALUE
        if self.field.kind == "union":
            return value if name == self._fitting else NO_VALUE
        if self.field.item:
            return self._items[int(name)] if name.isdigit() else NO_VALUE
        at = self.field.labels.index(name)
        if isinstance(value, (list, tuple)):
            return value[at] if at < len(value) else NO_VALUE
        if isinstance(value, Mapping):
            return value.get(name, value.get(self.field.parts()[at].key, NO_VALUE))
        return getattr(value, name, NO_VALUE)

    # ---- content ---------------------------------------------------------------------------------------------------

    @property
    def touched(self) -> bool:
        """Whether a person changed this place or one below."""
        return self.key in self.changed[0] or self.key in self.changed[2]

    @property
    def present(self) -> bool:
        """Whether the place has content."""
        return self.is_answer or self.key in self.changed[0]

    @property
    def is_none(self) -> bool:
        """Whether "none" is the answer."""
        typed = self.texts.typed.get(self.key, NO_VALUE)
        return (self.value is None and self.field.nullable) if typed is NO_VALUE else typed is None

    @property
    def is_unchanged(self) -> bool:
        """Whether the place still has its initial value."""
        # For JSON, the type or the inner fields decide for each part.
        whole = self.field.is_leaf or not isinstance(self.value, (dict, list, str, int, float))
        return self.is_answer and not self.touched and whole

    @property
    def is_closed(self) -> bool:
        """Whether this group is closed at first, because its type contains itself."""
        opened = isinstance(self.texts.typed.get(self.key), str) or self.key in self.changed[1]
        if self.field.of is None or opened or self.value not in (NO_VALUE, None):
            return False
        return any(each.field.of == self.field.of for each in self.ancestors)

    @cached_property
    def text(self) -> Any:
        """The text of a field; `None` for "none", `NO_VALUE` if empty, and for secrets and files that are set."""
        typed = self.texts.typed.get(self.key, NO_VALUE)
        hidden = self.field.secret or (self.field.kind == "file" and self.is_answer)
        return typed if typed is not NO_VALUE or self.value is NO_VALUE or hidden else text_of(self.field, self.value)

    @property
    def raw(self) -> Any:
        """The text of the place in `Form.raw`; `NO_VALUE` if it has none."""
        if self.field.is_leaf:
            return self.text
        if self.is_none:
            return None
        if self.field.kind not in ("rows", "pairs", "union") or not self.present:
            return NO_VALUE
        return self.picked if self.field.kind == "union" else str(len(self.row_names))

    @cached_property
    def picked(self) -> str:
        """The chosen type of a union."""
        labels = self.field.labels
        typed = self.texts.typed.get(self.key)
        if typed in labels:
            return str(typed)
        touched = (name for name in labels if self.key in self.changed[1] and self.part(name).touched)
        return next(touched, self._fitting or labels[0])

    @cached_property
    def _fitting(self) -> str:
        if self.value is NO_VALUE or self.value is None:
            return ""
        return next((part.name for part in self.field.parts() if holds(part.field(), self.value)), self.field.labels[0])

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names of the rows in keys, in order; initial rows are named by their position."""
        count = self.field.least if self.value is NO_VALUE and not self.is_cleared else len(self._items)
        return self.texts.rows.get(self.key, tuple(map(str, range(count))))

    @cached_property
    def _items(self) -> list[object]:
        value = self.value
        if self.field.kind == "pairs":
            return list(value.items()) if isinstance(value, Mapping) else []
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            return []
        return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)

    @property
    def extra(self) -> dict[str, Any]:
        """The entries of the value of a group that have no field."""
        value = self.value if isinstance(self.value, Mapping) else getattr(self.value, "__pydantic_extra__", None)
        field_names = {name for part in self.field.parts() for name in (part.name, part.key)}
        others = {name: item for name, item in (value or {}).items() if name not in field_names}
        return self.texts.extra.get(self.key, others if self.field.open_ended else {})

    # ---- parents and children --------------------------------------------------------------------------------------

    @property
    def ancestors(self) -> "Iterator[ValuePlace]":
        """The places around this one, innermost first."""
        at = self.parent
        while at is not None:
            yield at
            at = at.parent

    @cached_property
    def children(self) -> "list[ValuePlace]":
        """The current child places."""
        if self.field.item is not None:
            return [self.row(at) for at in range(len(self.row_names))]
        if self.is_closed or (self.is_none and self.key not in self.changed[1]):
            return []
        return [self.part(name) for name in ([self.picked] if self.field.kind == "union" else self.field.labels)]

    def part(self, name: str) -> "ValuePlace":
        """Return the place of a part; for a union, also of a type that is not chosen."""
        return ValuePlace(
            next(part.field() for part in self.field.parts() if part.name == name), self.texts, name, self
        )

    def row(self, at: int) -> "ValuePlace":
        """Return the place of a row at a position."""
        assert self.field.item is not None
        return ValuePlace(self.field.item(), self.texts, self.row_names[at], self, at)

    def again(self) -> "ValuePlace":
        """Return this place rebuilt after a change."""
        if self.parent is None:
            return ValuePlace(self.field, self.texts)
        parent = self.parent.again()
        return parent.row(parent.row_names.index(self.name)) if parent.field.item else parent.part(self.name)

    def walk(self) -> "Iterator[ValuePlace]":
        """Return this place and all below; the whole form comes last."""
        if self.parent is not None:
            yield self
        for child in self.children:
            yield from child.walk()
        if self.parent is None:
            yield self

    def find(self, path: str) -> "ValuePlace":
        """Return the place of a path in this form; raises `KeyError`. Adds the row right after the last one."""
        if path == ROOT and (self.key or ROOT not in self.field.labels):
            return self
        # Positions may be written in brackets or after a dot: `tags[0]`, `tags.0`.
        dotted = re.sub(r"\[(\d+)\]", r".\1", path)
        found = self.below(path) or self.below(dotted)
        if found is None and dotted.startswith(f"{ROOT}."):
            found = self.below(dotted[len(ROOT) + 1 :])
        if found is None:
            paths = [repr(place.path) for place in self.walk() if place.key]
            msg = (
                f"There is no field {path!r}. Paths look like `address.city` or `tags[0]`. Fields: {_first(paths, 20)}."
            )
            raise KeyError(msg)
        return found

    def below(self, path: str) -> "ValuePlace | None":
        """Return the place of a path below this one, `None` if there is none."""
        rows = self.field.item is not None
        count = len(self.row_names) if rows else 0
        names = [str(at) for at in range(count + 1)] if rows else self.field.labels
        # Names may contain dots, as in `dict[str, a.B]`, so the longest match is tried first.
        fitting = [name for name in names if path == name or path.startswith(f"{name}.")]
        for name in sorted(fitting, key=len, reverse=True):
            if rows and int(name) == count:
                self.grow(count + 1)
            child = self.row(int(name)) if rows else self.part(name)
            place = child if path == name else child.below(path[len(name) + 1 :])
            if place is not None:
                return place
        return None

    # ---- typing -----------------------------------------------------------------------------------------------------

    def problem_of(self, text: Raw) -> str:
        """Return the reason why this place does not accept a text; empty if it does."""
        if self.field.kind == "const":
            return "It cannot be changed."
        if self.field.is_leaf or not text:
            return ""
        names = _first([*map(repr, self.field.labels)], _NAMED)
        if self.field.kind == "union":
            return "" if text in self.field.labels else f"It must be one of {names}; use such a path to type into it."
        if self.field.item is None:
            return f"It is a group of fields: use the path of one of them ({names})."
        if text.isascii() and text.isdigit() and int(text) <= _MANY:
            return ""
        return f"The text of a list is its number of rows, at most {_MANY}; use the path of a row to type into it."

    def write(self, text: Raw) -> None:
        """Set the text of this place, as typing does."""
        typed, child = self.texts.typed, self
        for parent in self.ancestors:
            if parent.field.kind == "union":
                typed[parent.key] = child.name
            elif parent.is_none:
                typed[parent.key] = ""
            child = parent
        if self.field.item is not None and text:
            self.grow(int(text))
            text = ""
        typed[self.key] = self.picked if self.field.kind == "union" and text == "" else text

    def grow(self, count: int) -> None:
        """Set the number of rows."""
        names = self.row_names[:count]
        while len(names) < count:
            self.texts.rows_made += 1
            names = (*names, f"+{self.texts.rows_made}")
        self.texts.rows[self.key] = names

    def add(self) -> str:
        """Add an empty row and return its key; a union gets the type of the previous row."""
        last = self.children[-1] if self.children else None
        self.write(str(len(self.row_names) + 1))
        row = self.row(len(self.row_names) - 1)
        if last is not None and last.field.kind == "union":
            row.write(last.picked)
        return row.key

    def remove(self, at: int) -> None:
        """Remove a row; raises `IndexError` if it does not exist."""
        key, names = self.children[at].key, list(self.row_names)
        del names[at]
        self.write("")
        self.texts.rows[self.key] = tuple(names)
        self.texts.drop(key)

    def move(self, at: int, to: int) -> None:
        """Move a row to another position; raises `IndexError` if it does not exist."""
        names = list(self.row_names)
        _ = names[to]
        names.insert(to, names.pop(at))
        self.write("")
        self.texts.rows[self.key] = tuple(names)

    def clear(self) -> None:
        """Empty this place."""
        self.texts.drop(self.key)
        self.texts.cleared |= {self.key}


def _first(names: list[str], count: int) -> str:
    return ", ".join(names[:count]) + (", …" if len(names) > count else "")
