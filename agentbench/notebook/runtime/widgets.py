"""What every panel of this layer does with widgets: carry messages without storing them, and close all parts."""

import time
from collections.abc import Callable
from typing import Any

import anywidget
import ipywidgets
import traitlets

from agentbench._bridge import call_later
from agentbench.notebook.runtime.kernel import in_kernel

__all__ = ["Message", "MessageWidget", "close_all"]

# A page reports a widget as failed that is gone before its script ran, for which it waits two seconds.
_STARTING_S = 3.0

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
        self._made = time.monotonic()
        self.on_msg(self._receive)

    def _receive(self, _widget: object, content: object, buffers: object) -> None:
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            self._on_message({**content, "buffers": buffers})

    def close(self) -> None:
        """Close it, on a page not before it has started there. May be called twice."""
        wait_s = self._made + _STARTING_S - time.monotonic()
        if wait_s > 0 and in_kernel():
            call_later(wait_s, super().close)
        else:
            super().close()

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
