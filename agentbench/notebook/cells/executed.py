"""The cells that this notebook has executed."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from typing import Any


def executed_cells() -> tuple[Sequence[str], Mapping[str, Any]]:
    """Return the sources of the executed cells, oldest first, with magics as calls, and the notebook's variables."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return (), {}
    history = [] if shell.history_manager is None else list(shell.history_manager.input_hist_parsed)
    if not any(history):  # tools that run notebooks, such as nbval, store no history; tracebacks need the sources too
        names = [name for name in linecache.cache if name.startswith("<ipython-input-") or "/ipykernel_" in name]
        history = ["".join(linecache.getlines(name)) for name in names]
    return history, shell.user_ns
