"""Unpicklers that get their names from a `NameFinder`."""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable
from enum import Enum
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from agentbench.serialization.pickle_names import NameFinder

# The one in C lets a pickle change classes and members of enums, and cannot be taught otherwise.
_Unpickler: Any = pickle._Unpickler  # noqa: SLF001 - its only name

#: What a whole process shares, and no pickle may change.
_SHARED: Final = (type, Enum, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
#: Made from text or bytes only: a few characters of a pickle could ask for gigabytes with `bytes(10**12)`.
_SIZED: Final = (bytes, bytearray, int)


class RestrictedUnpickler(_Unpickler):  # type: ignore[misc]
    """Reads one pickle: allowed names only, and it changes nothing but what it made itself.

    Args:
        file: The pickle.
        finder: Knows the names that are allowed.
    """

    if TYPE_CHECKING:
        stack: list[Any]

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Unpickler.dispatch)

    def __init__(self, file: IO[bytes], finder: NameFinder) -> None:
        super().__init__(file, fix_imports=False)
        self._finder = finder

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name stands for."""
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
        message = "the pickle makes instances in a way that Python 3 does not write"
        raise pickle.UnpicklingError(message)

    dispatch[pickle.BUILD[0]] = _build
    dispatch[pickle.REDUCE[0]] = lambda self: self._call(pickle.REDUCE, 2)
    dispatch[pickle.NEWOBJ[0]] = lambda self: self._call(pickle.NEWOBJ, 2)
    dispatch[pickle.NEWOBJ_EX[0]] = lambda self: self._call(pickle.NEWOBJ_EX, 3)
    dispatch[pickle.OBJ[0]] = dispatch[pickle.INST[0]] = _refuse


class OpenUnpickler(pickle.Unpickler):
    """Reads one pickle and runs whatever it says; only the names of agent-framework's classes mean ours.

    Args:
        file: The pickle.
        finder: Knows those names.
    """

    def __init__(self, file: IO[bytes], finder: NameFinder) -> None:
        super().__init__(file)
        self._finder = finder

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name stands for."""
        return self._finder.find_theirs(module, name) or super().find_class(module, name)


def _is_bomb(parts: list[Any]) -> bool:
    """Tell whether a call would make a huge value of next to nothing, such as `list(range(10**12))`.

    An alias such as `list[int]` calls its class; pickles have no need to call it.
    """
    if type(parts[0]) is types.GenericAlias or any(isinstance(part, range) for part in parts):
        return True
    made = next((part for part in parts if isinstance(part, type)), None)
    return made in _SIZED and not all(isinstance(part, (type, str, bytes, bytearray)) for part in parts if part != made)
