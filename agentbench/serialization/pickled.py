"""Values as JSON that contains pickles: a format for exchange with agent-framework, used only on request.

JSON values stay unchanged, dictionary keys become text, every other value becomes `{"__pickled__": base64, "__type__":
"module:qualname"}`. A pickle can name any class or function, so reading accepts only names from a list; the few
functions that pickles need have safe replacements.
"""

from __future__ import annotations

import pickle
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from importlib import import_module
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final
from zoneinfo import ZoneInfo

from agentbench._lazy import find_public, public_packages
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException

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


# ---- values


_REPLACED: Final[Mapping[str, Callable[..., Any]]] = {
    "builtins:getattr": _get_member,
    "copyreg:_reconstructor": _reconstruct,
    "copyreg:__newobj__": _new_object,
}


PICKLED: Final = "__pickled__"
PICKLED_TYPE: Final = "__type__"

_PROTOCOL: Final = 4
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def encode_checkpoint_value(value: Any) -> Any:
    """Return a value in a form that `json.dumps` can write; see `decode_checkpoint_value`.

    Dictionary keys become text. Subclasses of `dict`, `str` and numbers keep their class.

    Args:
        value: The value to encode.

    Raises:
        UnstorableValueError: A part of it cannot be pickled; the error names its path.

    Example:
        import json
        from datetime import date
        from agentbench.checkpoints import decode_checkpoint_value, encode_checkpoint_value

        text = json.dumps(encode_checkpoint_value({"due": date(2026, 1, 31)}))
        print(decode_checkpoint_value(json.loads(text)))
    """
    return encode_readable(value, None)


def decode_checkpoint_value(value: Any, *, allowed_types: Collection[str] | None = None) -> Any:
    """Return the value encoded by `encode_checkpoint_value` or by agent-framework's function of that name.

    Messages and events of agent-framework become those of this library.

    Args:
        value: The value returned by `json.loads`.
        allowed_types: Additional allowed classes, as `"module:qualname"`, besides Python's own value types and the data
            classes of this library. `{"*"}` allows all: the author of the value can then run any code here.

    Raises:
        ValueError: One of the allowed types is not a valid name.
        WorkflowCheckpointException: The value names a class that is not allowed, contains a wrong class, or is damaged.

    Example:
        from agentbench.checkpoints import decode_checkpoint_value, encode_checkpoint_value

        assert decode_checkpoint_value(encode_checkpoint_value({1, 2})) == {1, 2}
    """
    return decode_found(value, NameFinder(allowed_types or ()))


def decode_found(value: Any, finder: NameFinder) -> Any:
    """Return the value like `decode_checkpoint_value`, with a finder for the allowed names."""
    if isinstance(value, list):
        return [decode_found(item, finder) for item in value]
    if not isinstance(value, Mapping):
        return value
    if PICKLED in value and PICKLED_TYPE in value:
        return _unpickle(value[PICKLED], str(value[PICKLED_TYPE]), finder)
    return {key: decode_found(item, finder) for key, item in value.items()}


def encode_readable(value: Any, finder: NameFinder | None, path: str = "") -> Any:
    """Return a value, which has this path, in a form that `json.dumps` can write and a finder can read again."""
    cls: type = type(value)
    if isinstance(value, Mapping) and cls.__module__.startswith("agentbench.") and not isinstance(value, dict):
        value, cls = dict(value), dict  # a log of steps, for which agent-framework has a dictionary
    if cls in _SCALARS:
        return value
    if cls is list:
        return [encode_readable(item, finder, f"{path}[{place}]") for place, item in enumerate(value)]
    if cls is dict and not (PICKLED in value and PICKLED_TYPE in value):  # such data would look like a pickle
        return {str(key): encode_readable(item, finder, f"{path}[{key!r}]") for key, item in value.items()}
    try:
        data = pickle.dumps(value, _PROTOCOL)
    except Exception as error:
        raise UnstorableValueError(cls, f"It cannot be pickled: {str(error).rstrip('.')}.", path=path) from error
    text, label = b64encode(data).decode(), type_label(cls)
    if finder is not None:
        try:
            _unpickle(text, label, finder)
        except WorkflowCheckpointException as error:
            raise UnstorableValueError(cls, f"It could not be loaded again: {error}", path=path) from error
    return {PICKLED: text, PICKLED_TYPE: label}


def _unpickle(text: Any, label: str, finder: NameFinder) -> Any:
    try:
        file = BytesIO(b64decode(text, validate=True))
        unpickled = (OpenUnpickler if finder.takes_everything else RestrictedUnpickler)(file, finder).load()
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        message = (
            f"A pickled {label} in the checkpoint cannot be read: {type(error).__name__}: {str(error).rstrip('.')}."
        )
        raise WorkflowCheckpointException(message, error) from error
    found = type_label(type(unpickled))
    if found != finder.label_here(label):
        message = f"The checkpoint should contain a {label}, but contains a {found}. It was damaged or tampered with."
        raise WorkflowCheckpointException(message)
    return unpickled


# The C version lets a pickle change classes and enum members, and cannot be told to forbid it.
_Unpickler: Any = pickle._Unpickler  # noqa: SLF001 - its only name

_SHARED: Final = (type, Enum, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
"""Objects that the whole process shares and that no pickle may change."""
_SIZED: Final = (bytes, bytearray, int)
"""Created from text or bytes only: with `bytes(10**12)`, a few characters of a pickle could request gigabytes."""


class RestrictedUnpickler(_Unpickler):  # type: ignore[misc]
    """Reads one pickle with allowed names only, which can change only its own objects."""

    if TYPE_CHECKING:
        stack: list[Any]

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Unpickler.dispatch)

    def __init__(self, file: IO[bytes], finder: NameFinder) -> None:
        super().__init__(file, fix_imports=False)
        self._finder = finder

    def find_class(self, module: str, name: str) -> Any:
        """Return the object of a name."""
        return self._finder.find(module, name)

    def _build(self) -> None:
        if isinstance(self.stack[-2], _SHARED):
            message = f"the pickle would change {self.stack[-2]!r}, which is not its own"
            raise pickle.UnpicklingError(message)
        _Unpickler.dispatch[pickle.BUILD[0]](self)

    def _call(self, code: bytes, length: int) -> None:
        function, arguments = self.stack[-length], self.stack[-length + 1]
        if _is_bomb([function, *arguments]):
            message = f"the pickle would fill the memory with {function!r}"
            raise pickle.UnpicklingError(message)
        _Unpickler.dispatch[code[0]](self)

    def _refuse(self) -> None:
        message = "the pickle creates instances in a way that Python 3 never writes"
        raise pickle.UnpicklingError(message)

    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.REDUCE[0]] = lambda self: self._call(pickle.REDUCE, 2)
    dispatch[pickle.NEWOBJ[0]] = lambda self: self._call(pickle.NEWOBJ, 2)
    dispatch[pickle.NEWOBJ_EX[0]] = lambda self: self._call(pickle.NEWOBJ_EX, 3)
    dispatch[pickle.OBJ[0]] = dispatch[pickle.INST[0]] = _refuse


class OpenUnpickler(pickle.Unpickler):
    """Reads one pickle without restrictions; names of agent-framework's classes lead to this library's."""

    def __init__(self, file: IO[bytes], finder: NameFinder) -> None:
        super().__init__(file)
        self._finder = finder

    def find_class(self, module: str, name: str) -> Any:
        """Return the object of a name."""
        return self._finder.find_theirs(module, name) or super().find_class(module, name)


def _is_bomb(parts: list[Any]) -> bool:
    """Return whether a call would create a huge value from a short pickle, such as `list(range(10**12))`."""
    if type(parts[0]) is types.GenericAlias or any(isinstance(part, range) for part in parts):
        return True
    made = next((part for part in parts if isinstance(part, type)), None)
    return made in _SIZED and not all(isinstance(part, (type, str, bytes, bytearray)) for part in parts if part != made)
