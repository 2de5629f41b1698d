"""Closing widgets that hold others: ipywidgets closes only the outermost one."""

from typing import Any

import ipywidgets

__all__ = ["close_all"]


def close_all(widget: Any) -> None:
    """Close a widget with all that it holds, so that the kernel keeps none of them. May be called twice."""
    children = getattr(widget, "children", ())
    if children:
        widget.children = ()
    for part in (*children, getattr(widget, "layout", None), getattr(widget, "style", None)):
        if isinstance(part, ipywidgets.Widget):
            close_all(part)
    widget.close()
