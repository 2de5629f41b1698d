"""Pure functions that compare two values of any kind, part by part.

No behaviour of a value can make the comparison fail: an `==` or a property that raises, results that are not booleans,
and values that contain themselves only make it coarser.
"""

from __future__ import annotations

import copyreg
import dataclasses
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from difflib import SequenceMatcher
from enum import Enum
from itertools import zip_longest
from typing import Any
from uuid import UUID

from agentbench._copying import slots_of
from agentbench.checkpoints.difference.changes import ChangeOp, CheckpointChange, ItemId, Member, path_text
from agentbench.serialization.plain import are_equal

_ID_NAMES = ("message_id", "id", "request_id", "call_id", "checkpoint_id", "executor_id", "task_id", "run_id")


def find_ids(before: Sequence[Any], after: Sequence[Any]) -> tuple[str, list[Any], list[Any]] | None:
    """Return the name and the ids of all items of both lists; `None` if no name identifies all items."""
    for name in _ID_NAMES:
        if all(_id(item, name) is not None for items in (before, after) for item in items):
            old, new = ([_id(item, name) for item in items] for items in (before, after))
            if len(set(old)) == len(old) and len(set(new)) == len(new):
                return name, old, new
    return None


def _id(item: Any, name: str) -> Any:
    if isinstance(item, (str, bytes, int, float, type)):
        return None
    try:
        found = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    except Exception:  # noqa: BLE001 - properties are user code
        return None
    return found if type(found) in (str, int, UUID) else None


def align(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[int | None, int | None]]:
    """Pair the positions of equal items, in order, and the items between; `None` for an item on one side only."""
    if len(before) > len(after):  # the shorter one first, so that both directions find the same pairs
        yield from ((i, j) for j, i in align(after, before))
        return
    for _, at, at_end, to, to_end in SequenceMatcher(None, before, after).get_opcodes():
        yield from zip_longest(range(at, at_end), range(to, to_end))


# ---- parts of a value


ATOMS = frozenset({str, int, float, bool, type(None), bytes, bytearray, complex, type})
"""Exact types of values that have no parts and are compared by `==`."""

_ABSENT: Any = object()


def are_equal_atoms(before: Any, after: Any) -> bool:
    """Return whether both have the same type, one of `ATOMS`, and are equal."""
    cls = type(before)
    if cls is not type(after) or cls not in ATOMS:
        return False
    return bool(before == after) or (before != before and after != after)


def library_of_array(cls: type) -> str | None:
    """Return `"numpy"` or `"pandas"` for a class of arrays, series or frames, None for other classes."""
    for base in cls.__mro__:
        library = base.__module__.partition(".")[0]
        if base.__name__ in _ARRAYS.get(library, ()):
            return library
    return None


_ARRAYS = {"numpy": ("ndarray",), "pandas": ("DataFrame", "Series", "Index", "ExtensionArray")}


def are_equal_arrays(before: Any, after: Any) -> bool:
    """Compare two instances of one class of numpy or pandas, by the library's own methods."""
    if library_of_array(type(before)) == "pandas":
        is_frame = hasattr(type(before), "columns")  # its attribute `name` may be a column
        return bool(before.equals(after)) and (is_frame or are_equal(*(getattr(v, "name", 0) for v in (before, after))))
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    equal = before == after
    if bool(equal.all()):
        return True
    both_nan = (before != before) & (after != after)
    return bool((equal | both_nan).all())


def has_own_equality(value: Any) -> bool:
    """Return whether the class defines equality; exceptions have only identity."""
    cls: Any = type(value)
    return cls.__eq__ is not object.__eq__ and not isinstance(value, BaseException)


def declared_fields(value: Any) -> Sequence[str] | None:
    """Return the field names of a dataclass, a pydantic model, a named tuple or an exception; otherwise `None`."""
    cls = type(value)
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    models = getattr(cls, "model_fields", None)
    if isinstance(models, Mapping):
        return [*models, *(getattr(value, "__pydantic_extra__", None) or ())]
    if isinstance(value, BaseException):
        return ["args", *vars(value)]
    return list(getattr(cls, "_fields", ())) if isinstance(value, tuple) else None


def fields_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the declared fields, or of all attributes and slots; unset ones are skipped."""
    names = declared_fields(value)
    if names is None:
        names = [*slots_of(type(value), c_members=True), *getattr(value, "__dict__", ())]
    for name in names:
        item = getattr(value, name, _ABSENT)
        if item is not _ABSENT:
            yield name, item


def is_bare(value: Any) -> bool:
    """Return whether an instance consists of its attributes alone, so that two without attributes are equal."""
    cls: Any = type(value)
    if cls is object or cls in copyreg.dispatch_table or cls.__reduce__ is not object.__reduce__:
        return False
    if cls.__reduce_ex__ is not object.__reduce_ex__:
        return False
    try:
        value.__reduce_ex__(4)  # raises for C classes that hold more than attributes
    except TypeError:
        return False
    return True


# ---- the comparison


Keys = tuple[Any, ...]
_Changes = list[CheckpointChange]
_Reader = Callable[[Any, Any, Keys, "_Changes | None"], bool]

_DEEPEST = 80
_MOST_NOTED = 8


class Comparison:
    """Compares values that do not change during the comparison. Types matter: `1`, `1.0` and `True` differ.

    NaN equals NaN. Parts below the 80th level, and parts that occur in more than eight places, are compared as a whole.
    """

    def __init__(self, is_compared: Callable[[type, str], bool] = lambda cls, name: True) -> None:
        self._is_compared = is_compared
        self._open: set[tuple[int, int]] = set()
        # By the ids of both; the values are kept alive as long as their ids are used.
        self._known: dict[tuple[int, int], tuple[bool, Any, Any]] = {}
        self._n_noted: Counter[tuple[int, int]] = Counter()
        self._numbers: dict[Any, int] = {}
        self._number_of: dict[int, tuple[int, Any]] = {}
        self._readers: dict[type, _Reader] = {}

    def changes(self, before: Any, after: Any, keys: Keys = ()) -> _Changes:
        """Return the changes that lead from one value to the other, in the order of the parts."""
        out: _Changes = []
        self._differ(before, after, keys, out)
        return out

    def same(self, before: Any, after: Any) -> bool:
        """Return whether `changes` would be empty."""
        return not self._differ(before, after, (), None)

    # With `out`, differences are collected there; without it, the first one ends the search.

    def _differ(self, before: Any, after: Any, keys: Keys, out: _Changes | None) -> bool:
        if before is after or are_equal_atoms(before, after):
            return False
        cls = type(before)
        if cls is not type(after) or cls in ATOMS:
            return _note(out, "changed", keys, before, after)
        pair = (id(before), id(after))
        if pair in self._open:
            return False  # both contain themselves: differences are reported elsewhere
        differs, *_ = self._known.get(pair, (None,))
        if differs is False or (differs and out is None):
            return bool(differs)
        if len(self._open) >= _DEEPEST or self._n_noted[pair] >= _MOST_NOTED:
            return bool(differs or not are_equal(before, after)) and _note(out, "changed", keys, before, after)
        differs = self._inside(pair, (before, after), keys, out)
        self._known[pair] = (differs, before, after)
        self._n_noted[pair] += differs
        return differs

    def _inside(self, pair: tuple[int, int], values: tuple[Any, Any], keys: Keys, out: _Changes | None) -> bool:
        noted = len(out or ())
        self._open.add(pair)
        try:
            cls = type(values[0])
            if cls not in self._readers:
                self._readers[cls] = self._reader_for(values[0])
            return self._readers[cls](*values, keys, out)
        except Exception:  # noqa: BLE001 - values are user code: their keys, lengths and truth raise anything
            if out is not None:
                del out[noted:]
            return _note(out, "changed", keys, *values)
        finally:
            self._open.discard(pair)

    def _reader_for(self, value: Any) -> _Reader:
        if isinstance(value, Mapping):
            return self._mappings
        if isinstance(value, (list, tuple, deque)) and not hasattr(value, "_fields"):
            return self._sequences
        if isinstance(value, Set):
            return self._sets
        if isinstance(value, (Enum, type)):
            return self._wholes
        return self._objects if library_of_array(type(value)) is None else self._arrays

    def _each(self, parts: Iterable[tuple[Any, Any, Any]], keys: Keys, out: _Changes | None) -> bool:
        """Compare parts, each with its key, before and after, `_ABSENT` if missing."""
        any_differs = False
        for key, before, after in parts:
            if before is after or are_equal_atoms(before, after):
                continue
            at = (*keys, key)
            if before is _ABSENT:
                differs = _note(out, "added", at, None, after)
            elif after is _ABSENT:
                differs = _note(out, "removed", at, before, None)
            else:
                differs = self._differ(before, after, at, out)
            if differs and out is None:
                return True
            any_differs = any_differs or differs
        return any_differs

    def _mappings(self, before: Mapping[Any, Any], after: Mapping[Any, Any], keys: Keys, out: _Changes | None) -> bool:
        if _are_texts(before) and _are_texts(after):
            parts = _join(before, after)
        else:  # 1 and True are one key for a dict, but two for a reader
            old, new = ({self._number(key): (key, value) for key, value in each.items()} for each in (before, after))
            parts = ((b[0] if a is _ABSENT else a[0], _second(b), _second(a)) for _, b, a in _join(old, new))
        differs = self._each(parts, keys, out)
        if not differs and isinstance(before, OrderedDict) and list(before) != list(after):
            return _note(out, "reordered", keys, list(before), list(after))
        return differs

    def _sets(self, before: Set[Any], after: Set[Any], keys: Keys, out: _Changes | None) -> bool:
        old, new = ({self._number(member): member for member in each} for each in (before, after))
        parts = ((Member(b if a is _ABSENT else a), b, a) for _, b, a in _join(old, new))
        return self._each(((key, b, a) for key, b, a in parts if b is _ABSENT or a is _ABSENT), keys, out)

    def _wholes(self, before: Any, after: Any, keys: Keys, out: _Changes | None) -> bool:
        return not are_equal(before, after) and _note(out, "changed", keys, before, after)

    def _arrays(self, before: Any, after: Any, keys: Keys, out: _Changes | None) -> bool:
        if library_of_array(type(before)) == "numpy" and before.dtype.kind == "O" and before.shape == after.shape:
            same = self.same(before.tolist(), after.tolist())
        else:
            same = are_equal_arrays(before, after)
        return not same and _note(out, "changed", keys, before, after)

    def _objects(self, before: Any, after: Any, keys: Keys, out: _Changes | None) -> bool:
        is_record = declared_fields(before) is not None
        if not is_record and has_own_equality(before) and are_equal(before, after):
            return False
        old, new = self._fields(before), self._fields(after)
        if self._each(_join(old, new), keys, out):
            return True
        same = is_record or (not has_own_equality(before) and (bool(old) or is_bare(before)))
        return not same and _note(out, "changed", keys, before, after)

    def _fields(self, value: Any) -> dict[str, Any]:
        return {name: item for name, item in fields_of(value) if self._is_compared(type(value), name)}

    def _sequences(self, before: Sequence[Any], after: Sequence[Any], keys: Keys, out: _Changes | None) -> bool:
        shortest, longest = sorted((len(before), len(after)))
        if out is None and shortest != longest:
            return True
        start = self._same_from_here(zip(before, after, strict=False))
        if start == longest:
            return False
        if out is None:
            return True
        room = shortest - start
        end = min(room, self._same_from_here(zip(reversed(before), reversed(after), strict=False), room))
        old, new = list(before)[start : len(before) - end], list(after)[start : len(after) - end]
        ids = find_ids(old, new)
        if ids is not None:
            name, old_ids, new_ids = ids
            by_id = dict(zip(old_ids, old, strict=True)), dict(zip(new_ids, new, strict=True))
            return self._by_id(name, *by_id, keys, out)
        return self._in_order(old, new, start, keys, out)

    def _in_order(self, old: Sequence[Any], new: Sequence[Any], start: int, keys: Keys, out: _Changes) -> bool:
        numbers = [[self._number(item) for item in items] for items in (old, new)]
        if Counter(numbers[0]) == Counter(numbers[1]):
            return _note(out, "reordered", keys, old, new)
        parts = (
            (start + place, _ABSENT if i is None else old[i], _ABSENT if j is None else new[j])
            for i, j in align(*numbers)
            if (place := i if j is None else j) is not None
        )
        return self._each(parts, keys, out)

    def _same_from_here(self, pairs: Iterable[tuple[Any, Any]], at_most: int | None = None) -> int:
        count = 0
        for before, after in pairs:
            if count == at_most or not (before is after or are_equal_atoms(before, after) or self.same(before, after)):
                break
            count += 1
        return count

    def _by_id(self, name: str, old: dict[Any, Any], new: dict[Any, Any], keys: Keys, out: _Changes) -> bool:
        differs = self._each(((ItemId(name, key), b, a) for key, b, a in _join(old, new)), keys, out)
        stayed, now = [key for key in old if key in new], [key for key in new if key in old]
        return (stayed != now and _note(out, "reordered", keys, stayed, now)) or differs

    def _number(self, value: Any, depth: int = 24) -> int:
        """Return a number that is equal for equal values. Values of unknown equality get different numbers."""
        cls = type(value)
        if cls in ATOMS and cls is not bytearray:
            return self._number_of_key((cls, "nan" if value != value else value))
        if id(value) in self._number_of:
            return self._number_of[id(value)][0]
        number = self._number_of_key((cls, id(value)))
        self._number_of[id(value)] = number, value  # for values that contain themselves
        with suppress(Exception):  # values are user code
            number = self._number_of_key((cls, *self._parts(value, depth - 1)))
        self._number_of[id(value)] = number, value
        return number

    def _number_of_key(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _parts(self, value: Any, depth: int) -> Iterator[Any]:
        if isinstance(value, (Enum, type)):
            yield value
        elif depth <= 0 or library_of_array(type(value)) is not None:
            yield "whole", id(value)
        elif isinstance(value, Mapping):
            yield frozenset((self._number(key, depth), self._number(item, depth)) for key, item in value.items())
            yield from map(self._number, value if isinstance(value, OrderedDict) else ())
        elif isinstance(value, Set):
            yield frozenset(self._number(item, depth) for item in value)
        elif isinstance(value, (list, tuple, deque)):
            yield from (self._number(item, depth) for item in value)
        elif declared_fields(value) is None and has_own_equality(value):
            yield value
        else:
            fields = self._fields(value)
            yield None if fields or is_bare(value) else id(value)
            yield from ((name, self._number(item, depth)) for name, item in fields.items())


def _note(out: _Changes | None, op: ChangeOp, keys: Keys, before: Any, after: Any) -> bool:
    if out is not None:
        out.append(CheckpointChange(path_text(keys), op, before, after, keys))
    return True


def _are_texts(mapping: Mapping[Any, Any]) -> bool:
    return all(type(key) is str for key in mapping)


def _join(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield key, value before and value after: in the order before, then the new keys."""
    yield from ((key, item, after.get(key, _ABSENT)) for key, item in before.items())
    yield from ((key, _ABSENT, item) for key, item in after.items() if key not in before)


def _second(pair: Any) -> Any:
    return _ABSENT if pair is _ABSENT else pair[1]
