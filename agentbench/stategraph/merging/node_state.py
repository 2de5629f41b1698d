"""The copy of the state that a node gets; each field is copied on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from agentbench._signatures.class_cache import cached_on_class
from agentbench.stategraph.state import AgentState

_DICT: Any = BaseModel.__dict__["__dict__"]


def node_state(
    cls: type[AgentState], read_field: Callable[[str], Any], stop_probe: Callable[[], bool] | None = None
) -> AgentState:
    """Return a state of a class; `read_field(name)` is called on first access to a field, and returns its value."""
    lazy = _lazy_class(cls)
    state: AgentState = lazy.__new__(lazy)
    object.__setattr__(state, "__pydantic_fields_set__", set())
    object.__setattr__(state, "__pydantic_extra__", None)
    object.__setattr__(state, "__pydantic_private__", {"_stop_probe": stop_probe, "_read_field": read_field})
    return state


def fields_read(state: AgentState) -> dict[str, Any]:
    """Return the fields of a `node_state` that have been read or set."""
    return _DICT.__get__(state)  # type: ignore[no-any-return]


@cached_on_class
def _lazy_class(cls: Any) -> Any:
    """Return a class whose instances are of `cls` for all purposes, and read a field on first access.

    Python itself looks attributes up in the dictionary of an instance and calls `__getattr__` for missing ones. Code
    that accesses `__dict__` by name, as pydantic does to serialize, compare or copy a model, gets all fields.
    """

    def read(self: Any, name: str) -> Any:
        if name not in cls.model_fields:
            return super(lazy, self).__getattr__(name)
        value = _DICT.__get__(self)[name] = self.__pydantic_private__["_read_field"](name)
        return value

    def read_all(self: Any) -> dict[str, Any]:
        for name in cls.model_fields:
            getattr(self, name)
        return _DICT.__get__(self)  # type: ignore[no-any-return]

    def equal(self: Any, other: object) -> bool:
        return (
            isinstance(other, cls) and read_all(self) == other.__dict__
        )  # private attributes differ, and are not compared

    names = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__class__": property(lambda self: cls),
        "__dict__": property(read_all, _DICT.__set__),
        "__getattr__": read,
        "__eq__": equal,
        "__hash__": cls.__hash__,
    }
    lazy: Any = type(cls)(cls.__name__, (cls,), names)
    return lazy
