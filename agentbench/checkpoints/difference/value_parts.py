"""Pure functions: the parts of a value, and the equality of two values that are not taken apart."""

from __future__ import annotations

import copyreg
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentbench._copying import slots_of
from agentbench.serialization.plain import are_equal

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
