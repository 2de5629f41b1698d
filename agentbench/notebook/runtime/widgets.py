"""What every panel of this layer does with widgets: carry messages without storing them, and close all parts."""

from collections.abc import Callable
from typing import Any

import anywidget
import ipywidgets
import traitlets

__all__ = ["Message", "MessageWidget", "close_all"]

Message = dict[str, Any]


class MessageWidget(anywidget.AnyWidget):
    """A widget that carries messages both ways and stores none, so that the saved state of widgets has no content.

    `on_message` gets what a page sends, with binary parts as `buffers`; messages without a `kind` are ignored.
    """

    # The text of a page without a kernel.
    name = traitlets.Unicode("").tag(sync=True)

    def __init__(self, on_message: Callable[[Message], object], **traits: Any) -> None:
        super().__init__(**traits)
        self._on_message = on_message
        self.on_msg(self._receive)

    def _receive(self, _widget: object, content: object, buffers: object) -> None:
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            self._on_message({**content, "buffers": buffers})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def close_all(widget: Any) -> None:
    """Close a widget with all that it holds, so that the kernel keeps none of them: ipywidgets closes the outermost.

    May be called twice.
    """
    children = getattr(widget, "children", ())
    if children:
        widget.children = ()
    for part in (*children, getattr(widget, "layout", None), getattr(widget, "style", None)):
        if isinstance(part, ipywidgets.Widget):
            close_all(part)
    widget.close()
