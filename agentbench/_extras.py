"""Import an optional package, or name the extra of agentbench that installs it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from agentbench.exceptions import MissingExtraError, NotInBrowserError

NO_PROCESSES = "a page starts no processes"
NO_CONNECTIONS = "a page makes no network connections except HTTP requests and WebSockets"


def not_in_browser(feature: str, *, reason: str, instead: str) -> None:
    """Raise NotInBrowserError if this Python runs in a browser; see there for the arguments."""
    is_browser: bool = sys.platform == "emscripten"
    if is_browser:
        raise NotInBrowserError(feature, reason=reason, instead=instead)


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
