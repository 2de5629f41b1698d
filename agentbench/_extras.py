"""Import an optional package, or say which extra of agentbench brings it."""

from __future__ import annotations

import importlib
from typing import Any

from agentbench.exceptions import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Import an optional module.

    Args:
        module: Its dotted name.
        extra: The extra that brings it.
        purpose: Its purpose as a verb phrase: "tabulate a run".

    Returns:
        The module.

    Raises:
        MissingExtraError: It is not installed. A package that is installed and broken raises its own error.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not _is_or_holds(error.name, module):
            raise
        raise MissingExtraError(extra, str(error.name), purpose=purpose) from None


def _is_or_holds(missing: str | None, module: str) -> bool:
    """Return whether the missing module is the required one or its package, not another one that it imports."""
    return missing is not None and f"{module}.".startswith(f"{missing}.")
