"""The cells that this notebook has executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def executed_cells() -> tuple[Sequence[str], Mapping[str, Any]]:
    """Return the sources of the executed cells, oldest first, with magics as calls, and the notebook's variables."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None or shell.history_manager is None:
        return (), {}
    return list(shell.history_manager.input_hist_parsed), shell.user_ns
