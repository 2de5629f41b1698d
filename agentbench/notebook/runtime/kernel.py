"""The notebook kernel, if any: detection and display."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import weakref
from collections.abc import Callable
from typing import Any


def show_in_cell(what: object, **options: Any) -> Any:
    """Display an object in the running cell."""
    import IPython.display

    display: Any = IPython.display.display
    return display(what, **options)


def at_end_of_cell(call: Callable[[], object]) -> None:
    """Call a function after the running cell has ended and its last expression is displayed."""
    from IPython.core.getipython import get_ipython

    events: Any = get_ipython().events  # type: ignore[union-attr]

    def call_once(*_: object) -> None:
        events.unregister("post_run_cell", call_once)
        call()

    events.register("post_run_cell", call_once)


def after_each_cell(call: Callable[[], object]) -> Callable[[], None]:
    """Call a method after every cell of this notebook while its object exists; returns a function that ends it."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return lambda: None
    method = weakref.WeakMethod(call)

    def call_it(*_: object) -> None:
        now = method()
        if now is not None:
            now()

    def end() -> None:
        with contextlib.suppress(ValueError):  # ended twice
            shell.events.unregister("post_run_cell", call_it)

    shell.events.register("post_run_cell", call_it)
    weakref.finalize(getattr(call, "__self__", call), end)
    return end


def cell_number() -> int | None:
    """Return the number of the running cell, `None` outside a notebook."""
    ipython = sys.modules.get("IPython")
    return getattr(None if ipython is None else ipython.get_ipython(), "execution_count", None)


def in_kernel() -> bool:
    """Whether this is a notebook kernel, which can display widgets. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


_ADVICE = (
    "The live graph has not loaded. If nothing appears above: configure(live_graph=False), then run this cell again."
)
_GRACE_S = 1.0


class PageWatch:
    """Waits for a message from a page; without one, displays a line, and removes it if the message comes later."""

    def __init__(self, *, delay_s: float = 5.0) -> None:
        self._delay_s = delay_s
        self._started = self._arrived = False
        self._line: Any = None

    def start(self) -> None:
        """Start waiting; does nothing without a kernel."""
        if self._started or self._arrived or not in_kernel():
            return
        with contextlib.suppress(RuntimeError):  # no loop in this thread
            loop = asyncio.get_running_loop()
            self._started = True
            # A busy kernel cannot read messages from the page: the loop's clock starts after the cell,
            # and the second wait lets the kernel read queued messages. The line goes to the current cell.
            cell = contextvars.copy_context()
            loop.call_later(self._delay_s, lambda: loop.call_later(_GRACE_S, self._check, context=cell))

    def finish(self) -> None:
        """Stop waiting and remove the line: the page has answered or was closed."""
        self._arrived = True
        line, self._line = self._line, None
        if line is not None:
            line.update({"text/plain": ""}, raw=True)

    def _check(self) -> None:
        if not self._arrived:
            self._line = show_in_cell({"text/plain": _ADVICE}, raw=True, display_id=True)
