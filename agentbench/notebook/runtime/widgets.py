"""Common widget code of all panels: send messages without storing them, and close all parts."""

import time
from collections.abc import Callable
from typing import Any

import anywidget
import ipywidgets
import traitlets

from agentbench._bridge import call_later
from agentbench.notebook.runtime.kernel import in_kernel

# A page reports an error for a widget that is closed before its script ran, so closing is delayed by two seconds.
_STARTING_S = 3.0

Message = dict[str, Any]


class MessageWidget(anywidget.AnyWidget):
    """A widget that sends and receives messages but stores none, so that the saved widget state has no content.

    `on_message` gets messages from pages, with binary parts as `buffers`; messages without `kind` are ignored.
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
        """Close the widget, after it has started on the page. May be called twice."""
        wait_s = self._made + _STARTING_S - time.monotonic()
        if wait_s > 0 and in_kernel():
            call_later(wait_s, super().close)
        else:
            super().close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def close_all(widget: Any) -> None:
    """Close a widget and all inner widgets, because ipywidgets closes only the outermost one.

    May be called twice.
    """
    children = getattr(widget, "children", ())
    if children:
        widget.children = ()
    for part in (*children, getattr(widget, "layout", None), getattr(widget, "style", None)):
        if isinstance(part, ipywidgets.Widget):
            close_all(part)
    widget.close()
