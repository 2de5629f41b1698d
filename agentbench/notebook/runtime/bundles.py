"""The bundles that `_repr_mimebundle_` returns: views by media type."""

import base64
from collections.abc import Callable, Collection
from typing import Any

from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.runtime.kernel import in_kernel

_LONGEST = 2_000_000
_MEDIA_TYPES = ("image/svg+xml", "image/png", "text/html")
_METHODS = ("_repr_html_", "_repr_svg_", "_repr_png_", "_repr_mimebundle_")


def has_display(value: object) -> bool:
    """Whether a value has a display other than text."""
    has_method = any(hasattr(type(value), name) for name in _METHODS)
    return has_method or (in_kernel() and display_of(value) is not None)


def display_of(value: Any) -> tuple[str, str] | None:
    """Return the picture or the HTML of an object; `None` if it has neither or is very large."""
    from IPython.core.formatters import DisplayFormatter
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    formatter: Any = DisplayFormatter() if shell is None else shell.display_formatter
    bundle, _ = formatter.format(value, include=_MEDIA_TYPES)
    for media_type in _MEDIA_TYPES:
        data = bundle.get(media_type)
        if isinstance(data, bytes):
            data = base64.b64encode(data).decode()
        if isinstance(data, str) and len(data) <= _LONGEST:
            return media_type, data
    return None


def is_wanted(kind: str, include: Collection[str] | None, exclude: Collection[str] | None) -> bool:
    """Whether a front end requests a media type, by the protocol of `_repr_mimebundle_`."""
    return (not include or kind in include) and kind not in (exclude or ())


def show_as_one(panel: Any, otherwise: Callable[[], Any]) -> Any:
    """Return the display of a panel in hosts without ipywidgets boxes: one anywidget, or `otherwise`."""
    try:
        root = panel.widget
    except WidgetsUnavailable:
        return otherwise()
    from agentbench.notebook.runtime.one_widget import as_anywidget

    return as_anywidget(root)
