"""Build the API pages of the public packages: `python -m tests.tools.api_pages [FOLDER]`.

Every warning of pdoc is an error, such as a name in `__all__` that does not exist or an annotation that cannot be read.
Without a folder the pages are built to find such errors and then deleted.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import types
import typing
import warnings
from collections.abc import Sequence
from pathlib import Path

from agentbench._lazy import public_packages

# What pdoc cannot know: fields that one TypedDict inherits from another, and annotations of private attributes.
UNAVOIDABLE = (
    r"Cannot determine where agentbench\.\S*Options\.\w+ is taken from",
    r"Error parsing type annotation .* for agentbench\.\S*\._\w+:",
)


class _TypingModule(types.ModuleType):
    """Stands for a module that only type checkers have: each of its names is `Any`."""

    def __getattr__(self, name: str) -> object:
        return typing.Any


def build(folder: Path) -> None:
    """Write the pages into a folder."""
    try:
        import pdoc
    except ModuleNotFoundError as error:
        if error.name != "pdoc":
            raise
        sys.exit("pdoc is not installed. Install it with: pip install --group dev")

    sys.modules["_typeshed"] = _TypingModule("_typeshed")
    for package in map(importlib.import_module, public_packages()):
        for name in package.__all__:
            vars(package)[name] = getattr(package, name)  # pdoc reads the namespace, which lacks lazy names
    pages_without_modules = [spec for name in public_packages() for spec in (name, rf"!{name}\.")]
    with warnings.catch_warnings(action="error"):
        for message in UNAVOIDABLE:
            warnings.filterwarnings("ignore", message)
        pdoc.pdoc(*pages_without_modules, output_directory=folder)


def main(arguments: Sequence[str]) -> None:
    """Build the pages in the folder that the first argument names, or in a temporary one."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(*arguments[:1] or [folder]))


if __name__ == "__main__":
    main(sys.argv[1:])
