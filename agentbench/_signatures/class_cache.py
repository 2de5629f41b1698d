"""A cache for functions of a class that keeps no class alive, such as classes of notebook cells that are run again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from agentbench._signatures.forms import is_protocol

ResultT = TypeVar("ResultT")

_IMMUTABLE, _HEAP = 1 << 8, 1 << 9  # Py_TPFLAGS_IMMUTABLETYPE, Py_TPFLAGS_HEAPTYPE


def is_lasting(cls: type) -> bool:
    """Return whether a class is written in C, so that it is never freed and accepts no attributes."""
    return cls.__flags__ & (_HEAP | _IMMUTABLE) != _HEAP


class _Cached(Generic[ResultT]):
    """A result stored on its class. Copies of the class, as pickles by value create them, start without it."""

    __slots__ = ("result",)

    def __init__(self, *results: ResultT) -> None:
        for result in results:
            self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return _Cached, ()


def cached_on_class(function: Callable[[Any], ResultT]) -> Callable[[Any], ResultT]:
    """Cache the results of a function of a class as attributes of the class, so that both are freed together."""
    name = f"__agentbench_{function.__module__.rpartition('.')[2]}_{function.__name__}__"
    of_lasting_classes: dict[type, ResultT] = {}

    @functools.wraps(function)
    def get_result(cls: type) -> ResultT:
        try:
            found: ResultT = cls.__dict__[name].result
        except (KeyError, AttributeError):
            pass
        else:
            return found
        if cls in of_lasting_classes:
            return of_lasting_classes[cls]
        result = function(cls)
        if is_lasting(cls):
            of_lasting_classes[cls] = result
        elif not is_protocol(cls):  # an attribute would become a member of the protocol
            type.__setattr__(cls, name, _Cached(result))
        return result

    return get_result
