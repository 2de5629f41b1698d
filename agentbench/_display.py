"""How an object finds the function that draws it: by name, when it is first displayed.

What is drawn knows its view as text, `"agentbench.notebook.views:workflow"`. Nothing here imports the notebook layer,
and where its packages are missing the plain text is the whole view.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from agentbench.exceptions import MissingExtraError

_C = TypeVar("_C", bound="type[Displayable]")

# What the modules of the notebook layer import, each when it is first needed.
_NOTEBOOK_PACKAGES = frozenset(
    {"IPython", "anywidget", "graphviz", "graphviz_pure", "ipywidgets", "jupyterlab", "numpy", "pandas", "traitlets"}
)


class Displayable:
    """An object that shows itself in a notebook, through the function that `drawn_by` names for its class.

    Displaying only reads: it never runs, saves or connects anything. A view that fails raises, and the notebook then
    shows the traceback and the plain text.
    """

    __slots__ = ()

    _drawn_by: ClassVar[str | None] = None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Everything a front end may choose from, by media type; always with `text/plain`."""
        plain: dict[str, Any] = {"text/plain": repr(self)}
        try:
            renderer = find_renderer(type(self))
            return plain if renderer is None else plain | renderer(self)
        except MissingExtraError:
            return plain


def drawn_by(view: str) -> Callable[[_C], _C]:
    """Name the function that draws a class and its subclasses.

    Args:
        view: `"module:function"`. The function takes the object and returns its views by media type.
    """
    _split(view)

    def name_it(cls: _C) -> _C:
        cls._drawn_by = view
        return cls

    return name_it


def find_renderer(cls: type) -> Callable[[Any], dict[str, Any]] | None:
    """Import the function that draws a class, or return `None` if no one named any.

    Raises:
        MissingExtraError: If a package of the `notebook` extra is missing.
    """
    view: str | None = getattr(cls, "_drawn_by", None)
    return None if view is None else _load(view)


def call_view(view: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of the notebook layer by its name, `"module:function"`, and return what it returns.

    Raises:
        MissingExtraError: If a package of the `notebook` extra is missing.
    """
    return _load(view)(*args, **kwargs)


def _load(view: str) -> Callable[..., Any]:
    module, name = _split(view)
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _NOTEBOOK_PACKAGES or isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError("notebook", package, purpose="show things in a notebook") from error
    return function


def _split(view: str) -> tuple[str, str]:
    module, _, name = view.partition(":")
    if not module or not name:
        message = f"{view!r} does not name a view. Expected 'module:function'."
        raise ValueError(message)
    return module, name
