"""Copies of values, so that a displayed or saved value does not change when the original is modified.

The result equals that of `copy.deepcopy`, at a fraction of the cost: immutable values are shared, flat containers
are copied in one step, and only nested containers need the bookkeeping that preserves aliases and cycles.
"""

import copy
import copyreg
import operator
import sys
import types
import weakref
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")
_Memo = dict[int, Any]
_Retain = Callable[[object], None]
_Copier = Callable[[Any, _Memo, _Retain], Any]

_ABSENT = object()

_LONG = 16
"""From this length on, it pays to check first whether a list contains only shared values."""

SHARED_TYPES: set[type] = {
    *(str, int, float, bool, type(None), bytes, complex, range, type, property, weakref.ref),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType),
    *(types.EllipsisType, types.NotImplementedType, types.GenericAlias, types.UnionType),
}
"""Exact types whose values are returned unchanged. Extended by `register_frozen` and when a known type is first met."""

_SHARED_BY_NAME = {
    "datetime": frozenset({"date", "datetime", "time", "timedelta", "timezone"}),
    "decimal": frozenset({"Decimal"}),
    "fractions": frozenset({"Fraction"}),
    "uuid": frozenset({"UUID"}),
    "zoneinfo": frozenset({"ZoneInfo"}),
}
"""Immutable standard types by module; named instead of imported, since most programs never load all of them."""


def isolate(value: T) -> T:
    """Return the same copy as `copy.deepcopy(value)`, but share immutable values and those of `register_frozen`."""
    cls = type(value)
    if cls in SHARED_TYPES:
        return value
    if cls is list or cls is set:
        flat: Any = value.copy()  # type: ignore[attr-defined]
        if SHARED_TYPES.issuperset(map(type, flat)):
            return flat  # type: ignore[no-any-return]
    elif cls is dict:
        flat = value.copy()  # type: ignore[attr-defined]
        if SHARED_TYPES.issuperset(map(type, flat.values())) and SHARED_TYPES.issuperset(map(type, flat)):
            return flat  # type: ignore[no-any-return]
    originals: list[object] = []
    return _copy_part(value, {}, originals.append)  # type: ignore[no-any-return]


def isolate_but(value: T, replaced: dict[int, Any]) -> T:
    """Return a copy like `isolate`, in which some mutable objects, named by their `id`, are replaced."""
    originals: list[object] = []
    return _copy_part(value, {**replaced}, originals.append)  # type: ignore[no-any-return]


def isolate_or_same(value: T) -> T:
    """Return `isolate(value)`, or `value` itself if it cannot be copied. For records, which must not fail a run."""
    if type(value) in SHARED_TYPES:
        return value
    try:
        return isolate(value)
    except Exception:  # noqa: BLE001  copying runs foreign `__deepcopy__` and `__reduce__` methods, which raise anything
        return value


def is_atomic(value: object) -> bool:
    """Return by type alone whether `isolate` returns `value` unchanged; containers are never atomic."""
    cls = type(value)
    return cls in SHARED_TYPES or isinstance(value, (Enum, type)) or _is_known_by_name(cls)


def register_frozen(cls: type) -> None:
    """Share the instances of exactly `cls`, which do not change once saved, instead of copying them."""
    SHARED_TYPES.add(cls)


def _is_known_by_name(cls: type) -> bool:
    if cls.__name__ not in _SHARED_BY_NAME.get(cls.__module__, ()):
        return False
    if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls:
        return False
    SHARED_TYPES.add(cls)
    return True


# A copier looks into `memo` first, stores its copy there under the id of the original, and keeps the original alive: if
# another thread dropped it meanwhile, a new object could get the same id.


def _copy_list(value: list[Any], memo: _Memo, retain: _Retain) -> list[Any]:
    ref = id(value)
    if ref in memo:
        return memo[ref]  # type: ignore[no-any-return]
    memo[ref] = duplicate = value.copy()
    retain(value)
    shared = SHARED_TYPES
    if len(duplicate) > _LONG and shared.issuperset(map(type, duplicate)):
        return duplicate
    for index, item in enumerate(duplicate):
        cls = type(item)
        if cls not in shared:
            duplicate[index] = _COPIERS.get(cls, _copy_other)(item, memo, retain)
    return duplicate


def _copy_dict(value: dict[Any, Any], memo: _Memo, retain: _Retain) -> dict[Any, Any]:
    ref = id(value)
    if ref in memo:
        return memo[ref]  # type: ignore[no-any-return]
    memo[ref] = duplicate = value.copy()
    retain(value)
    shared = SHARED_TYPES
    for key, item in duplicate.items():
        cls = type(item)
        if cls not in shared:
            duplicate[key] = _COPIERS.get(cls, _copy_other)(item, memo, retain)
        if type(key) not in shared:
            duplicate.clear()
            for each, held in list(value.items()):
                duplicate[_copy_part(each, memo, retain)] = _copy_part(held, memo, retain)
            return duplicate
    return duplicate


def _copy_set(value: set[Any], memo: _Memo, retain: _Retain) -> set[Any]:
    ref = id(value)
    if ref in memo:
        return memo[ref]  # type: ignore[no-any-return]
    memo[ref] = duplicate = value.copy()
    retain(value)
    if not SHARED_TYPES.issuperset(map(type, duplicate)):
        members = list(duplicate)
        duplicate.clear()
        duplicate.update([_copy_part(member, memo, retain) for member in members])
    return duplicate


def _copy_frozen_container(value: Any, memo: _Memo, retain: _Retain) -> Any:
    """Copy a tuple or frozenset; share it if all its items are shared."""
    ref = id(value)
    if ref in memo:
        return memo[ref]
    items = [_copy_part(item, memo, retain) for item in value]
    if not any(map(operator.is_not, items, value)):
        return value
    if ref not in memo:  # otherwise a cycle led back to it while its items were copied
        memo[ref] = type(value)(items)
        retain(value)
    return memo[ref]


def _copy_part(value: Any, memo: _Memo, retain: _Retain) -> Any:
    cls = type(value)
    return value if cls in SHARED_TYPES else _COPIERS.get(cls, _copy_other)(value, memo, retain)


def _copy_other(value: Any, memo: _Memo, retain: _Retain) -> Any:
    ref = id(value)
    if ref in memo:
        return memo[ref]
    cls = type(value)
    known = _COPIERS_OF_CLASSES.get(id(cls))
    if known is not None:
        copier = known[1]
    else:
        if is_atomic(value):
            copier = lambda value, memo, retain: value  # noqa: E731
        elif _is_plain(value, cls):
            copier = _plain_copier(value, cls)
        else:
            copier = lambda value, memo, retain: copy.deepcopy(value, memo)  # noqa: E731
        number = id(cls)
        _COPIERS_OF_CLASSES[number] = weakref.ref(cls, lambda _: _COPIERS_OF_CLASSES.pop(number, None)), copier
    return copier(value, memo, retain)


def _is_plain(value: Any, cls: Any) -> bool:
    """Return whether `copy.deepcopy` would copy only the attributes of an instance."""
    if cls.__new__ is not object.__new__ or cls in copyreg.dispatch_table:
        return False
    if any(hasattr(cls, name) for name in ("__deepcopy__", "__getnewargs__", "__getnewargs_ex__")):
        return False
    if cls.__reduce_ex__ is not object.__reduce_ex__ or cls.__reduce__ is not object.__reduce__:
        return False
    for name in ("__getstate__", "__setstate__"):
        method = getattr(cls, name, None)
        # Frozen slotted dataclasses have generated methods, which copy the fields.
        if method is not getattr(object, name, None) and getattr(method, "__module__", None) != "dataclasses":
            return False
    try:
        value.__reduce_ex__(4)  # raises for C classes that hold more than attributes
    except TypeError:
        return False
    return True


def slots_of(cls: type, *, c_members: bool = False) -> tuple[str, ...]:
    """Return the names of all slots of a class, base classes first; with `c_members` also those of C classes."""
    return tuple([member.__name__ for member in _slot_members(cls, c_members=c_members)])


def _slot_members(cls: type, *, c_members: bool = False) -> tuple[types.MemberDescriptorType, ...]:
    return tuple(
        member
        for base in reversed(cls.__mro__)
        if c_members or "__slots__" in vars(base)
        for member in vars(base).values()
        if isinstance(member, types.MemberDescriptorType)
    )


def _plain_copier(value: Any, cls: type) -> _Copier:
    has_dict = hasattr(value, "__dict__")
    slots = [(member.__name__, member.__get__, member.__set__) for member in _slot_members(cls)]

    def copy_plain(value: Any, memo: _Memo, retain: _Retain) -> Any:
        duplicate = object.__new__(type(value))
        memo[id(value)] = duplicate
        retain(value)
        shared = SHARED_TYPES
        if has_dict:
            attributes = value.__dict__.copy()
            for name, item in attributes.items():
                cls = type(item)
                if cls not in shared:
                    attributes[name] = _COPIERS.get(cls, _copy_other)(item, memo, retain)
            duplicate.__dict__.update(attributes)
        for name, read, assign in slots:
            try:
                item = read(value)
            except AttributeError:
                item = getattr(value, name, _ABSENT)  # a class may compute attributes that are not set
                if item is _ABSENT:
                    continue
            cls = type(item)
            if cls not in shared:
                item = _COPIERS.get(cls, _copy_other)(item, memo, retain)
            assign(duplicate, item)
        return duplicate

    return copy_plain


_COPIERS: dict[type, _Copier] = {
    list: _copy_list,
    dict: _copy_dict,
    set: _copy_set,
    tuple: _copy_frozen_container,
    frozenset: _copy_frozen_container,
}
_COPIERS_OF_CLASSES: dict[int, tuple[weakref.ref[type], _Copier]] = {}
"""How to copy instances of the classes met so far, by the id of the class. Its weak reference removes the entry before
the id is used again: notebook cells redefine classes.
"""
