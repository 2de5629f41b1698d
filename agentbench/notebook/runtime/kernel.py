"""The notebook kernel, where there is one: whether this is it, and what it displays."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["in_kernel", "show_in_cell"]


def show_in_cell(what: object, **options: Any) -> Any:
    """Display something in the cell that runs now."""
    import IPython.display

    display: Any = IPython.display.display
    return display(what, **options)


def in_kernel() -> bool:
    """Whether this is a notebook kernel, which can show widgets. Loads nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
