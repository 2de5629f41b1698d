"""The notebook kernel, if any: detection and display."""

from __future__ import annotations

import sys
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


def cell_number() -> int | None:
    """Return the number of the running cell, `None` outside a notebook."""
    ipython = sys.modules.get("IPython")
    return getattr(None if ipython is None else ipython.get_ipython(), "execution_count", None)


def in_kernel() -> bool:
    """Whether this is a notebook kernel, which can display widgets. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
