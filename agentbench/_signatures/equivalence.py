"""Classes that can replace others although `isinstance` says no: numbers, and classes that were defined again."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, get_args

from agentbench._user_code import warn_user
from agentbench.exceptions import WorkflowWarning

_NUMPY_BASES = {"bool": bool, "bool_": bool, "integer": int, "floating": float, "complexfloating": complex}
"""Python's number classes, by the numpy classes that are the bases of its scalars. Found by name, because numpy values
may reach a program that does not use numpy itself.
"""
NUMBERS = (bool, int, float, complex)

# Each class of a value is compared once; weak, so that a class redefined in a notebook is not kept alive.
_told: weakref.WeakKeyDictionary[type, set[str]] = weakref.WeakKeyDictionary()
_numbers_of: weakref.WeakKeyDictionary[type, frozenset[type]] = weakref.WeakKeyDictionary()


def stands_for(cls: type, classes: tuple[Any, ...]) -> bool:
    """Return whether values of `cls` can be passed where instances of one of `classes` are declared.

    An `int` can be passed as a `float`, and either as a `complex`; a numpy scalar as the Python number it represents.
    An instance of a class that was redefined in a notebook, with the same fields, can be passed as the old class.
    """
    numbers = _numbers_of.get(cls)
    if numbers is None:
        numbers = _numbers_of[cls] = _find_numbers(cls)
    if numbers and not numbers.isdisjoint(classes):
        return True
    if not any(each.__module__ == "__main__" for each in cls.__mro__):
        return False
    again = _find_redefinition([cls], classes)
    return again is not None and again[0].__module__ == "__main__" and _fields(again[0]) == _fields(again[1]) != {}


def python_number(value: Any) -> Any:
    """Return the Python number of a numpy scalar; return other values unchanged."""
    cls = type(value)
    return value if isinstance(value, NUMBERS) or not stands_for(cls, NUMBERS) else value.item()


def _find_numbers(cls: type) -> frozenset[type]:
    if issubclass(cls, NUMBERS):
        number: type | None = next(each for each in NUMBERS if issubclass(cls, each))
    else:
        bases = [each.__name__ for each in cls.__mro__ if each.__module__ == "numpy"]
        number = next((_NUMPY_BASES[name] for name in bases if name in _NUMPY_BASES), None)
    if number is None:
        return frozenset()
    if number is bool:  # fits `int`, as in Python, but a bool passed as a float is probably a mistake
        return frozenset((bool, int))
    return frozenset(NUMBERS[NUMBERS.index(number) :])


def describe_redefinition(given: Collection[Any], taken: Collection[Any], giver: str, taker: str) -> str | None:
    """Return what to run again if a sent and a declared type are two definitions of one class; otherwise None.

    Args:
        given: The types that are sent.
        taken: The types that are declared.
        giver: The sender, as text for a person.
        taker: The receiver, as text for a person.
    """
    found = _find_redefinition(given, taken)
    if found is None:
        return None
    new, old = found
    late = giver if _is_current(old) and not _is_current(new) else taker
    return f"{new.__qualname__} was defined again after {late} was created; run the cell of {late} again."


def warn_of_redefinition(given: Collection[Any], taken: Collection[Any], giver: str, taker: str) -> None:
    """Warn with the text of `describe_redefinition`, once for each definition of the class."""
    found = _find_redefinition(given, taken)
    if found is None:
        return
    text, told = describe_redefinition(given, taken, giver, taker), _told.setdefault(found[0], set())
    if text is not None and text not in told:
        told.add(text)
        warn_user(text, WorkflowWarning)


def types_in(value: object) -> list[type]:
    """Return the class of a value and those of its items."""
    return [type(value), *(map(type, value) if isinstance(value, (list, tuple, set, frozenset)) else ())]


def _find_redefinition(given: Collection[Any], taken: Collection[Any]) -> tuple[type, type] | None:
    declared = {(cls.__module__, cls.__qualname__): cls for type_ in taken for cls in _classes_in(type_)}
    for cls in [base for type_ in given for each in _classes_in(type_) for base in each.__mro__]:
        other = declared.get((cls.__module__, cls.__qualname__), cls)
        if other is not cls and "<locals>" not in cls.__qualname__:
            return cls, other
    return None


def _is_current(cls: type) -> bool:
    found: object = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def _classes_in(type_: Any) -> Iterator[type]:
    for argument in get_args(type_):
        yield from _classes_in(argument)
    if isinstance(type_, type) and not get_args(type_):
        yield type_


def _fields(cls: type) -> dict[str, Any]:
    """Return names and types of the fields, as text, because their classes may have been redefined too."""
    if issubclass(cls, Enum):
        return {member.name: member.value for member in cls}
    hints: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        try:
            own = inspect.get_annotations(base)
        except NameError:  # in Python 3.14, annotations are evaluated here
            return {}
        hints |= {n: hint if isinstance(hint, str) else inspect.formatannotation(hint) for n, hint in own.items()}
    return hints
