"""Functions that a run calls: callbacks of any kind, and listeners, which get events as they are emitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from agentbench.workflows.events.events import WorkflowEvent

Listener = Callable[[Sequence[WorkflowEvent[Any]]], object]
"""Receives the next events of a run, in order, on the loop that drives the run."""

F = TypeVar("F", bound=Callable[..., object])


class Callbacks(Generic[F]):
    """Functions of one kind, called in the order of adding; one may be removed while they are being called."""

    def __init__(self, what: str, expected: str) -> None:
        self._what, self._expected = what, expected
        self._all: tuple[F, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, function: F) -> Callable[[], None]:
        """Add a function; return a function that removes it."""
        passed: object = function
        if not callable(passed):
            msg = f"The {self._what} is {function!r}, which cannot be called. Pass a function of {self._expected}."
            raise TypeError(msg)
        self._all = (*self._all, function)

        def remove() -> None:
            self._all = tuple(each for each in self._all if each is not function)

        return remove


class Listeners(Callbacks[Listener]):
    """The listeners of one run."""

    def __init__(self) -> None:
        super().__init__("listener", "a list of events")

    def notify(self, events: Sequence[WorkflowEvent[Any]]) -> None:
        """Call each listener with events. Errors go to the loop's exception handler, and the run continues."""
        for listener in self._all:
            try:
                listener(events)
            except Exception as error:  # noqa: BLE001 - user code must not end the run that it watches
                context = {"message": f"A listener of a run raised: {listener!r}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
