"""Copies of values, so that what was shown or saved does not change when its owner goes on working.

A structural copy with the result of `copy.deepcopy` at a fraction of its cost: immutable values are shared, flat
containers are copied in one step, and only nested containers pay for the bookkeeping that keeps aliases and cycles.
"""

import copy
import operator
import sys
import types
import weakref
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")
_Memo = dict[int, Any]

_ABSENT = object()

_SHARED_TYPES: set[type] = {
    str,
    int,
    float,
    bool,
    type(None),
    bytes,
    complex,
    range,
    type,
    property,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    types.CodeType,
    types.EllipsisType,
    types.NotImplementedType,
    types.GenericAlias,
    types.UnionType,
    weakref.ref,
}
"""Exact types whose values are returned as they are. Grows by `register_frozen` and by first sight of a known type."""

_SHARED_BY_NAME = {
    "datetime": frozenset({"date", "datetime", "time", "timedelta", "timezone"}),
    "decimal": frozenset({"Decimal"}),
    "fractions": frozenset({"Fraction"}),
    "uuid": frozenset({"UUID"}),
    "zoneinfo": frozenset({"ZoneInfo"}),
}
"""Immutable standard types by module: named rather than imported, since most programs never load all of them."""


def isolate(value: T) -> T:
    """Return a copy of `value` that shares nothing mutable with it.

    Equal to `copy.deepcopy(value)`, aliases and cycles included, but immutable values, and instances of classes given
    to `register_frozen`, are shared instead of copied.

    Args:
        value: Anything.

    Returns:
        The copy, or `value` itself where nothing in it can change.

    Raises:
        Exception: Whatever copying a foreign object raises; usually `TypeError` for locks, sockets and the like.
    """
    cls = type(value)
    if cls in _SHARED_TYPES:
        return value
    if cls is list or cls is set:
        flat: Any = value.copy()  # type: ignore[attr-defined]
        if _SHARED_TYPES.issuperset(map(type, flat)):
            return flat  # type: ignore[no-any-return]
    elif cls is dict:
        flat = value.copy()  # type: ignore[attr-defined]
        if _SHARED_TYPES.issuperset(map(type, flat.values())) and _SHARED_TYPES.issuperset(map(type, flat)):
            return flat  # type: ignore[no-any-return]
    memo: _Memo = {}
    memo[id(memo)] = []
    return _copy(value, memo)  # type: ignore[no-any-return]


def isolate_or_same(value: T) -> T:
    """Return `isolate(value)`, or `value` itself where it cannot be copied.

    For copies that only keep the books, such as those in events: they must never make a run fail.

    Args:
        value: Anything.

    Returns:
        The copy, else the live reference.
    """
    if type(value) in _SHARED_TYPES:
        return value
    try:
        return isolate(value)
    except Exception:  # noqa: BLE001  copying runs foreign `__deepcopy__` and `__reduce__` methods, which raise anything
        return value


def is_atomic(value: object) -> bool:
    """Tell by type alone whether `isolate` returns `value` as it is.

    Containers are never atomic, not even a tuple of numbers, because their type does not tell what they hold.

    Args:
        value: Anything.

    Returns:
        `True` for immutable plain values, enum members, classes, functions, modules and registered frozen classes.
    """
    cls = type(value)
    return cls in _SHARED_TYPES or isinstance(value, (Enum, type)) or _is_known_by_name(cls)


def register_frozen(cls: type) -> None:
    """Share the instances of `cls` instead of copying them.

    For classes whose instances are not changed once they have been saved. Only exactly this class: a subclass may add
    state that does change, and is registered on its own.

    Args:
        cls: The class.
    """
    _SHARED_TYPES.add(cls)


def _is_known_by_name(cls: type) -> bool:
    if cls.__name__ not in _SHARED_BY_NAME.get(cls.__module__, ()):
        return False
    if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls:
        return False
    _SHARED_TYPES.add(cls)
    return True


def _copy(value: Any, memo: _Memo) -> Any:
    cls = type(value)
    if cls in _SHARED_TYPES:
        return value
    known = memo.get(id(value), _ABSENT)
    if known is not _ABSENT:
        return known
    copier = _COPIERS.get(cls)
    if copier is not None:
        return copier(value, memo)
    if is_atomic(value):
        return value
    return copy.deepcopy(value, memo)


def _remember(original: Any, duplicate: Any, memo: _Memo) -> None:
    """Note the copy of `original`, and keep the latter alive: a freed object's id could name another one."""
    memo[id(original)] = duplicate
    memo[id(memo)].append(original)


def _copy_list(value: list[Any], memo: _Memo) -> list[Any]:
    duplicate = value.copy()
    _remember(value, duplicate, memo)
    if not _SHARED_TYPES.issuperset(map(type, duplicate)):
        for index, item in enumerate(duplicate):
            if type(item) not in _SHARED_TYPES:
                duplicate[index] = _copy(item, memo)
    return duplicate


def _copy_dict(value: dict[Any, Any], memo: _Memo) -> dict[Any, Any]:
    duplicate = value.copy()
    _remember(value, duplicate, memo)
    if not _SHARED_TYPES.issuperset(map(type, duplicate)):
        entries = list(duplicate.items())
        duplicate.clear()
        for key, item in entries:
            duplicate[_copy(key, memo)] = _copy(item, memo)
    elif not _SHARED_TYPES.issuperset(map(type, duplicate.values())):
        for key, item in duplicate.items():
            if type(item) not in _SHARED_TYPES:
                duplicate[key] = _copy(item, memo)
    return duplicate


def _copy_set(value: set[Any], memo: _Memo) -> set[Any]:
    duplicate = value.copy()
    _remember(value, duplicate, memo)
    if not _SHARED_TYPES.issuperset(map(type, duplicate)):
        members = list(duplicate)
        duplicate.clear()
        duplicate.update(_copy(member, memo) for member in members)
    return duplicate


def _copy_tuple(value: tuple[Any, ...], memo: _Memo) -> tuple[Any, ...]:
    if _SHARED_TYPES.issuperset(map(type, value)):
        return value
    items = [_copy(item, memo) for item in value]
    return _settle(value, tuple(items), memo, changed=any(map(operator.is_not, items, value)))


def _copy_frozenset(value: frozenset[Any], memo: _Memo) -> frozenset[Any]:
    if _SHARED_TYPES.issuperset(map(type, value)):
        return value
    members = list(value)
    copies = [_copy(member, memo) for member in members]
    return _settle(value, frozenset(copies), memo, changed=any(map(operator.is_not, copies, members)))


def _settle(original: T, duplicate: T, memo: _Memo, *, changed: bool) -> T:
    """Choose what stands for an immutable container whose items were copied."""
    if not changed:
        return original
    known = memo.get(id(original), _ABSENT)
    if known is not _ABSENT:  # a cycle led back here while the items were copied
        return known  # type: ignore[no-any-return]
    _remember(original, duplicate, memo)
    return duplicate


_COPIERS: dict[type, Callable[[Any, _Memo], Any]] = {
    list: _copy_list,
    dict: _copy_dict,
    set: _copy_set,
    tuple: _copy_tuple,
    frozenset: _copy_frozenset,
}
