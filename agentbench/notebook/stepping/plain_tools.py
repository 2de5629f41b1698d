"""Parts of a stepper's page without anywidget: its menus, its breakpoints, and the field for an edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import ipywidgets

from agentbench.checkpoints.paths import find_place
from agentbench.exceptions import InvalidEdit, NotebookError
from agentbench.notebook.forms.text_values.edits import value_of
from agentbench.notebook.stepping.control import StepperControl
from agentbench.notebook.stepping.model.break_offers import Offer
from agentbench.notebook.stepping.view.tabs import Content
from agentbench.notebook.stepping.view.view import StepperView
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.value_tree import Entry

__all__ = ["BreakpointTool", "EditTool", "MenuTool", "plain_button", "row_box"]

# Commands that other parts of a plain page do, or that only the live page has.
_ELSEWHERE = ("run", "breakpoints", "break", "see_edits", "help", "live", "")


def row_box(children: Sequence[Any], *, align: str = "center") -> Any:
    """Widgets side by side, as many in a row as there is room for."""
    return ipywidgets.HBox(list(children), layout=ipywidgets.Layout(flex_flow="row wrap", align_items=align))


def plain_button(label: str, call: Callable[[], object]) -> Any:
    """A button as wide as its text."""
    button = ipywidgets.Button(description=label, layout=ipywidgets.Layout(width="auto"))
    button.on_click(lambda _: call())
    return button


def _set_options(choice: Any, options: Sequence[Any]) -> None:
    """Offer other options, and keep what is chosen where it is still there."""
    if tuple(choice.options) != tuple(options):
        chosen = choice.value
        choice.options = tuple(options)
        values = [value for _, value in options]
        if values:
            choice.value = chosen if chosen in values else values[0]


class MenuTool:
    """The commands of the live page's menus, as one list and a button.

    Args:
        press: Does a command; called with its name and the typed input.

    Attributes:
        row: The widgets.
    """

    def __init__(self, press: Callable[[str, object], object]) -> None:
        self._press = press
        self._choice = ipywidgets.Dropdown(options=[("nothing now", "")], description="More")
        self._count = ipywidgets.Text(value="5", description="n", layout=ipywidgets.Layout(width="9em"))
        self._go = plain_button("Do it", self._run_chosen)
        self.row = (self._choice, self._count, self._go)

    def show(self, view: StepperView) -> None:
        """Offer what can be done now."""
        items = [item for item in (*view.run_menu, *view.more_menu) if item.command not in _ELSEWHERE and item.enabled]
        _set_options(self._choice, [(item.label, item.command) for item in items])
        self._go.disabled = not items

    def _run_chosen(self) -> None:
        name = self._choice.value
        if name == "ask_steps":
            text = self._count.value.strip()
            self._press("run_steps", int(text) if text.isascii() and text.isdigit() else None)
        elif name:
            self._press(name, None)


class BreakpointTool:
    """The breakpoints: a list, and fields to add one.

    Args:
        stepper: The stepper being driven.

    Attributes:
        box: The widgets.
    """

    def __init__(self, stepper: StepperControl) -> None:
        self._stepper = stepper
        self._offers: tuple[Offer, ...] = ()
        self._there = ipywidgets.Dropdown(description="Set", options=[("none yet", "")])
        self._remove = plain_button("Remove", lambda: stepper.unbreak(self._there.value))
        self._sort = ipywidgets.Dropdown(description="Pause")
        self._place = ipywidgets.Dropdown(description="Where")
        self._value = ipywidgets.Text(description="Value")
        self._once = ipywidgets.Checkbox(description="once", indent=False, layout=ipywidgets.Layout(width="auto"))
        self._problem = ipywidgets.HTML()
        self._sort.observe(lambda _: self._suit(), "value")
        add = plain_button("Add", self._add)
        self.box = ipywidgets.VBox(
            [
                row_box([self._there, self._remove]),
                row_box([self._sort, self._place, self._value, self._once, add]),
                self._problem,
            ]
        )

    def show(self, view: StepperView, offers: tuple[Offer, ...]) -> None:
        """Bring the lists up to date."""
        there = [(each.text + (" (reached)" if each.reached else ""), each.id) for each in view.breakpoints]
        _set_options(self._there, there or [("none yet", "")])
        self._remove.disabled = not there
        if offers != self._offers:
            self._offers = offers
            _set_options(self._sort, [(each.label, each.sort) for each in offers])
            self._suit()

    def _suit(self) -> None:
        offer = next((each for each in self._offers if each.sort == self._sort.value), None)
        if offer is not None:
            _set_options(self._place, [(option, place) for place, option in enumerate(offer.options)])
            self._place.disabled = not offer.options
            self._value.disabled = not offer.asks

    def _add(self) -> None:
        text = self._value.value.strip()
        number = self._sort.value == "superstep"
        value = (int(text) if text.isascii() and text.isdigit() else None) if number else text
        self._stepper.soon(partial(self._set, self._sort.value, self._place.value or 0, value, self._once.value))

    def _set(self, sort: str, place: int, value: object, once: bool) -> None:
        self._problem.value = ""
        try:
            self._stepper.break_at(sort, place, value, once=once)
        except (NotebookError, LookupError, ValueError) as error:
            self._problem.value = esc(error.args[0] if error.args else error)

    def clear(self) -> None:
        """Clear the typed input."""
        self._value.value = self._problem.value = ""


class EditTool:
    """A field for the path of a value, and one for the value.

    Args:
        stepper: The stepper being driven.

    Attributes:
        box: The widgets.
    """

    def __init__(self, stepper: StepperControl) -> None:
        self._stepper = stepper
        self._content: Content | None = None
        self._path = ipywidgets.Text(description="Value at", placeholder="draft.title")
        self._text = ipywidgets.Textarea(description="is to be", placeholder="text as it is, all else as JSON")
        self._stage = plain_button("Stage", self._stage_text)
        self._problem = ipywidgets.HTML()
        self.box = ipywidgets.VBox([row_box([self._path, self._text, self._stage]), self._problem])

    def show(self, view: StepperView, content: Content) -> None:
        """Bring the button up to date; `content` holds the values while the State tab is open."""
        self._content = content
        self._stage.disabled = not next(button.enabled for button in view.buttons if button.name == "edit")

    def _stage_text(self) -> None:
        content = self._content
        if self._stepper.tab != "state":
            self._stepper.open_tab("state")
            self._problem.value = "The State tab is open now and displays the value. Stage once more."
            return
        if content is None:
            return
        path, text = self._path.value.strip(), self._text.value
        try:
            value = value_of(text, _value_at(content.tree.entries, path))
            staging = self._stepper.stage(path, value, content.checkpoint_id)
        except (LookupError, ValueError) as error:
            self._problem.value = esc(error.args[0])
            return
        staging.add_done_callback(self._finish_edit)

    def _finish_edit(self, done: Future[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is None:
            self.clear()
            return
        self._problem.value = esc(error.problem if isinstance(error, InvalidEdit) else error)

    def clear(self) -> None:
        """Clear the typed input."""
        self._path.value = self._text.value = self._problem.value = ""


def _value_at(entries: Sequence[Entry], path: str) -> Any:
    """Return the value at an edit path.

    Raises:
        LookupError: There is none.
    """
    return find_place({each.name: each.value for each in entries if each.path is not None}, path).value
