"""A stepper on a page without anywidget: the same controls from ipywidgets alone, fewer comforts.

Its texts are traits, so a saved widget state holds them; `StepperPage` does not have that flaw.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ipywidgets

from agentbench.exceptions import NotebookError, WidgetsUnavailable
from agentbench.notebook.runtime.pacing import TRAIT_LOCK
from agentbench.notebook.runtime.widgets import close_all
from agentbench.notebook.stepping.control import StepperControl
from agentbench.notebook.stepping.plain_tools import BreakpointTool, EditTool, MenuTool, plain_button, row_box
from agentbench.notebook.stepping.request_forms import RequestForms
from agentbench.notebook.stepping.view.tabs import TABS, Content
from agentbench.notebook.stepping.view.view import StepperView
from agentbench.notebook.text.escape import esc

__all__ = ["PlainPage"]

_LINES = 40
_CELL_LIMIT = 400
_LINE = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px;line-height:1.45"


class PlainPage:
    """The parts of a stepper as ipywidgets.

    Args:
        stepper: The stepper being displayed and driven.
        panel: The graph, or `None` to leave it out.
        layout: As of `StepperPage`; here `wide`, `auto` and `stacked` are the same.
        height: Of graph and texts, in pixels.

    Attributes:
        widget: The whole, to be displayed.
    """

    def __init__(self, stepper: StepperControl, panel: Any, *, layout: str = "auto", height: int) -> None:
        self._stepper = stepper
        self._panel = panel
        self._header, self._banner, self._log = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self._side = ipywidgets.HTML()
        self._buttons = {
            button.name: plain_button("", partial(self._press, button.name)) for button in stepper.view.buttons
        }
        self._actions = row_box([])
        self._scrubber = ipywidgets.SelectionSlider(
            options=[("no checkpoint yet", "")],
            description="Checkpoint",
            continuous_update=False,
            disabled=True,
            layout=ipywidgets.Layout(width="min(100%, 44em)"),
        )
        self._scrubber.observe(self._on_scrub, "value")
        self._tabs = ipywidgets.ToggleButtons(
            options=[(label, name) for name, label in TABS], value=stepper.tab, style={"button_width": "auto"}
        )
        self._tabs.observe(self._on_tab, "value")
        self._menu = MenuTool(self._press)
        self._breaks = BreakpointTool(stepper)
        self._edits = EditTool(stepper)
        self._requests = _forms_or_none(stepper)
        self._offered: tuple[tuple[str, str], ...] = ()
        self.widget = self._lay_out(layout, height)

    def _lay_out(self, layout: str, height: int) -> Any:
        rows = [self._header, row_box([*self._buttons.values(), *self._menu.row]), self._scrubber]
        rows += [self._banner, self._actions]
        main = [] if self._panel is None else [self._panel]
        if layout not in ("graph", "minimal"):
            scroll = ipywidgets.Layout(height=f"{height}px", overflow="auto", flex="2 1 300px")
            main.append(ipywidgets.VBox([self._tabs, self._side], layout=scroll))
        if main:
            rows.append(row_box(main, align="flex-start"))
        rows += [] if self._requests is None else [self._requests.box]
        if layout != "minimal":
            folds = ipywidgets.Accordion([self._breaks.box, self._edits.box], titles=("Breakpoints", "Edit a value"))
            rows += [folds, self._log]
        return ipywidgets.VBox(rows)

    # ---- to the page -------------------------------------------------------------------------------------------------

    def draw(self, steps: int) -> None:
        """Bring the widgets up to date. Called on the loop of the runs.

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
            self._draw_tab()
            self._menu.show(view)
            self._breaks.show(view, self._stepper.offers)
            self._edits.show(view, content)
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
            self._actions.children = tuple(
                plain_button(label, partial(self._press, command)) for command, label in view.banner.actions
            )
        scrubber = view.scrubber
        options = [(f"{place}. {label}", each) for place, (label, each) in enumerate(scrubber.stops, 1)]
        self._scrubber.unobserve(self._on_scrub, "value")  # it is moved by us here, not by a person
        if options and tuple(options) != tuple(self._scrubber.options):
            self._scrubber.options = options
        if scrubber.index is not None:
            self._scrubber.index = scrubber.index
        self._scrubber.observe(self._on_scrub, "value")
        self._scrubber.disabled = not scrubber.enabled

    def _draw_tab(self) -> None:
        """Another page, or a selected node, may have opened another tab."""
        self._tabs.unobserve(self._on_tab, "value")
        self._tabs.value = self._stepper.tab
        self._tabs.observe(self._on_tab, "value")

    # ---- from the page -----------------------------------------------------------------------------------------------

    def _press(self, name: str, value: object = None) -> None:
        try:
            self._stepper.press(name, value)
        except (NotebookError, ValueError):
            self._stepper.soon(partial(self._draw_controls, self._stepper.view))

    def _on_tab(self, change: dict[str, Any]) -> None:
        self._stepper.open_tab(change["new"])

    def _on_scrub(self, change: dict[str, Any]) -> None:
        scrubber = self._stepper.view.scrubber
        if scrubber.index is not None and change["new"] != scrubber.stops[scrubber.index][1]:
            try:
                self._stepper.show_checkpoint(change["new"])
            except (NotebookError, LookupError):
                self._stepper.soon(partial(self._draw_controls, self._stepper.view))

    def close(self) -> None:
        """Take everything off the page, texts included. May be called twice."""
        for text in (self._header, self._banner, self._log, self._side):
            text.value = ""
        self._breaks.clear()
        self._edits.clear()
        if self._requests is not None:
            self._requests.close()
        if self._panel is not None:
            self._panel.close()
        close_all(self.widget)


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
    listed = "".join(f"<div>{esc(line)}</div>" for line in lines)
    return f'<div style="{_LINE};max-height:160px;overflow:auto"><b>{title}</b>{listed}</div>'


def _content_html(content: Content) -> str:
    facts = [(label, "", text) for label, text in content.facts]
    values = [(row.name, row.note, row.text) for row in content.tree.level().rows]
    parts = [esc(content.title), _table([*facts, *values])]
    for title, changes in content.changes:
        listed = [(f"{row.sign} {row.path}", row.words, _change_text(row.before, row.after)) for row in changes]
        parts += [esc(title), _table(listed)]
    return f'<div style="{_LINE}">{"".join(parts)}</div>'


def _change_text(before: tuple[tuple[bool, str], ...], after: tuple[tuple[bool, str], ...]) -> str:
    old, new = ("".join(text for _, text in pieces) for pieces in (before, after))
    return " → ".join(text for text in (old, new) if text)


def _table(rows: list[tuple[str, str, str]]) -> str:
    cell = "text-align:left;vertical-align:top;padding:1px 8px 1px 0"
    cells = "".join(
        f"<tr><td style='{cell};white-space:nowrap'><b>{esc(name)}</b></td>"
        f"<td style='{cell};white-space:nowrap'>{esc(note)}</td>"
        f"<td style='{cell}'>{esc(text, limit=_CELL_LIMIT)}</td></tr>"
        for name, note, text in rows
    )
    return f"<table>{cells}</table>"
