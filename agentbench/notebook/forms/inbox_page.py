"""The page's side of an inbox: a box of forms, one below the other. It holds no text of requests or answers."""

from collections.abc import Sequence

import ipywidgets

from agentbench.notebook.forms.form import Form

__all__ = ["InboxPage"]

_EMPTY = '<div class="abi-empty" role="status">No open requests.</div>'


class InboxPage:
    """Shows forms in an order.

    Attributes:
        box: The widget.
    """

    def __init__(self) -> None:
        self._empty = ipywidgets.HTML(_EMPTY)
        self.box = ipywidgets.VBox([self._empty])
        self.box.add_class("abi")

    def show(self, forms: Sequence[Form]) -> None:
        """Display these forms, from top to bottom; those that are displayed already stay as they are."""
        widgets = tuple(form.widget for form in forms) or (self._empty,)
        if widgets != self.box.children:
            self.box.children = widgets

    def close(self) -> None:
        """Take it off the page."""
        self.box.children = ()
        self._empty.close()
        self.box.close()
