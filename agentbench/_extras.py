"""Import an optional package, or say which extra of agentbench brings it."""

from __future__ import annotations

import importlib
from typing import Any

from agentbench.exceptions import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Return an optional module; MissingExtraError if it is not installed. `purpose` is a verb phrase.

    A package that is installed and broken raises its own error.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # Another module that the required one imports may be missing.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingExtraError(extra, error.name, purpose=purpose) from None
