"""Notices that no page has taken up a widget, and then says in its cell what to do."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from agentbench.notebook.runtime.kernel import in_kernel

__all__ = ["PageWatch"]

_ADVICE = (
    "The live graph has not loaded. If nothing appears above: configure(live_graph=False), then run this cell again."
)
_GRACE_S = 1.0


class PageWatch:
    """Waits for a sign of life from a page; without one, shows a line, and takes it back if the sign comes late.

    Args:
        delay_s: How long to wait, in seconds.
        later: Calls a function after some seconds.
        show: Shows a line in the cell that is active now and returns a function that replaces it.
    """

    def __init__(
        self,
        *,
        delay_s: float = 5.0,
        later: Callable[[float, Callable[[], None]], object] | None = None,
        show: Callable[[str], Callable[[str], object]] | None = None,
    ) -> None:
        self._delay_s = delay_s
        self._later = later or _in_this_context
        self._show = show or _show_in_cell
        self._lock = threading.Lock()
        self._started = False
        self._arrived = False
        self._replace: Callable[[str], object] | None = None

    def start(self) -> None:
        """Begin to wait; without a kernel there is no page, and nothing happens."""
        with self._lock:
            if self._started or self._arrived:
                return
            self._started = True
        self._later(self._delay_s, self._check)

    def finish(self) -> None:
        """Stop waiting and take the line back: the page has answered, or was closed."""
        with self._lock:
            self._arrived = True
            replace, self._replace = self._replace, None
        if replace is not None:
            replace("")

    def _check(self) -> None:
        with self._lock:
            if self._arrived:
                return
            self._replace = self._show(_ADVICE)


def _in_this_context(delay_s: float, call: Callable[[], None]) -> None:
    """Call later, on the kernel's loop and in the context of the present cell, whose output it may then add to."""
    if not in_kernel():
        return  # no page either
    with contextlib.suppress(RuntimeError):  # no loop in this thread of the kernel
        loop = asyncio.get_running_loop()
        # While a cell keeps the kernel busy, no sign of life can be read: the loop's own clock starts after it, and the
        # second wait lets the kernel read what had queued up.
        context = contextvars.copy_context()
        loop.call_later(delay_s, lambda: loop.call_later(_GRACE_S, call, context=context))


def _show_in_cell(line: str) -> Callable[[str], object]:
    from IPython import display

    show: Any = display.display
    handle = show(_Line(line), display_id=True)
    return lambda text: handle.update(_Line(text))


class _Line:
    """One line of plain text as an output."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
