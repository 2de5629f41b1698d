"""How an object finds the function that renders it, by name, on first display; and its one-line text.

A class names its view as text, such as `"agentbench.notebook.cards.run:workflow_bundle"`. This module never imports
the notebook layer; if the packages of that layer are missing, plain text is the only view.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

from agentbench._secrets import mask_secrets, masked_repr
from agentbench.exceptions import MissingExtraError

_C = TypeVar("_C", bound="type[Displayable]")

# The packages that modules of the notebook layer import on first use.
_NOTEBOOK_PACKAGES = frozenset(
    {"IPython", "anywidget", "graphviz", "graphviz_pure", "ipywidgets", "jupyterlab", "numpy", "pandas", "traitlets"}
)
_LONGEST: Final = 60
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


class Displayable:
    """An object that a notebook renders through the function named by `drawn_by` on its class.

    Displaying only reads: it never runs, saves or connects anything. If a view fails it raises, and the notebook
    displays the traceback and the plain text.
    """

    __slots__ = ()

    _ab_drawn_by: ClassVar[str | None] = None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the views by media type, always including `text/plain`; the front end chooses one."""
        plain: dict[str, Any] = {"text/plain": repr(self)}
        view = self._ab_drawn_by
        try:
            return plain if view is None else plain | call_view(view, self)
        except MissingExtraError:
            return plain


def drawn_by(view: str) -> Callable[[_C], _C]:
    """Name the function that renders a class and its subclasses. It returns an object's views by media type."""

    def decorate(cls: _C) -> _C:
        cls._ab_drawn_by = view
        return cls

    return decorate


def call_view(view: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of the notebook layer by its name, `"module:function"`; may raise MissingExtraError."""
    module, _, name = view.partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _NOTEBOOK_PACKAGES or isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError("notebook", package, purpose="show things in a notebook") from error
    return function(*args, **kwargs)


def shorten(value: Any, longest: int = _LONGEST) -> str:
    """Return the one-line `repr` of a value, with secrets masked and without memory addresses; long text is cut.

    Strings keep up to the maximum number of characters, other values twice as many. A checksum of the whole value
    distinguishes values with the same beginning, because programs use `str(messages)` as a cache key.
    """
    value = mask_secrets(value)
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]!r}… ({len(value):,} characters, #{_checksum(value)})"
    text = _ADDRESS.sub("", masked_repr(value))
    return text if len(text) <= 2 * longest else f"{text[: 2 * longest]}… (#{_checksum(text)})"


def _checksum(text: str) -> str:
    import zlib  # noqa: PLC0415 - only views of objects need it

    return f"{zlib.crc32(text.encode(errors='replace')):08x}"
