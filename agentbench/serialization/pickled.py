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
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.pickle_names import NameFinder, type_label

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
    cls = type(value)
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
