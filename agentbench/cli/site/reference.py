"""The API pages, from the docstrings."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import types
import typing
import warnings
from pathlib import Path

from agentbench._lazy import public_packages

# What pdoc cannot know: fields that one TypedDict inherits from another, and annotations of private attributes.
_UNAVOIDABLE = (
    r"Cannot determine where agentbench\.\S*Options\.\w+ is taken from",
    r"Error parsing type annotation .* for agentbench\.\S*\._\w+:",
)


class _TypingModule(types.ModuleType):
    """Stands for a module that only type checkers have: each of its names is `Any`."""

    def __getattr__(self, name: str) -> object:
        return typing.Any


def write_reference(folder: Path) -> None:
    """Write the pages of the public packages into a folder.

    Raises:
        UserWarning: A docstring or an annotation cannot be read. Every warning of pdoc is an error.
    """
    import pdoc.render  # noqa: PLC0415 - `agentbench --help` does not need it

    typeshed = sys.modules.setdefault("_typeshed", _TypingModule("_typeshed"))
    for package in map(importlib.import_module, public_packages()):
        for name in package.__all__:
            vars(package)[name] = getattr(package, name)  # pdoc reads the namespace, which lacks lazy names
    pages_without_modules = [spec for name in public_packages() for spec in (name, rf"!{name}\.")]
    pdoc.render.configure(docformat="google", show_source=False, template_directory=Path(__file__).parent / "templates")
    with warnings.catch_warnings(action="error"), contextlib.redirect_stdout(io.StringIO()):
        for message in _UNAVOIDABLE:
            warnings.filterwarnings("ignore", message)
        pdoc.pdoc(*pages_without_modules, output_directory=folder)
    if isinstance(typeshed, _TypingModule):
        del sys.modules["_typeshed"]
