"""The stored names of classes, and the classes with a stored name in this process.

A class of the library is stored by its public path, such as `agentbench.Message`, every other one by the module that
defines it. A name is looked up among the public names, the registered classes and the loaded modules. Nothing else is
imported. A class that a program or notebook stored as `__main__.Car` is found if exactly one class `Car` is registered,
in any module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from agentbench._lazy import find_public, public_path
from agentbench._signatures import find_loaded_type, type_from_dict, type_to_dict
from agentbench.exceptions import UnknownStoredTypeError, UnstorableValueError

_REGISTERED: Final[dict[str, type]] = {}
_NAMES: Final[dict[type, str]] = {}
_unknown: set[str] | None = None
"""Names of unknown classes whose instances were read as plain values; None if unknown classes are an error."""

_OF_PYTHON: Final = ("calendar", "difflib", "http", "re", "signal", "socket", "urllib.parse", "uuid")
"""Standard modules with enums and named tuples that a state may contain; the reading process may not have them loaded.
"""


def class_name(cls: type) -> str:
    """Return the name that identifies a class: the public path of a class of the library, or else module and name."""
    return public_path(cls) or f"{cls.__module__}.{cls.__qualname__}"


def register_class(cls: type, name: str | None = None) -> None:
    """Register a class by a name, by default its qualified one; a later class with that name replaces it."""
    if name is not None:
        refuse_other(cls, name, _REGISTERED.get(name))
        _NAMES[cls] = name
    _REGISTERED[name or class_name(cls)] = cls


def refuse_other(cls: type, name: str, taken_by: type | None) -> None:
    """Raise ValueError if a name belongs to a class with another qualified name."""
    if taken_by is not None and class_name(taken_by) != class_name(cls):
        message = f"{name!r} is already the identifier of {class_name(taken_by)}. Choose another for {class_name(cls)}."
        raise ValueError(message)


def stored_type(type_: Any) -> Any:
    """Return the stored form of a class or typing form, by which every process finds it: text, or a dictionary."""
    if isinstance(type_, type) and type_ in _NAMES:
        return _NAMES[type_]
    try:
        data = type_to_dict(type_)
        type_from_dict(data, _find)
    except TypeError as error:
        cls = type_ if isinstance(type_, type) else type(type_)
        reason = (
            "The class cannot be found again by its name. Define it at the top level of a module or notebook, "
            "or pass it to register_state_type()."
        )
        raise UnstorableValueError(cls, reason) from error
    return data


class UnknownInstance(dict[str, Any]):
    """An instance of an unknown class, displayed as `{name: fields}`; it is written again as it was stored."""

    def __init__(self, tag: str, name: Any, type_name: str, content: Any) -> None:
        super().__init__({type_name: content})
        self.tag, self.stored = tag, [name, content]


class UnknownType(str):
    """The name of an unknown class; it is written again as it was stored."""

    __slots__ = ("stored",)
    stored: Any


@contextmanager
def unknown_as_plain() -> Iterator[set[str]]:
    """Read values of unknown classes as `UnknownInstance` and `UnknownType`; yield the set of their names."""
    global _unknown
    _unknown = set()
    try:
        yield _unknown
    finally:
        _unknown = None


def as_plain(error: UnknownStoredTypeError, tag: str, name: Any, content: Any) -> Any:
    """Return the replacement for an instance that cannot be created, or raise the error if none is requested."""
    if _unknown is None:
        raise error
    _unknown.add(error.type_name)
    return UnknownInstance(tag, name, error.type_name, content)


def find_type(data: Any) -> Any:
    """Return the stored class or typing form, or raise UnknownStoredTypeError."""
    try:
        return type_from_dict(data, _find)
    except Exception as error:
        name = data if isinstance(data, str) else repr(data)
        if _unknown is not None:
            unknown = UnknownType(name)
            unknown.stored = data
            return unknown
        raise UnknownStoredTypeError(name) from error


def find_class(data: Any) -> Any:
    """Return the stored class, never a typing form, or raise UnknownStoredTypeError."""
    if isinstance(data, str) and data not in _REGISTERED:
        module, _, name = data.rpartition(".")
        holder = sys.modules.get(module)
        found = vars(holder).get(name) if type(holder) is ModuleType else None
        found = found or find_public(data)
        if isinstance(found, type):
            return found  # the same as by find_type(), only faster
    found = find_type(data)
    if not isinstance(found, type):
        raise UnknownStoredTypeError(str(data), "which is not a class here. Load the module that defined it")
    return found


def _find(name: str) -> Any:
    if name in _REGISTERED:
        return _REGISTERED[name]
    module = next((each for each in _OF_PYTHON if name.startswith(f"{each}.")), None)
    if module is not None:
        import_module(module)
    try:
        return find_loaded_type(name)
    except TypeError:
        moved = moved_from_main(name, _REGISTERED.values())
        if moved is None:
            raise
        return moved


def moved_from_main(name: str, classes: Iterable[type]) -> type | None:
    """Find a program's or notebook's class that is now in a module: the only registered one of that qualified name."""
    module, _, qualified = name.partition(".")
    if module != "__main__":
        return None
    found = {cls for cls in classes if cls.__qualname__ == qualified}
    return found.pop() if len(found) == 1 else None
