"""Listeners that users add to a panel, a form or a stepper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Unsubscribe = Callable[[], None]


class CallbackList:
    """The listeners of one object, by the kind of event.

    `on_error` gets a line about a failing listener, and the others are still called; without it the error is raised.
    """

    def __init__(self, on_error: Callable[[str], object] | None = None) -> None:
        self._all: list[tuple[str, Callable[[Any], Any]]] = []
        self._on_error = on_error

    def add(self, kind: str, fn: Callable[[Any], Any]) -> Unsubscribe:
        """Call `fn` with each event of a kind; returns a function that removes it. `TypeError` if not callable."""
        listener: object = fn
        if not callable(listener):
            msg = f"fn={listener!r} is not callable. Expected a function with one argument, such as print."
            raise TypeError(msg)
        added = (kind, fn)
        self._all.append(added)
        return lambda: self._all.remove(added) if added in self._all else None

    def emit(self, kind: str, what: Any) -> list[Any]:
        """Call the listeners of a kind in order, and return their results."""
        return [self._call(kind, fn, what) for each, fn in tuple(self._all) if each == kind]

    def clear(self) -> None:
        """Remove all listeners."""
        self._all.clear()

    def _call(self, kind: str, fn: Callable[[Any], Any], what: Any) -> Any:
        try:
            return fn(what)
        except Exception as error:
            if self._on_error is None:
                raise
            return self._on_error(f"a listener of on({kind!r}) raised {type(error).__name__}: {error}")
