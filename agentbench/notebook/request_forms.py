"""The forms of a stepper's open requests, as one widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from agentbench.notebook.forms import Form, request_form
from agentbench.notebook.stepper_view import StepperView

__all__ = ["RequestForms"]


class RequestForms:
    """The forms of the open requests, oldest first; an answered one stays until the run has moved on.

    Attributes:
        box: The widget that holds them.
    """

    def __init__(self, answer: Callable[[str, Any], object]) -> None:
        self.box = ipywidgets.VBox([])
        self.box.add_class("abs-requests")
        self._answer = answer
        self._title = ipywidgets.HTML()
        self._forms: dict[int, Form] = {}
        self._moved = -1

    def show(self, view: StepperView, steps: int) -> bool:
        """Bring the forms up to date.

        Args:
            view: What is shown.
            steps: How many supersteps were taken; an answered form goes when that changes.

        Returns:
            Whether a request is new.
        """
        wanted = {id(request): request for request in view.requests}
        new = [key for key in wanted if key not in self._forms]
        gone = [key for key in self._forms if key not in wanted] if steps != self._moved or new else []
        if not new and not gone:
            return False
        for key in gone:
            self._forms.pop(key).close()
        for key in new:
            self._forms[key] = request_form(wanted[key], respond=self._answer)
        self._moved = steps
        # No user's text: the forms carry their own by message. One form says by itself that it asks.
        bars = '<span class="abs-bars" aria-hidden="true"></span>'
        several = len(wanted) > 1
        self._title.value = f'<div class="abs abs-asking">{bars} {view.requests_title}</div>' if several else ""
        forms = [form.widget for form in self._forms.values()]
        self.box.children = (self._title, *forms) if several else tuple(forms)
        return bool(new)

    def close(self) -> None:
        """Take the forms off the page."""
        for form in self._forms.values():
            form.close()
        self._forms.clear()
        self._title.close()
        self.box.close()
