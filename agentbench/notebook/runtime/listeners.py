"""Functions that a person hangs on a stepper; what they raise never ends the run that they watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["StepperListeners", "Unsubscribe"]

Unsubscribe = Callable[[], None]


class StepperListeners:
    """The listeners of one stepper, by the kind of event.

    Args:
        on_error: Gets a line about a listener that raised.
    """

    def __init__(self, on_error: Callable[[str], object]) -> None:
        self._by_kind: dict[str, list[Callable[[Any], object]]] = {}
        self._on_error = on_error

    def add(self, kind: str, fn: Callable[[Any], object]) -> Unsubscribe:
        """Call `fn` with everything of a kind; returns a function that ends it. `TypeError`: it cannot be called."""
        listener: object = fn
        if not callable(listener):
            msg = f"fn={listener!r} cannot be called. Expected a function with one argument: on({kind!r}, print)."
            raise TypeError(msg)
        self._by_kind.setdefault(kind, []).append(fn)

        def stop() -> None:
            if fn in self._by_kind.get(kind, ()):
                self._by_kind[kind].remove(fn)

        return stop

    def emit(self, kind: str, what: Any) -> None:
        """Call those of a kind, in the order in which they were added."""
        for fn in tuple(self._by_kind.get(kind, ())):
            self._call(kind, fn, what)

    def _call(self, kind: str, fn: Callable[[Any], object], what: Any) -> None:
        try:
            fn(what)
        except Exception as error:  # noqa: BLE001 - user code must not end the run that it watches
            self._on_error(f"a listener of on({kind!r}) raised {type(error).__name__}: {error}")
