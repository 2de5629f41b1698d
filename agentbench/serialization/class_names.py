"""Classes by name: what is written for a class, and the class that a name stands for here.

A name is looked up among the registered classes and in the modules that are loaded. Nothing is imported.
"""

from __future__ import annotations

from typing import Any, Final

from agentbench._signatures import type_from_dict, type_to_dict
from agentbench.exceptions import UnknownStoredTypeError, UnstorableValueError

_REGISTERED: Final[dict[str, type]] = {}


def register_class(cls: type, name: str | None = None) -> None:
    """Make a class known by its qualified name, or by another one; a later class of the same name replaces it."""
    _REGISTERED[name or f"{cls.__module__}.{cls.__qualname__}"] = cls


def stored_type(type_: Any) -> Any:
    """Return what is written for a class or typing form: text, or a dictionary for a generic.

    Raises:
        UnstorableValueError: It could not be found again by what would be written.
    """
    try:
        data = type_to_dict(type_)
        if not (isinstance(data, str) and data in _REGISTERED):
            type_from_dict(data)
    except TypeError as error:
        cls = type_ if isinstance(type_, type) else type(type_)
        reason = (
            "No other process could find the class again by its name. Define it at the top level of a module or "
            "notebook, or give it to register_state_type()."
        )
        raise UnstorableValueError(cls, reason) from error
    return data


def find_type(data: Any) -> Any:
    """Return the class or typing form that was written.

    Raises:
        UnknownStoredTypeError: It is not known here.
    """
    if isinstance(data, str) and data in _REGISTERED:
        return _REGISTERED[data]
    try:
        return type_from_dict(data)
    except Exception as error:
        raise UnknownStoredTypeError(data if isinstance(data, str) else repr(data)) from error


def find_class(data: Any) -> Any:
    """Return the class that was written; never a typing form.

    Raises:
        UnknownStoredTypeError: It is not known here.
    """
    found = find_type(data)
    if not isinstance(found, type):
        raise UnknownStoredTypeError(repr(data), "which is no class here. Load the module that defined it")
    return found
