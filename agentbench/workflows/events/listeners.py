"""Functions that get the events of a run as they come, whichever code drives the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agentbench.workflows.events.events import WorkflowEvent

#: Gets the next events of a run, in order, on the loop that drives it.
Listener = Callable[[Sequence[WorkflowEvent[Any]]], object]


class Listeners:
    """The listeners of one run, called in the order in which they were added."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: tuple[Listener, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns a function that removes it."""
        function: object = listener
        if not callable(function):
            msg = f"The listener is {listener!r}, which cannot be called. Pass a function of a list of events."
            raise TypeError(msg)
        self._all = (*self._all, listener)

        def remove() -> None:
            self._all = tuple(each for each in self._all if each is not listener)

        return remove

    def notify(self, events: Sequence[WorkflowEvent[Any]]) -> None:
        """Call each listener with events; what one raises goes to the loop's exception handler, and the run goes on."""
        for listener in self._all:
            try:
                listener(events)
            except Exception as error:  # noqa: BLE001, PERF203 - user code must not end the run that it watches
                context = {"message": f"A listener of a run raised: {listener!r}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
