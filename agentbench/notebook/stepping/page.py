"""A stepper on a page: anywidgets that hold no content, and the messages to them.

Content travels as messages, never as traits: a tool that saves the state of all widgets (nbconvert does) saves script
and style, and nothing of a run. `view.messages` makes `view`, `side` and `log`; `page_input` answers what a page asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from agentbench.notebook.forms.inbox import RequestForms
from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime.pacing import TRAIT_LOCK
from agentbench.notebook.runtime.widgets import Message, MessageWidget, close_all
from agentbench.notebook.stepping.options import Layout
from agentbench.notebook.stepping.view.messages import log_message, messages_of, side_message, view_message
from agentbench.notebook.stepping.view.screen_state import ScreenState

__all__ = ["SCRIPT", "STYLE", "StepperPage", "StepperPart"]

_STATIC = Path(__file__).parent / "static"
_SCRIPTS = ("stepper_base.js", "stepper_top.js", "stepper_side.js", "stepper_log.js", "stepper.js")

#: The parts. One module, as a page without a bundler wants it; in several files, as a reader does.
SCRIPT = "\n".join([read_script("dom.js"), *((_STATIC / name).read_text(encoding="utf-8") for name in _SCRIPTS)])
STYLE = (_STATIC / "stepper.css").read_text(encoding="utf-8")

_PARTS: dict[Layout, tuple[str, ...]] = {"minimal": ("top",), "graph": ("top", "log")}
_AROUND_PICTURE = 18  # pixels on both sides together


class StepperPart(MessageWidget):
    """One part of the panel."""

    _esm = SCRIPT
    _css = STYLE
    part = traitlets.Unicode("top").tag(sync=True)
    height = traitlets.Int(420).tag(sync=True)


class StepperPage:
    """The widgets of a panel. They carry messages both ways; `widget` is the whole, to be displayed.

    `name` is the text of a page without a kernel; `panel` the graph, `None` to leave it out; `hear` is called with each
    message of a page, `answer` with the id of a request and the answer that a person has given.
    """

    def __init__(
        self,
        name: str,
        panel: Any,
        *,
        layout: Layout,
        height: int,
        hear: Callable[[Message], object],
        answer: Callable[[str, Any], object],
    ) -> None:
        self._panel = panel
        self._parts = {
            part: StepperPart(hear, part=part, name=name, height=height)
            for part in _PARTS.get(layout, ("top", "side", "log"))
        }
        self._requests = RequestForms(answer)
        # What was sent to the pages already.
        self._stops: tuple[tuple[str, str], ...] = ()
        self._log_total = 0
        self._stamp = 0
        self.widget = self._lay_out(layout)

    def _lay_out(self, layout: Layout) -> Any:
        rows: list[Any] = [self._parts["top"], self._requests.box]
        if self._panel is not None:
            self._panel.add_class("abs-graph")
            # All of the picture where there is room for it; the values stand beside it or, on narrow pages, below.
            found = re.match(r'<svg[^>]* width="(\d+)', getattr(self._panel, "svg", ""))
            width = int(found.group(1)) if found else 0
            self._panel.layout.min_width = f"min({width + _AROUND_PICTURE}px, 70%)"
            main = [self._panel]
            if "side" in self._parts:
                main.append(_box([self._parts["side"]], "abs-side-box"))
            rows.append(_box(main, "abs-main"))
        if "log" in self._parts:
            rows.append(self._parts["log"])
        # The frame measures the page. The body keeps its height, except for the forms of questions: they come in whole.
        return _box([_box(rows, "abs-body")], "abs-frame", f"abs-{layout}")

    def send(self, part: str, message: Message) -> None:
        """Send a message to a part, if the panel has it."""
        if part in self._parts:
            self._parts[part].send(message)

    def greet(self, screen: ScreenState, view: str | None) -> None:
        """Send everything to one view of the panel."""
        with TRAIT_LOCK:
            for part, message in messages_of(screen).items():
                self.send(part, {**message, "view": view})

    def show_top(self, screen: ScreenState) -> None:
        """Send header, controls and news to all views."""
        with TRAIT_LOCK:
            self.send("top", view_message(screen, _common(self._stops, screen.stops)))
            self._stops = screen.stops

    def show(self, screen: ScreenState, focus: str | None) -> None:
        """Send what has changed to all views.

        Args:
            screen: What they are to display.
            focus: The view in which a person has let the run move: the form of a new request gets the focus there.
        """
        with TRAIT_LOCK:
            self.show_top(screen)
            if self._panel is not None:
                self._panel.update(screen.states, screen.badges)
                self._panel.flush()
            if screen.content.stamp != self._stamp:
                self.send("side", side_message(screen))
                self._stamp = screen.content.stamp
            if screen.log_total > self._log_total:
                self.send("log", log_message(screen, screen.log_total - self._log_total))
                self._log_total = screen.log_total
            if self._requests.show(screen.requests, screen.requests_title, screen.supersteps) and focus is not None:
                self.send("top", {"kind": "focusRequest", "view": focus})

    def close(self) -> None:
        """Take everything off the page. May be called twice."""
        self._requests.close()
        if self._panel is not None:
            self._panel.close()
        close_all(self.widget)


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    """How many items both begin with; a line that only grew is compared at once."""
    if after[: len(before)] == before:
        return len(before)
    return next(i for i, item in enumerate(before) if i >= len(after) or item != after[i])


def _box(children: Sequence[Any], *names: str) -> Any:
    box = ipywidgets.Box(list(children))
    for name in names:
        box.add_class(name)
    return box
