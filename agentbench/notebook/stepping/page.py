"""A stepper on a page: anywidgets that hold no content, and the talk with them.

Content travels as messages, never as traits: a tool that saves the state of all widgets (nbconvert does) saves script
and style, and nothing of a run.

From the page: `ready`, `press` (name, value), `goto` (id), `tab` (name), `level` (stamp, path, start), `full` (stamp,
path), `draft` (stamp, path), `typed` (stamp, path, text), `edit` (stamp, path, text, key), `discard` (stamp, path),
`offers`, `break` (sort, choice, value, once), `breakNode` (stamp, when, on), `unbreak` (id); each with `view`, the id
of the view that sends it. `stamp` is that of the `side` on the person's screen.

To the page: `view`, `side`, `level`, `full`, `draft`, `edited`, `offers`, `problem`, `log`, `focusRequest`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

import ipywidgets
import traitlets

from agentbench.exceptions import InvalidEdit, NotebookError
from agentbench.notebook.forms.text_values import LONGEST, text_of, value_of
from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime.pacing import TRAIT_LOCK
from agentbench.notebook.runtime.widgets import Message, MessageWidget, close_all
from agentbench.notebook.stepping.model.commands import Control
from agentbench.notebook.stepping.model.model import LOG_LINES
from agentbench.notebook.stepping.options import Layout
from agentbench.notebook.stepping.request_forms import RequestForms
from agentbench.notebook.stepping.view.tabs import TABS, Content
from agentbench.notebook.stepping.view.view import StepperView
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.value_tree import Entry, Level, Row, ValueTree

__all__ = ["StepperPage", "StepperPart"]

_SCRIPTS = ("stepper_base.js", "stepper_top.js", "stepper_side.js", "stepper_log.js", "stepper.js")

_Where = tuple[str | None, str]  # checkpoint id and edit path
_MOST_SIDES = 4  # a page's message may cross with the next side sent to it
_AROUND_PICTURE = 18  # pixels on both sides together
_CHANGE = ("sign", "words", "path", "before", "after", "discards")


class StepperPart(MessageWidget):
    """One part of the panel."""

    # One module, as a page without a bundler wants it; in several files, as a reader does.
    _esm = "\n".join(map(read_script, _SCRIPTS))
    _css = read_script("stepper.css")
    part = traitlets.Unicode("top").tag(sync=True)
    height = traitlets.Int(420).tag(sync=True)


@dataclass
class _Sent:
    """What was sent to the pages already."""

    stops: tuple[tuple[str, str], ...] = ()
    log_total: int = 0


@dataclass(frozen=True)
class _Side:
    """The content on a page when it sent a message: read once, while the loop of the runs may already send the next."""

    stamp: int
    content: Content


_NOTHING_SENT = _Side(0, Content("", ValueTree()))


class StepperPage:
    """Translates between a stepper and the parts of its panel. Every message of a page is checked.

    Args:
        stepper: The stepper being displayed and driven.
        name: The text of a page without a kernel.
        panel: The graph, or `None` to leave it out.
        layout: `auto`, `wide`, `stacked`, `graph` (no tabs) or `minimal` (header and controls only).
        height: Of graph and tabs, in pixels.

    Attributes:
        widget: The whole, to be displayed.
    """

    def __init__(self, stepper: Any, name: str, panel: Any, *, layout: Layout, height: int) -> None:
        self._stepper = stepper
        self._panel = panel
        self._sides: tuple[_Side, ...] = (_NOTHING_SENT,)  # the newest last
        self._sent = _Sent()
        self._drafts: dict[_Where, str] = {}  # typed and not yet staged
        self._focus_view: str | None = None
        self._steps = 0
        self._parts = {part: StepperPart(self._hear, part=part, name=name, height=height) for part in _parts_of(layout)}
        self._requests = RequestForms(stepper.answer)
        self.widget = self._lay_out(layout)

    def _lay_out(self, layout: Layout) -> Any:
        rows: list[Any] = [self._parts["top"], self._requests.box]
        if self._panel is not None and layout != "minimal":
            self._panel.add_class("abs-graph")
            # All of the picture where there is room for it; the values stand beside it or, on narrow pages, below.
            self._panel.layout.min_width = f"min({_picture_width(self._panel) + _AROUND_PICTURE}px, 70%)"
            main = [self._panel]
            if "side" in self._parts:
                main.append(_box([self._parts["side"]], "abs-side-box"))
            rows.append(_box(main, "abs-main"))
        if "log" in self._parts:
            rows.append(self._parts["log"])
        # The frame measures the page. The body keeps its height, except for the forms of questions: they come in whole.
        return _box([_box(rows, "abs-body")], "abs-frame", f"abs-{layout}")

    # ---- to the page -------------------------------------------------------------------------------------------------

    def draw(self, steps: int) -> None:
        """Send the current view to the page. Called on the loop of the runs.

        Args:
            steps: How many supersteps were taken.
        """
        view = self._stepper.view
        with TRAIT_LOCK:
            self._send("top", self._view_message(view, whole=False))
            self._send_log(view, None)
            self._send_side(None)
            if self._panel is not None:
                self._panel.update(view.states, view.badges)
                self._panel.flush()
            if self._requests.show(view, steps) and self._focus_view is not None:
                self._send("top", {"kind": "focusRequest", "view": self._focus_view})
            self._steps = steps

    def _send(self, part: str, message: Message) -> None:
        if part in self._parts:
            self._parts[part].send(message)

    def _view_message(self, view: StepperView, *, whole: bool) -> Message:
        scrubber = view.scrubber
        message: Message = {
            "kind": "view",
            "header": asdict(view.header),
            "status": str(view.status),
            "announcement": view.announcement,
            "buttons": _controls(view.buttons),
            "banner": {**asdict(view.banner), "text": view.banner.text + self._unstaged_words()},
            "runMenu": _controls(view.run_menu),
            "moreMenu": _controls(view.more_menu),
            "breakpoints": [(each.id, each.text, each.reached) for each in view.breakpoints],
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
        self._send("log", message)

    def _send_side(self, to: str | None) -> None:
        if "side" not in self._parts:
            return
        content, side = self._stepper.content, self._sides[-1]
        if content is not side.content:
            side = _Side(side.stamp + 1, content)
            self._sides = (*self._sides, side)[-_MOST_SIDES:]
        elif to is None:
            return
        message = {
            "kind": "side",
            "tabs": TABS,
            "tab": self._stepper.tab,
            "title": content.title,
            "facts": content.facts,
            "breaks": None if content.breaks is None else asdict(content.breaks),
            "changes": [
                (title, [tuple(getattr(row, each) for each in _CHANGE) for row in rows])
                for title, rows in content.changes
            ],
            "displays": content.displays,
            "stamp": side.stamp,
            "checkpoint": content.checkpoint_id,
            "level": self._plain(side, content.tree.level()),
        }
        self._send("side", message if to is None else {**message, "view": to})

    # ---- from the page -----------------------------------------------------------------------------------------------

    def _hear(self, message: Message) -> None:
        handle = {
            "ready": self._ready,
            "press": self._press,
            "goto": self._go_to,
            "tab": self._open_tab,
            "level": self._send_level,
            "full": self._send_full_text,
            "draft": self._begin_edit,
            "typed": self._store_draft,
            "edit": self._edit,
            "discard": self._discard,
            "offers": self._send_offers,
            "break": self._set_breakpoint,
            "breakNode": self._break_node,
            "unbreak": self._unbreak,
        }.get(message["kind"])
        if handle is None:
            return
        try:
            handle(message)
        except (NotebookError, LookupError, ValueError):
            # Not possible now, or sent by no page of ours: the page gets the current view.
            self._stepper.soon(self._remind)

    def _remind(self) -> None:
        with TRAIT_LOCK:
            self._send("top", self._view_message(self._stepper.view, whole=False))

    def _ready(self, message: Message) -> None:
        self._stepper.soon(lambda: self._greet(_view_of(message)))

    def _greet(self, to: str | None) -> None:
        view = self._stepper.view
        with TRAIT_LOCK:
            self._send("top", {**self._view_message(view, whole=True), "view": to})
            self._send_log(view, to or "")
            self._send_side(to or "")

    def _press(self, message: Message) -> None:
        name = message.get("name")
        if isinstance(name, str):
            self._focus_view = _view_of(message) if name == "confirm" or name.startswith(("step", "run")) else None
            self._stepper.press(name, message.get("value"))
            if name in ("pause", "stop"):  # seen at once, even while an executor keeps the loop of the runs busy
                self._remind()

    def _go_to(self, message: Message) -> None:
        checkpoint_id = message.get("id")
        if isinstance(checkpoint_id, str):
            self._stepper.show_checkpoint(checkpoint_id)

    def _open_tab(self, message: Message) -> None:
        name = message.get("name")
        if any(name == known for known, _ in TABS):
            self._stepper.open_tab(str(name))

    # ---- values: levels, whole texts, edits --------------------------------------------------------------------------

    def _side_of(self, message: Message) -> _Side | None:
        """The side on the page when it sent a message; `None` if that is no longer stored."""
        stamp = message.get("stamp")
        return next((side for side in self._sides if side.stamp == stamp), None)

    def _place(self, message: Message) -> tuple[_Side, list[int]] | None:
        """The side and the path that a message of a page names; `None` if they do not exist."""
        side, path = self._side_of(message), message.get("path")
        if side is not None and isinstance(path, list) and all(type(each) is int for each in path):
            return side, path
        return None

    def _send_level(self, message: Message) -> None:
        place, start = self._place(message), message.get("start")
        if place is not None and isinstance(start, int) and start >= 0:
            side, path = place
            level = self._plain(side, side.content.tree.level(path, start))
            self._answer(message, {"kind": "level", "path": path, "level": level})

    def _send_full_text(self, message: Message) -> None:
        place = self._place(message)
        if place is not None and place[1]:
            side, path = place
            self._answer(message, {"kind": "full", "path": path, "text": side.content.tree.full_text(path)})

    def _editable(self, message: Message) -> tuple[list[int], Entry, _Where] | None:
        """Place, entry, checkpoint and edit path of a value that a page wants to edit; `None` if it may not."""
        place = self._place(message)
        if place is None or not place[1]:
            return None
        side, path = place
        where = side.content.tree.edit_path(path)
        found = side.content.tree.at(path)
        return None if where is None else (path, found, (side.content.checkpoint_id, where))

    def _begin_edit(self, message: Message) -> None:
        found = self._editable(message)
        if found is None:
            return
        path, entry, where = found
        answer: Message = {"kind": "draft", "path": path}
        try:
            now = text_of(entry.value)
            answer |= {"text": now.text, "help": now.help, "draft": self._drafts.get(where)}
        except ValueError as error:
            answer["problem"] = str(error)
        self._answer(message, answer)

    def _store_draft(self, message: Message) -> None:
        """Store the text being typed, so that it survives a page that is closed or reloaded."""
        found, text = self._editable(message), message.get("text")
        if found is None:
            return
        before = len(self._drafts)
        if isinstance(text, str) and len(text) <= LONGEST:
            self._drafts[found[2]] = text
        else:
            self._drafts.pop(found[2], None)
        if len(self._drafts) != before:
            self._stepper.soon(self._remind)

    def _unstaged_words(self) -> str:
        """A hint that typed values are not used until they are staged; empty if there are none."""
        displayed = self._sides[-1].content.checkpoint_id
        count = sum(checkpoint_id == displayed for checkpoint_id, _ in list(self._drafts))
        return f" {count_text(count, 'typed value')} not staged yet, so not used." if count else ""

    def _edit(self, message: Message) -> None:
        found, text = self._editable(message), message.get("text")
        if found is None or not isinstance(text, str):
            return
        _, entry, where = found
        try:
            value = value_of(text, entry.value)
        except ValueError as error:
            self._send_edit_result(message, str(error))
            return
        self._drafts.pop(where, None)
        checkpoint_id, path = where
        staging = self._stepper.stage(path, value, checkpoint_id)
        staging.add_done_callback(lambda done: self._finish_edit(message, where, text, done))

    def _finish_edit(self, message: Message, where: _Where, text: str, done: Future[Any]) -> None:
        error = done.exception() if not done.cancelled() else None
        if error is not None:
            self._drafts[where] = text
        problem = "" if error is None else error.problem if isinstance(error, InvalidEdit) else str(error)
        self._send_edit_result(message, esc(problem, into="line", limit=400))

    def _send_edit_result(self, message: Message, problem: str) -> None:
        key = message.get("key")
        self._answer(message, {"kind": "edited", "key": key if isinstance(key, str) else "", "problem": problem})

    def _discard(self, message: Message) -> None:
        side, path = self._side_of(message), message.get("path")
        if side is not None and isinstance(path, str):
            self._stepper.discard(path, side.content.checkpoint_id)

    def _plain(self, side: _Side, level: Level) -> Message:
        rows = [
            (row.name, row.kind, row.text, row.note, row.opens, row.cut, self._edit_sign(side, row))
            for row in level.rows
        ]
        return {"rows": rows, "start": level.start, "more": level.more}

    def _edit_sign(self, side: _Side, row: Row) -> int:
        """0 for a value that cannot be edited, 1 for one that can, 2 for one with a draft."""
        if row.path is None:
            return 0
        return 2 if (side.content.checkpoint_id, row.path) in self._drafts else 1

    def _answer(self, request: Message, answer: Message) -> None:
        self._send("side", {**answer, "stamp": request.get("stamp"), "view": _view_of(request)})

    # ---- breakpoints -------------------------------------------------------------------------------------------------

    def _send_offers(self, message: Message) -> None:
        def send() -> None:
            offers = [(each.sort, each.label, each.options, each.asks) for each in self._stepper.offers]
            self._send("top", {"kind": "offers", "offers": offers, "view": _view_of(message)})

        self._stepper.soon(send)

    def _set_breakpoint(self, message: Message) -> None:
        sort, choice = message.get("sort"), message.get("choice")
        if not isinstance(sort, str) or type(choice) is not int:
            return

        def set_it() -> None:
            try:
                self._stepper.break_at(sort, choice, message.get("value"), once=message.get("once") is True)
            except (NotebookError, LookupError, ValueError) as error:
                problem = esc(error.args[0] if error.args else error, into="line", limit=400)
                self._send("top", {"kind": "problem", "text": problem, "view": _view_of(message)})

        self._stepper.soon(set_it)

    def _break_node(self, message: Message) -> None:
        when, on, side = message.get("when"), message.get("on"), self._side_of(message)
        breaks = None if side is None else side.content.breaks
        if when in ("before", "after") and isinstance(on, bool) and breaks is not None:
            self._stepper.break_node(breaks.executor, str(when), on=on)

    def _unbreak(self, message: Message) -> None:
        breakpoint_id = message.get("id")
        if isinstance(breakpoint_id, str):
            self._stepper.unbreak(breakpoint_id)

    def close(self) -> None:
        """Take everything off the page, and drop what was sent and typed. May be called twice."""
        self._drafts.clear()
        self._sides, self._sent = (_NOTHING_SENT,), _Sent()
        self._requests.close()
        if self._panel is not None:
            self._panel.close()
        close_all(self.widget)


def _parts_of(layout: Layout) -> tuple[str, ...]:
    if layout == "minimal":
        return ("top",)
    return ("top", "log") if layout == "graph" else ("top", "side", "log")


def _view_of(message: Message) -> str | None:
    view = message.get("view")
    return view if isinstance(view, str) else None


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    """How many items both begin with; a line that only grew is compared at once."""
    if after[: len(before)] == before:
        return len(before)
    return next(i for i, item in enumerate(before) if i >= len(after) or item != after[i])


def _controls(controls: Sequence[Control]) -> list[tuple[object, ...]]:
    """Controls as the page reads them: a line between the items of a menu is an empty item."""
    return [(each.name, each.label, each.hint, each.enabled, each.key) if each.name else () for each in controls]


def _box(children: Sequence[Any], *names: str) -> Any:
    box = ipywidgets.Box(list(children))
    for name in names:
        box.add_class(name)
    return box


def _picture_width(panel: Any) -> int:
    """Width of the picture of a live panel, in pixels; 0 for a panel without a picture."""
    found = re.match(r'<svg[^>]* width="(\d+)', getattr(panel, "svg", ""))
    return int(found.group(1)) if found else 0
