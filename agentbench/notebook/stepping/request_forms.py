"""The forms of a stepper's open requests, as one widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from agentbench.notebook.forms.form import Form, request_form
from agentbench.notebook.forms.questions import Request
from agentbench.notebook.runtime.widgets import close_all
from agentbench.notebook.stepping.view.screen_state import ScreenState

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
        #: The displayed forms, and all that are still open: a failed run asks nothing until it goes on.
        self._forms: dict[str, Form] = {}
        self._open: dict[str, Form] = {}
        self._moved = -1

    def show(self, view: ScreenState, steps: int) -> bool:
        """Bring the forms up to date.

        Args:
            view: What the stepper displays.
            steps: How many supersteps were taken; an answered form goes when that changes.

        Returns:
            Whether a request is new.
        """
        wanted = {request.request_id: self._form_of(request) for request in view.requests}
        new = any(self._forms.get(key) is not form for key, form in wanted.items())
        stays = not new and steps == self._moved
        every = (self._forms | wanted).items()
        forms = {key: form for key, form in every if key in wanted or (stays and not form.live)}
        self._moved = steps
        if not new and forms.keys() == self._forms.keys():
            return False
        for key, form in self._forms.items():
            if forms.get(key) is not form:
                form.close()
        self._open = {key: form for key, form in (self._open | self._forms | forms).items() if form.live}
        self._forms = forms
        # No user's text: the forms carry their own by message. One form says by itself that it asks.
        bars = '<span class="abs-bars" aria-hidden="true"></span>'
        several = len(wanted) > 1
        self._title.value = f'<div class="abs abs-asking">{bars} {view.requests_title}</div>' if several else ""
        widgets = [form.widget for form in forms.values()]
        self.box.children = (self._title, *widgets) if several else tuple(widgets)
        return new

    def _form_of(self, request: Request) -> Form:
        """The form that a request has already, else a new one."""
        form = self._forms.get(request.request_id) or self._open.get(request.request_id)
        return form if form is not None and form.asks(request) else request_form(request, respond=self._answer)

    def close(self) -> None:
        """Take the forms off the page."""
        for form in self._forms.values():
            form.close()
        self._forms.clear()
        self._open.clear()
        close_all(self._title)
        close_all(self.box)
