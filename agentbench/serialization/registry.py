"""The storable classes: registered by class for writing, and by tag or name for reading.

Reading never imports what a text names. Only the library's own tags lead to modules, by the fixed tables below, so that
a checkpoint can be read before the part of the library that wrote it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeVar

from agentbench._copying import register_frozen
from agentbench.exceptions import MissingExtraError

T = TypeVar("T")


class StateType(NamedTuple):
    """How instances of a class, without its subclasses, are stored under a tag: `encode` returns a simpler value."""

    cls: type
    tag: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    name: Any = None
    """Name of the class, if one tag is for many. It is written before the value, and `decode` takes both as a list."""
    write: Callable[[Any, Callable[[Any], str]], str | None] | None = None
    """For frequent classes: returns the JSON of what `encode` returns, without making that, or None for rare instances.

    It gets the method that writes a value, and decides before it writes one, because a writer counts what it writes.
    """


_BY_CLASS: dict[type, StateType] = {}
_BY_TAG: dict[str, StateType] = {}

# Modules that register their types when they are imported.
_MODULE_OF_TAG: Final[Mapping[str, str]] = {
    "workflow_message": "agentbench.workflows.persist.snapshot",
    "workflow_event": "agentbench.workflows.persist.snapshot",
    **dict.fromkeys(("sub_workflow_request", "sub_workflow_response"), "agentbench.workflows.nested"),
    **dict.fromkeys(("step_entry", "step_log"), "agentbench.workflows.functional.step_log"),
    **dict.fromkeys(("content", "message", "chat_response", "agent_response"), "agentbench.messages.state_types"),
    **dict.fromkeys(("chat_response_update", "agent_response_update"), "agentbench.messages.state_types"),
    "agent_session": "agentbench.agents.sessions.session",
    **dict.fromkeys(("ndarray", "numpy_scalar"), "agentbench.serialization.array_types"),
    **dict.fromkeys(("dataframe", "series"), "agentbench.serialization.frame_types"),
    **dict.fromkeys(("pandas_index", "pandas_array", "pandas_scalar"), "agentbench.serialization.frame_types"),
}
_MODULE_OF_PACKAGE: Final[Mapping[str, str]] = {
    "agentbench.agents": "agentbench.agents.sessions.session",
    "agentbench.messages": "agentbench.messages.state_types",
    "agentbench": "agentbench.workflows.persist.snapshot",
    "numpy": "agentbench.serialization.array_types",
    "pandas": "agentbench.serialization.frame_types",
}
"""For a package, or a part of one."""


def register_type(
    cls: type[T],
    tag: str,
    encode: Callable[[T], Any],
    decode: Callable[[Any], T],
    *,
    write: Callable[[T, Callable[[Any], str]], str | None] | None = None,
    frozen: bool = False,
) -> None:
    """Store instances of a class under one of the library's own tags; frozen ones are compared by identity."""
    kind = StateType(cls, tag, encode, decode, write=write)
    _BY_TAG[tag] = kind
    store_as(kind, frozen=frozen)


def store_as(kind: StateType, *, frozen: bool = False) -> None:
    """Store instances of a class in this form from now on; its tag must already be registered."""
    _BY_CLASS[kind.cls] = kind
    if frozen:
        register_frozen(kind.cls)


def type_of_class(cls: type) -> StateType | None:
    """Return how instances of exactly this class are stored."""
    found = _BY_CLASS.get(cls)
    if found is None:
        package, _, rest = cls.__module__.partition(".")
        part = f"{package}.{rest.partition('.')[0]}"
        module = _MODULE_OF_PACKAGE.get(part) or _MODULE_OF_PACKAGE.get(package)
        if module is not None:
            import_module(module)
            found = _BY_CLASS.get(cls)
    return found


def type_of_tag(tag: str) -> StateType | None:
    """Return the form of a tag; MissingExtraError if a package that reads it is not installed."""
    found = _BY_TAG.get(tag)
    if found is None and tag in _MODULE_OF_TAG:
        try:
            import_module(_MODULE_OF_TAG[tag])
        except ModuleNotFoundError as error:
            raise MissingExtraError("notebook", str(error.name), purpose=f"read a stored {tag}") from error
        found = _BY_TAG.get(tag)
    return found


def of_kind(cls: type[T], found: Any) -> T:
    """Return a value of exactly this class, or raise TypeError.

    Values that are short in JSON may be endless in other forms: tuple(range(10**12)), Fraction("1e999999999").
    """
    if type(found) is not cls:
        message = f"found a {type(found).__name__} instead of a {cls.__name__}"
        raise TypeError(message)
    return found
