"""Optional packages: imported at their first use, with an error that says how to install them."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import Any

from agentbench.exceptions import MissingExtraError, NotInBrowserError

NO_PROCESSES = "a page starts no processes"
NO_CONNECTIONS = "a page makes no network connections except HTTP requests and WebSockets"

# Packages that have another name than the module that is imported, and are not in the Pyodide distribution.
_PACKAGES = {"dotenv": "python-dotenv", "opentelemetry": "opentelemetry-sdk"}


def not_in_browser(feature: str, *, reason: str, instead: str) -> None:
    """Raise NotInBrowserError if this Python runs in a browser; see there for the arguments."""
    is_browser: bool = sys.platform == "emscripten"
    if is_browser:
        raise NotInBrowserError(feature, reason=reason, instead=instead)


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Return an optional module, or raise MissingExtraError if it is not installed. `purpose` is a verb phrase.

    A package that is installed but broken raises its own error. In a browser, a package of the Pyodide distribution is
    loaded at its first use, if the browser can suspend calls (JSPI) and the page can reach the package.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # The missing module may be another one, which the required module imports.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        missing = error.name
    is_browser: bool = sys.platform == "emscripten"
    advice = _load_in_browser(missing.partition(".")[0]) if is_browser else None
    if is_browser and advice is None:
        return importlib.import_module(module)
    raise MissingExtraError(extra, missing, purpose=purpose, advice=advice)


def _load_in_browser(name: str) -> str | None:
    """Load the package of a module into the page; return what to do instead if that was not possible."""
    page, ffi = importlib.import_module("pyodide_js"), importlib.import_module("pyodide.ffi")
    package = _pyodide_packages().get(name)
    if package is None:
        return (
            f"Run `%pip install {_PACKAGES.get(name, name)}` in a cell. That works if the site includes the package, "
            "or if there is a network, the site may use PyPI and the package has a version for browsers."
        )
    if not ffi.can_run_sync():
        return (
            f"Run `import {name}` in a cell, which loads it, then run this again. It needs a network, unless the site "
            "includes the package."
        )
    ffi.run_sync(page.loadPackage(package))
    if importlib.util.find_spec(name) is not None:
        return None
    return (
        f"The page tried to load it and could not: there is no network, or the site does not offer {package}. "
        "Open the page with a network, or a site that includes the package."
    )


@functools.cache
def _pyodide_packages() -> dict[str, str]:
    """Return the packages of the Pyodide distribution by the modules that they contain."""
    packages: dict[str, Any] = importlib.import_module("pyodide_js").lockfile.packages.to_py()
    return {module: name for name, package in packages.items() for module in package["imports"]}
