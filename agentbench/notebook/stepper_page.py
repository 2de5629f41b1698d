"""A stepper on a page: anywidgets that hold no content, and the talk with them.

What is shown travels as messages, never as traits: whoever saves the state of all widgets (nbconvert does) saves script
and style, and nothing of a run.

From the page: `ready`, `press` (name), `goto` (id), `tab` (name), `level` (stamp, path, start), `full` (stamp, path);
each with `view`, the id of the view that speaks. To the page: `view`, `side`, `level`, `full`, `log`, `focusRequest`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, Protocol

import anywidget
import ipywidgets
import traitlets

from agentbench.exceptions import NotebookError
from agentbench.notebook.forms import Form, request_form
from agentbench.notebook.pacing import TRAIT_LOCK
from agentbench.notebook.stepper_content import TABS, Content
from agentbench.notebook.stepper_model import LOG_LINES
from agentbench.notebook.stepper_view import StepperView
from agentbench.notebook.value_tree import Level, ValueTree

__all__ = ["Layout", "RequestForms", "StepperControl", "StepperPage", "StepperPart"]

_STATIC = files("agentbench.notebook").joinpath("static")

Layout = Literal["auto", "wide", "stacked", "graph", "minimal"]
Message = dict[str, Any]


class StepperControl(Protocol):
    """What a page does to a stepper. None of it waits."""

    @property
    def view(self) -> StepperView:
        """What is to be shown now."""

    @property
    def content(self) -> Content:
        """What the open tab holds now."""

    @property
    def log_total(self) -> int:
        """How many lines were ever written to the log."""

    @property
    def tab(self) -> str:
        """Name of the open tab."""

    def press(self, name: str) -> None:
        """Do what a button does; nothing if it can do nothing now."""

    def show_checkpoint(self, checkpoint_id: str) -> None:
        """Show a checkpoint; nothing if it is not there."""

    def open_tab(self, name: str) -> None:
        """Open a tab."""

    def answer(self, request_id: str, value: Any) -> object:
        """Send an answer; what it returns can be awaited."""

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function on the loop of the runs, where reading a run disturbs nobody."""


class StepperPart(anywidget.AnyWidget):
    """One part of the panel: it carries messages both ways and keeps none."""

    _esm = _STATIC.joinpath("stepper.js").read_text(encoding="utf-8")
    _css = _STATIC.joinpath("stepper.css").read_text(encoding="utf-8")
    part = traitlets.Unicode("top").tag(sync=True)
    # What a page without a kernel can say.
    name = traitlets.Unicode("Stepper").tag(sync=True)

    def __init__(self, part: str, name: str, on_message: Callable[[Message], object]) -> None:
        super().__init__(part=part, name=name)
        self._told = on_message
        self.on_msg(self._heard)

    def _heard(self, _widget: object, content: object, _buffers: object) -> None:
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            self._told(content)

    def __repr__(self) -> str:
        return f"StepperPart({self.part!r})"


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
        # No user's text: the forms carry their own by message.
        bars = '<span class="abs-bars" aria-hidden="true"></span>'
        self._title.value = f'<div class="abs abs-asking">{bars} {view.requests_title}</div>' if wanted else ""
        self.box.children = (self._title, *(form.widget for form in self._forms.values())) if self._forms else ()
        return bool(new)

    def close(self) -> None:
        """Take the forms off the page."""
        for form in self._forms.values():
            form.close()
        self._forms.clear()
        self._title.close()
        self.box.close()


@dataclass
class _Sent:
    """What the pages know already."""

    stops: tuple[tuple[str, str], ...] = ()
    log_total: int = 0
    side: object = None


class StepperPage:
    """Translates between a stepper and the parts of its panel. The page is believed nothing.

    Args:
        stepper: What is shown and driven.
        name: What a page without a kernel says.
        panel: The graph, or `None` to leave it out.
        layout: `auto`, `wide`, `stacked`, `graph` (no tabs) or `minimal` (header and controls only).
        height: Of graph and tabs, in pixels.

    Attributes:
        widget: The whole, to be displayed.
    """

    def __init__(self, stepper: StepperControl, name: str, panel: Any, *, layout: Layout, height: int) -> None:
        self._stepper = stepper
        self._panel = panel
        self._tree = ValueTree()
        self._stamp = 0
        self._sent = _Sent()
        self._focus_view: str | None = None
        self._steps = 0
        self._parts = {part: StepperPart(part, name, self._hear) for part in _parts_of(layout)}
        self._requests = RequestForms(stepper.answer)
        self.widget = self._laid_out(layout, height)

    def _laid_out(self, layout: Layout, height: int) -> Any:
        rows: list[Any] = [self._parts["top"]]
        if self._panel is not None and layout != "minimal":
            self._panel.add_class("abs-graph")
            # All of the picture where there is room for it; the values stand beside it or, on narrow pages, below.
            self._panel.layout.min_width = f"min({_picture_width(self._panel) + 2}px, 70%)"
            main = [self._panel]
            if "side" in self._parts:
                side = ipywidgets.Box([self._parts["side"]], layout=ipywidgets.Layout(height=f"{height}px"))
                side.add_class("abs-side-box")
                main.append(side)
            middle = ipywidgets.Box(main)
            middle.add_class("abs-main")
            rows.append(middle)
        rows.append(self._requests.box)
        if "log" in self._parts:
            rows.append(self._parts["log"])
        frame = ipywidgets.VBox(rows)
        frame.add_class("abs-frame")
        frame.add_class(f"abs-{layout}")
        return frame

    # ---- to the page -------------------------------------------------------------------------------------------------

    def draw(self, steps: int) -> None:
        """Show how things are. Called on the loop of the runs.

        Args:
            steps: How many supersteps were taken.
        """
        view = self._stepper.view
        with TRAIT_LOCK:
            self._say("top", self._view_message(view, whole=False))
            self._send_log(view, None)
            self._send_side(None)
            if self._panel is not None:
                self._panel.update(view.states, view.badges)
            if self._requests.show(view, steps) and self._focus_view is not None:
                self._say("top", {"kind": "focusRequest", "view": self._focus_view})
            self._steps = steps

    def _say(self, part: str, message: Message) -> None:
        if part in self._parts:
            self._parts[part].send(message)

    def _view_message(self, view: StepperView, *, whole: bool) -> Message:
        header, banner, scrubber = view.header, view.banner, view.scrubber
        message: Message = {
            "kind": "view",
            "header": {
                "name": header.name,
                "run": header.run,
                "superstep": header.superstep,
                "sign": header.sign,
                "status": header.status,
                "figures": header.figures,
            },
            "status": str(view.status),
            "announcement": view.announcement,
            "buttons": [(each.name, each.label, each.hint, each.enabled) for each in view.buttons],
            "banner": {
                "tone": banner.tone,
                "text": banner.text,
                "details": banner.details,
                "actions": banner.actions,
            },
            "index": scrubber.index,
            "position": scrubber.position,
            "scrubbing": scrubber.enabled,
        }
        if whole:
            message["stops"], message["stopsFrom"] = scrubber.stops, 0
        elif scrubber.stops != self._sent.stops:
            same = _common(self._sent.stops, scrubber.stops)
            message["stops"], message["stopsFrom"] = scrubber.stops[same:], same
            self._sent.stops = scrubber.stops
        return message

    def _send_log(self, view: StepperView, to: str | None) -> None:
        total = self._stepper.log_total
        fresh = LOG_LINES if to is not None else total - self._sent.log_total
        if fresh <= 0:
            return
        lines = [(line.kind, line.text) for line in view.log[-fresh:]]
        headline = next(((line.kind, line.text) for line in reversed(view.log) if line.kind != "text"), None)
        message = {"kind": "log", "lines": lines, "headline": headline, "total": total, "limit": LOG_LINES}
        if to is None:
            self._sent.log_total = total
        else:
            message["view"] = to
        self._say("log", message)

    def _send_side(self, to: str | None) -> None:
        if "side" not in self._parts:
            return
        content = self._stepper.content
        if to is None and content is self._sent.side:
            return
        if content is not self._sent.side:
            self._stamp += 1
            self._sent.side = content
            self._tree = content.tree
        message = {
            "kind": "side",
            "tabs": TABS,
            "tab": self._stepper.tab,
            "title": content.title,
            "stamp": self._stamp,
            "level": _plain_level(self._tree.level()),
        }
        self._say("side", message if to is None else {**message, "view": to})

    # ---- from the page -----------------------------------------------------------------------------------------------

    def _hear(self, message: Message) -> None:
        handle = {
            "ready": self._ready,
            "press": self._pressed,
            "goto": self._went,
            "tab": self._tabbed,
            "level": self._asked_for_level,
            "full": self._asked_for_all,
        }.get(message["kind"])
        if handle is None:
            return
        try:
            handle(message)
        except (NotebookError, LookupError):
            # Not possible now, or sent by no page of ours: the page is told how things are.
            self._stepper.soon(self._remind)

    def _remind(self) -> None:
        self._say("top", self._view_message(self._stepper.view, whole=False))

    def _ready(self, message: Message) -> None:
        self._stepper.soon(lambda: self._greet(_view_of(message)))

    def _greet(self, to: str | None) -> None:
        view = self._stepper.view
        with TRAIT_LOCK:
            self._say("top", {**self._view_message(view, whole=True), "view": to})
            self._send_log(view, to or "")
            self._send_side(to or "")

    def _pressed(self, message: Message) -> None:
        name = message.get("name")
        if isinstance(name, str):
            self._focus_view = _view_of(message) if name in ("step", "run", "confirm") else None
            self._stepper.press(name)

    def _went(self, message: Message) -> None:
        checkpoint_id = message.get("id")
        if isinstance(checkpoint_id, str):
            self._stepper.show_checkpoint(checkpoint_id)

    def _tabbed(self, message: Message) -> None:
        name = message.get("name")
        if any(name == known for known, _ in TABS):
            self._stepper.open_tab(str(name))

    def _asked_for_level(self, message: Message) -> None:
        path, start = _path_of(message), message.get("start")
        if path is not None and message.get("stamp") == self._stamp and isinstance(start, int) and start >= 0:
            level = _plain_level(self._tree.level(path, start))
            self._answer_side(message, {"kind": "level", "path": path, "level": level})

    def _asked_for_all(self, message: Message) -> None:
        path = _path_of(message)
        if path and message.get("stamp") == self._stamp:
            self._answer_side(message, {"kind": "full", "path": path, "text": self._tree.full_text(path)})

    def _answer_side(self, asked: Message, said: Message) -> None:
        self._say("side", {**said, "stamp": self._stamp, "view": _view_of(asked)})

    def close(self) -> None:
        """Take everything off the page. May be called twice."""
        self._requests.close()
        if self._panel is not None:
            self._panel.close()
        for part in self._parts.values():
            part.close()
        self.widget.close()


def _parts_of(layout: Layout) -> tuple[str, ...]:
    if layout == "minimal":
        return ("top",)
    return ("top", "log") if layout == "graph" else ("top", "side", "log")


def _view_of(message: Message) -> str | None:
    view = message.get("view")
    return view if isinstance(view, str) else None


def _path_of(message: Message) -> list[int] | None:
    path = message.get("path")
    if isinstance(path, list) and all(isinstance(place, int) for place in path):
        return path
    return None


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    """How many items both begin with; a line that only grew is compared at once."""
    if after[: len(before)] == before:
        return len(before)
    return next(i for i, item in enumerate(before) if i >= len(after) or item != after[i])


def _plain_level(level: Level) -> Message:
    rows = [(row.name, row.kind, row.text, row.note, row.opens, row.cut) for row in level.rows]
    return {"rows": rows, "start": level.start, "more": level.more}


def _picture_width(panel: Any) -> int:
    """How wide the picture of a live panel is, in pixels; 0 for a panel that tells none."""
    found = re.match(r'<svg[^>]* width="(\d+)', getattr(panel, "svg", ""))
    return int(found.group(1)) if found else 0
