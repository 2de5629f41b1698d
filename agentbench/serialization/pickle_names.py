"""Finds the objects named in a pickle, if they are allowed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final
from zoneinfo import ZoneInfo

from agentbench._lazy import find_public, public_packages
from agentbench.exceptions import WorkflowCheckpointException

EVERYTHING: Final = "*"

_VALUE_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "builtins": (
        *("NoneType", "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object"),
        *("range", "set", "slice", "str", "tuple"),
    ),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "types": ("GenericAlias",),  # the type of a response: list[str]
    "uuid": ("SafeUUID", "UUID"),
    "zoneinfo": ("ZoneInfo",),
}
_ALLOWED: Final = frozenset(f"{module}:{name}" for module, names in _VALUE_TYPES.items() for name in names)
_ALLOWED_PACKAGE: Final = "openai.types."
_DATA_CLASSES: Final = frozenset(
    {
        *("Activation", "AgentExecutorRequest", "AgentExecutorResponse", "AgentResponse", "AgentResponseUpdate"),
        *("Approval", "ChatResponse", "ChatResponseUpdate", "CheckpointInfo", "Command", "Content", "Continue"),
        *("EndedCall", "ExecutionStatus", "BreakpointRequest", "Interrupt", "Message", "MessageType", "Overwrite"),
        *("RemoveMessage", "Send", "StopRequestStatus", "SuperstepCompletionInfo", "TaskResult", "TaskWrites"),
        *("TurnToken", "Waiting", "WorkflowCheckpoint", "WorkflowErrorDetails", "WorkflowEvent"),
        *("WorkflowEventSource", "WorkflowEventType", "WorkflowMessage", "WorkflowRunState"),
    }
)
"""Classes of the library that pickles may name without permission. Python's pickles name the module that defines a
class; any module of the library will do, so that a class can move.
"""

# Names in agent-framework of classes of this library, with their locations here.
_THEIR_MESSAGES: Final = "agent_framework._workflows._runner_context"
_THEIR_EVENTS: Final = "agent_framework._workflows._events"
_OURS: Final[Mapping[str, str]] = {
    f"{theirs}:{name}": f"{ours}:{name}"
    for theirs, ours, names in (
        (_THEIR_MESSAGES, "agentbench.workflows.executors.message", ("MessageType", "WorkflowMessage")),
        (_THEIR_EVENTS, "agentbench.workflows.events.events", ("WorkflowErrorDetails", "WorkflowEvent")),
        (_THEIR_EVENTS, "agentbench.workflows.events.events", ("WorkflowEventSource", "WorkflowRunState")),
    )
    for name in names
}
_TAKES_THEIRS: Final[Mapping[str, str]] = {
    **_OURS,
    f"{_THEIR_MESSAGES}:WorkflowMessage": "agentbench.workflows.persist.migration:ForeignMessage",
    f"{_THEIR_EVENTS}:WorkflowEvent": "agentbench.workflows.persist.migration:ForeignEvent",
}
"""Classes that accept the state of classes with other attributes there."""


def type_label(cls: type) -> str:
    """Return the name of a class as written by pickles and this format."""
    return f"{cls.__module__}:{cls.__qualname__}"


class NameFinder:
    """Finds the objects of always allowed names, and of more, as `"module:qualname"`, or `"*"` for all."""

    def __init__(self, allowed_types: Collection[str]) -> None:
        self._allowed = frozenset(allowed_types)
        for entry in self._allowed:
            module, colon, path = str(entry).partition(":")
            is_label = colon and all(name.isidentifier() for name in (*module.split("."), *path.split(".")))
            if entry != EVERYTHING and not is_label:
                message = (
                    f"{entry!r} is among the allowed types. Expected 'module:qualname', such as 'shop.orders:Order'."
                )
                raise ValueError(message)
        self.takes_everything = EVERYTHING in self._allowed

    def label_here(self, label: str) -> str:
        """Return the current name of a class in this library."""
        return _OURS.get(label) or _label_in_library(label) or label

    def find(self, module: str, name: str) -> Any:
        """Return the class, or a safe replacement for a function, or raise WorkflowCheckpointException."""
        label = f"{module}:{name}"
        if label in self._allowed:
            return _object_at(_label_in_library(label) or label)
        found = _REPLACED.get(label) or (self.find_theirs(module, name) if label in _TAKES_THEIRS else None)
        if found is not None:
            return found
        is_of_library = module.startswith("agentbench.") and name in _DATA_CLASSES
        if label not in _ALLOWED and not is_of_library and not module.startswith(_ALLOWED_PACKAGE):
            raise _not_allowed(label)
        label = self.label_here(label)
        found = type(None) if label == "builtins:NoneType" else _object_at(label)
        if not isinstance(found, type) or found.__module__ != label.partition(":")[0]:
            raise _not_allowed(label)
        return found

    def find_theirs(self, module: str, name: str) -> Any:
        """Return the replacement for a class of agent-framework, or for one of this library that has moved."""
        label = _TAKES_THEIRS.get(f"{module}:{name}") or _label_in_library(f"{module}:{name}")
        return None if label is None else _object_at(label)


def _label_in_library(label: str) -> str | None:
    """Return the current name of a public class of the library, by its name in any of the library's modules."""
    module, _, name = label.partition(":")
    if not module.startswith("agentbench."):
        return None
    for package in public_packages():
        try:
            found = find_public(f"{package}.{name}")
        except ImportError:  # an extra is missing
            continue
        if isinstance(found, type):
            return type_label(found)
    return None


def _not_allowed(label: str) -> WorkflowCheckpointException:
    message = (
        f"The checkpoint contains a pickled {label}, which is not allowed. If you trust its author, add {label!r} "
        "to the allowed types: allowed_checkpoint_types of the storage, or allowed_types of decode_checkpoint_value()."
    )
    return WorkflowCheckpointException(message)


def _object_at(label: str) -> Any:
    module, _, path = label.partition(":")
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = vars(found)[name]
    except (ImportError, KeyError, TypeError) as error:
        message = f"The checkpoint contains a pickled {label}, which is not installed here. Install its package."
        raise WorkflowCheckpointException(message, error) from error
    return found


def _get_member(owner: Any, name: Any) -> Any:
    """Replace `getattr`, which pickles need for enum members and time zones."""
    if isinstance(owner, type) and issubclass(owner, Enum) and name in owner.__members__:
        return owner.__members__[name]
    if owner is ZoneInfo and name == "_unpickle":
        return lambda key, from_cache: ZoneInfo(key)
    message = f"getattr({owner!r}, {name!r}) in a pickle: only members of enums can be read like this"
    raise pickle.UnpicklingError(message)


def _reconstruct(cls: Any, base: Any, state: Any) -> Any:
    """Replace `copyreg._reconstructor`, which old pickles call for every instance."""
    _require_classes(cls, base)
    return object.__new__(cls) if base is object else base.__new__(cls, state)


def _new_object(cls: Any, *args: Any) -> Any:
    _require_classes(cls)
    return cls.__new__(cls, *args)


def _require_classes(*found: object) -> None:
    if not all(isinstance(each, type) for each in found):
        message = f"{found!r} in a pickle are not classes"
        raise pickle.UnpicklingError(message)


_REPLACED: Final[Mapping[str, Callable[..., Any]]] = {
    "builtins:getattr": _get_member,
    "copyreg:_reconstructor": _reconstruct,
    "copyreg:__newobj__": _new_object,
}
