"""Import an optional package, or name the extra of agentbench that installs it."""

from __future__ import annotations

import importlib
from typing import Any

from agentbench.exceptions import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Return an optional module, or raise MissingExtraError if it is not installed. `purpose` is a verb phrase.

    A package that is installed but broken raises its own error.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # The missing module may be another one, which the required module imports.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingExtraError(extra, error.name, purpose=purpose) from None
