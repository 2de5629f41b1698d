"""A stepper on a page without anywidget: the same controls from ipywidgets alone, fewer comforts.

Its texts are traits, so a saved widget state holds them; `StepperPage` does not have that flaw.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets

from agentbench.exceptions import NotebookError, WidgetsUnavailable
from agentbench.notebook.escaping import esc
from agentbench.notebook.pacing import TRAIT_LOCK
from agentbench.notebook.request_forms import RequestForms
from agentbench.notebook.stepper_content import TABS, Content
from agentbench.notebook.stepper_control import StepperControl
from agentbench.notebook.stepper_view import StepperView

__all__ = ["PlainPage"]

_LINES = 40
_LINE = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px;line-height:1.45"


class PlainPage:
    """The parts of a stepper as ipywidgets.

    Args:
        stepper: What is shown and driven.
        panel: The graph, or `None` to leave it out.
        height: Of graph and texts, in pixels.

    Attributes:
        widget: The whole, to be displayed.
    """

    def __init__(self, stepper: StepperControl, panel: Any, *, height: int) -> None:
        self._stepper = stepper
        self._panel = panel
        self._header, self._banner, self._log = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._side = ipywidgets.HTML()
        self._buttons = {button.name: self._button(button.name) for button in stepper.view.buttons}
        self._actions = ipywidgets.HBox([])
        self._scrubber = ipywidgets.SelectionSlider(
            options=[("no checkpoint yet", "")], description="Checkpoint", continuous_update=False, disabled=True
        )
        self._scrubber.observe(self._scrubbed, "value")
        self._tabs = ipywidgets.ToggleButtons(options=[(label, name) for name, label in TABS], description="Show")
        self._tabs.observe(lambda change: stepper.open_tab(change["new"]), "value")
        self._requests = _forms_or_none(stepper)
        self._offered: tuple[tuple[str, str], ...] = ()
        self.widget = self._laid_out(height)

    def _button(self, name: str) -> Any:
        button = ipywidgets.Button(layout=ipywidgets.Layout(width="auto"))
        button.on_click(lambda _: self._press(name))
        return button

    def _laid_out(self, height: int) -> Any:
        scroll = ipywidgets.Layout(height=f"{height}px", overflow="auto", flex="2 1 300px")
        beside = ipywidgets.VBox([self._tabs, self._side], layout=scroll)
        main = [beside] if self._panel is None else [self._panel, beside]
        return ipywidgets.VBox(
            [
                self._header,
                ipywidgets.HBox(list(self._buttons.values()), layout=ipywidgets.Layout(flex_flow="row wrap")),
                self._scrubber,
                self._banner,
                self._actions,
                ipywidgets.Box(main, layout=ipywidgets.Layout(flex_flow="row wrap")),
                *([] if self._requests is None else [self._requests.box]),
                self._log,
            ]
        )

    # ---- to the page -------------------------------------------------------------------------------------------------

    def draw(self, steps: int) -> None:
        """Show how things are. Called on the loop of the runs.

        Args:
            steps: How many supersteps were taken.
        """
        view, content = self._stepper.view, self._stepper.content
        with TRAIT_LOCK:
            self._header.value = f'<div role="status" aria-live="polite"><b>{esc(view.header.line)}</b></div>'
            self._draw_controls(view)
            self._banner.value = _banner_html(view)
            self._log.value = _lines_html([line.text for line in view.log[-_LINES:]], "Log")
            self._side.value = _content_html(content)
            if self._panel is not None:
                self._panel.update(view.states, view.badges)
            if self._requests is not None:
                self._requests.show(view, steps)

    def _draw_controls(self, view: StepperView) -> None:
        for each in view.buttons:
            button = self._buttons[each.name]
            button.description, button.tooltip, button.disabled = each.label, each.hint, not each.enabled
        if view.banner.actions != self._offered:
            self._offered = view.banner.actions
            self._actions.children = tuple(self._action(*action) for action in view.banner.actions)
        scrubber = view.scrubber
        options = [(f"{place}. {label}", each) for place, (label, each) in enumerate(scrubber.stops, 1)]
        self._scrubber.unobserve(self._scrubbed, "value")  # it is moved by us here, not by a person
        if options and tuple(options) != tuple(self._scrubber.options):
            self._scrubber.options = options
        if scrubber.index is not None:
            self._scrubber.index = scrubber.index
        self._scrubber.observe(self._scrubbed, "value")
        self._scrubber.disabled = not scrubber.enabled

    def _action(self, command: str, label: str) -> Any:
        button = ipywidgets.Button(description=label, layout=ipywidgets.Layout(width="auto"))
        button.on_click(lambda _: self._press(command))
        return button

    # ---- from the page -----------------------------------------------------------------------------------------------

    def _press(self, name: str) -> None:
        try:
            self._stepper.press(name)
        except NotebookError:
            self._stepper.soon(partial(self._draw_controls, self._stepper.view))

    def _scrubbed(self, change: dict[str, Any]) -> None:
        shown = self._stepper.view.scrubber
        if shown.index is not None and change["new"] != shown.stops[shown.index][1]:
            try:
                self._stepper.show_checkpoint(change["new"])
            except (NotebookError, LookupError):
                self._stepper.soon(partial(self._draw_controls, self._stepper.view))

    def close(self) -> None:
        """Take everything off the page, texts included. May be called twice."""
        for text in (self._header, self._banner, self._log, self._side):
            text.value = ""
        if self._requests is not None:
            self._requests.close()
        if self._panel is not None:
            self._panel.close()
        self.widget.close()


def _forms_or_none(stepper: StepperControl) -> RequestForms | None:
    try:
        return RequestForms(stepper.answer)
    except WidgetsUnavailable:
        return None


def _banner_html(view: StepperView) -> str:
    banner = view.banner
    details = f"<details><summary>details</summary><pre>{esc(banner.details)}</pre></details>" if banner.details else ""
    return f'<div style="{_LINE};font-size:14px">{esc(banner.text)}</div>{details}'


def _lines_html(lines: list[str], title: str) -> str:
    shown = "".join(f"<div>{esc(line)}</div>" for line in lines)
    return f'<div style="{_LINE};max-height:160px;overflow:auto"><b>{title}</b>{shown}</div>'


def _content_html(content: Content) -> str:
    rows = "".join(
        f"<tr><td style='text-align:left'><b>{esc(row.name)}</b></td><td style='text-align:left'>{esc(row.note)}</td>"
        f"<td style='text-align:left'>{esc(row.text)}</td></tr>"
        for row in content.tree.level().rows
    )
    return f'<div style="{_LINE}">{esc(content.title)}<table>{rows}</table></div>'
