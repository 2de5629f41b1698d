"""A stepper on a page: clicks and typed values change the model, and changes of the model are drawn.

A click arrives in `StepperPage._on_message` and becomes a call of the session; the model reports its change, and
`StepperPage.draw` sends it to the pages. Content is sent in messages, not traits: a tool that saves the state of all
widgets (nbconvert does) saves script and style, and nothing of a run.

Each message from a page has a `kind`, which names a method, the fields listed in `_FIELDS`, and `view`, the id of the
sending view; `stamp` identifies the content of the view. The replies are `level`, `full`, `draft` and `edited`
to the side, `offers`, `problem` and `file` to the top.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets
import traitlets

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench._text.value_tree import Entry
from agentbench.exceptions import InvalidEdit, NotebookError
from agentbench.notebook.forms.inbox import RequestForms
from agentbench.notebook.forms.text_values import LONGEST, text_of, value_of
from agentbench.notebook.graph_panel.panel import make_graph_panel
from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime.pacing import TRAIT_LOCK
from agentbench.notebook.runtime.widgets import Message, MessageWidget, close_all
from agentbench.notebook.stepping.model.break_offers import Offer, message_types, offers_of, where_of
from agentbench.notebook.stepping.model.commands import COMMANDS
from agentbench.notebook.stepping.options import Layout, Options
from agentbench.notebook.stepping.session import Change, StepperSession
from agentbench.notebook.stepping.tab_loader import StepperTabs
from agentbench.notebook.stepping.view.screen_state import (
    EditPlace,
    ScreenState,
    level_rows,
    log_message,
    messages_of,
    side_message,
    view_message,
)
from agentbench.notebook.stepping.view.tabs import TABS, TabContent

_STATIC = Path(__file__).parent / "static"
_SCRIPTS = ("stepper_base.js", "stepper_top.js", "stepper_side.js", "stepper_log.js", "stepper.js")

SCRIPT = "\n".join(
    [read_script("dom.js", "display.js"), *((_STATIC / name).read_text(encoding="utf-8") for name in _SCRIPTS)]
)
"""The parts as one module, because a page has no bundler."""
STYLE = read_script("theme.css") + (_STATIC / "stepper.css").read_text(encoding="utf-8")

_PARTS: dict[Layout, tuple[str, ...]] = {"minimal": ("top",), "graph": ("top", "log")}
_AROUND_PICTURE = 18  # pixels on both sides together


class StepperPart(MessageWidget):
    """One part of the panel."""

    _esm = SCRIPT
    _css = STYLE
    part = traitlets.Unicode("top").tag(sync=True)
    height = traitlets.Int(420).tag(sync=True)


Draft = tuple[Message, Any]  # the message with the typed text, and the value that it replaces

_FIELDS: dict[str, dict[str, type]] = {
    "ready": {},
    "press": {"name": str},  # and `value`: the typed value
    "goto": {"id": str},
    "tab": {"name": str},
    "level": {"stamp": int, "path": list, "start": int},
    "full": {"stamp": int, "path": list},
    "draft": {"stamp": int, "path": list},
    "typed": {"stamp": int, "path": list},  # and `key`, and `text`, which is missing when the edit is cancelled
    "edit": {"stamp": int, "path": list, "text": str, "key": str},
    "discard": {"stamp": int, "path": str},
    "enqueue": {"executor": str, "text": str},
    "offers": {},
    "break": {"sort": str, "choice": int},  # and `value`, `once`
    "break_node": {"stamp": int, "when": str, "on": bool},
    "unbreak": {"id": str},
}
_OPENS_TAB = {"edit": "state", "see_edits": "diff", "see_output": "output"}


class StepperPage:
    """The widgets of a panel; display `widget`, which contains the others.

    A command that is not possible now only redraws the page. `state` returns the screen to display, `redraw` schedules
    `draw`, and `saved_page` returns the run as a standalone page.
    """

    def __init__(
        self,
        session: StepperSession,
        tabs: StepperTabs,
        workflow: Any,
        options: Options,
        *,
        state: Callable[[], ScreenState],
        redraw: Callable[[], None],
        saved_page: Callable[[], str],
    ) -> None:
        self._session = session
        self._tabs = tabs
        self._state = state
        self._redraw = redraw
        self._saved_page = saved_page
        self._message_types = message_types(getattr(workflow, "executors", {}))
        self.drafts: dict[EditPlace, Draft] = {}  # typed and not staged yet
        self._focus_view: str | None = None  # the view in which a person last started a step or a run
        name = f"Stepper {session.model.name}"
        self._parts = {
            part: StepperPart(self._on_message, part=part, name=name, height=options.height)
            for part in _PARTS.get(options.layout, ("top", "side", "log"))
        }
        self._requests = RequestForms(session.answer)
        self.panel: Any = None
        if options.layout != "minimal":
            self.panel = make_graph_panel(workflow, height=options.height)
            self.panel.on_select(self._select)
            self.panel.on_breakpoints(self._take_marks)
            self.panel.expect_page()
        # What the pages have already received.
        self._stops: tuple[tuple[str, str], ...] = ()
        self._log_total = 0
        self._stamp = 0
        self.widget = self._lay_out(options.layout)

    def _lay_out(self, layout: Layout) -> Any:
        rows: list[Any] = [self._parts["top"]]
        if self.panel is None:
            rows.append(self._requests.box)
        else:
            self.panel.add_class("abs-graph")
            # Shows the whole picture if there is room; the values are beside it or, on narrow pages, below.
            match = re.match(r'<svg[^>]* width="(\d+)', getattr(self.panel, "svg", ""))
            width = int(match.group(1)) if match else 0
            self.panel.layout.min_width = f"min({width + _AROUND_PICTURE}px, 60%)"
            side = [self._requests.box, *filter(None, [self._parts.get("side")])]
            rows.append(_box([self.panel, _box(side, "abs-side-box")], "abs-main"))
        if "log" in self._parts:
            rows.append(self._parts["log"])
        # The frame measures the page. The body has a fixed height, except that forms are shown in full.
        return _box([_box(rows, "abs-body")], "abs-frame", f"abs-{layout}")

    # ---- to the pages, on the loop of the runs -----------------------------------------------------------------------

    def draw(self) -> None:
        """Send what has changed to all views."""
        self._tabs.update()
        screen = self._state()
        with TRAIT_LOCK:
            if not self._parts:  # closed in the meantime
                return
            self._send_top(screen)
            if self.panel is not None:
                points = [point for point in self._session.model.breakpoints.all if point.kind in ("before", "after")]
                marks = {str(point.where) for point in points}
                if marks != set(self.panel.breakpoint_ids):
                    self.panel.set_breakpoints(marks)
                self.panel.update(screen.states, screen.badges)
                self.panel.flush()
            if screen.content.stamp != self._stamp:
                self._send("side", side_message(screen))
                self._stamp = screen.content.stamp
            if screen.log_total > self._log_total:
                self._send("log", log_message(screen, screen.log_total - self._log_total))
                self._log_total = screen.log_total
            title = count_text(len(screen.requests), "request")
            is_new = self._requests.show(screen.requests, title, screen.supersteps)
            if is_new and self._focus_view is not None:
                self._send("top", {"kind": "focusRequest", "view": self._focus_view})

    def _send_top(self, screen: ScreenState) -> None:
        """Send header, controls and banner to all views."""
        with TRAIT_LOCK:
            self._send("top", view_message(screen, _common(self._stops, screen.stops)))
            self._stops = screen.stops

    def _send(self, part: str, message: Message) -> None:
        if part in self._parts:
            self._parts[part].send(message)

    def close(self) -> None:
        """Close all widgets."""
        with TRAIT_LOCK:  # another thread may be drawing
            self._parts = {}
            self._requests.close()
            if self.panel is not None:
                self.panel.close()
            close_all(self.widget)

    # ---- from the pages ----------------------------------------------------------------------------------------------

    def _on_message(self, message: Message) -> None:
        """Carry out a message from a page; ignore malformed messages."""
        fields = {"view": str, **_FIELDS.get(message["kind"], {"kind": None})}
        if any(type(message.get(name)) is not sort for name, sort in fields.items()):
            return
        try:
            getattr(self, f"_{message['kind']}")(message)
        except (NotebookError, LookupError, ValueError):
            self._redraw()

    def _ready(self, message: Message) -> None:
        """Send everything to a new view."""

        def send() -> None:
            self._tabs.update()
            with TRAIT_LOCK:
                for part, content in messages_of(self._state()).items():
                    self._send(part, {**content, "view": message["view"]})

        self._session.call_on_loop(send)

    def _press(self, message: Message) -> None:
        name = message["name"]
        self._focus_view = message["view"] if name == "confirm" or name.startswith(("step", "run")) else None
        if name in _OPENS_TAB:
            self._open_tab(_OPENS_TAB[name])
        elif name == "break":
            if (node := self._tabs.selected) is not None:
                points = [(point.kind, point.where) for point in self._session.model.breakpoints.all]
                self._break_at(node, "before", on=("before", node) not in points)
        elif name == "save":
            self._save(message)
        elif name == "keep_as_test":
            self._keep_as_test()
        elif name in COMMANDS and (act := COMMANDS[name].act) is not None:
            self._begin(name, lambda model: act(model, message.get("value")))
        if name in ("pause", "stop"):  # shown at once, even while an executor blocks the loop of the runs
            self._send_top(self._state())

    def _save(self, message: Message) -> None:
        """Send the page of the run to the requesting view, which offers it as a download."""
        try:
            page = self._saved_page()
        except Exception as error:  # noqa: BLE001 - of storages and of values that display themselves, which are user code
            self._session.note_down(f"The page could not be made: {type(error).__name__}: {error}")
            return
        name = re.sub(r"[^\w-]+", "-", self._session.model.name).strip("-") or "run"
        self._answer(message, {"kind": "file", "name": f"{name}.html", "text": page}, "top")

    def _keep_as_test(self) -> None:
        """Write the test into the current folder, under a free name, and log where it is or why there is none."""
        name = re.sub(r"\W+", "_", self._session.model.name.lower()).strip("_") or "run"
        names = (f"test_{name}{number}.py" for number in ("", *(f"_{n}" for n in range(2, 1000))))
        free = next(each for each in names if not Path(each).exists())
        handle, possible = self._session.handle, COMMANDS["keep_as_test"].possible
        if handle is None or possible is None or not possible(self._session.model):
            return
        try:
            self._session.note_down(f"Kept as {handle.keep_as_test(free)}", kind="text")
        except Exception as error:  # noqa: BLE001 - of values and storages, which are user code
            self._session.note_down(f"The test could not be kept: {error}")

    def _begin(self, command: str, change: Change) -> None:
        """Carry out a command; if it continues from here, stage the values typed here first."""
        drafts: dict[EditPlace, Draft] = {}
        with self._session.reading() as model:
            if command.startswith(("step", "run", "fork")) and "edit" in model.allowed:
                displayed = model.checkpoints.displayed_id
                drafts = {where: draft for where, draft in self.drafts.items() if where[0] == displayed}

        async def stage_and_begin() -> None:
            if all([await self._stage(where, draft) for where, draft in drafts.items()]):
                self._session.begin(change)

        if drafts:
            self._session.start(stage_and_begin())
        else:
            self._session.begin(change)

    def _enqueue(self, message: Message) -> None:
        """Add a typed message to the conversation of a running agent."""
        if message["text"].strip() and len(message["text"]) <= LONGEST:
            self._session.enqueue(message["executor"], message["text"])

    def _goto(self, message: Message) -> None:
        self._session.dispatch(lambda model: model.go_to(message["id"]))

    def _tab(self, message: Message) -> None:
        if message["name"] in dict(TABS):
            self._open_tab(message["name"])

    def _open_tab(self, name: str) -> None:
        """Open a tab."""
        self._tabs.open = name
        self._redraw()

    def _select(self, executor_id: str | None) -> None:
        """Show a node of the graph in its tab."""
        self._tabs.selected = executor_id
        self._open_tab(self._tabs.open if executor_id is None else "node")

    def _place(self, message: Message) -> tuple[TabContent, list[int]]:
        """Return the content and the path in a message; `LookupError` if no page displays them."""
        content, path = self._tabs.content_at(message["stamp"]), message["path"]
        if not all(type(index) is int for index in path):
            raise LookupError(path)
        return content, path

    def _level(self, message: Message) -> None:
        content, path = self._place(message)
        level = content.tree.level(path, max(0, message["start"]))
        self._answer(message, {"kind": "level", "path": path, "level": level_rows(level, content, self.drafts)})

    def _full(self, message: Message) -> None:
        content, path = self._place(message)
        self._answer(message, {"kind": "full", "path": path, "text": content.tree.full_text(path)})

    def _editable(self, message: Message) -> tuple[Entry, EditPlace]:
        """Return the value to edit and its place; `LookupError` if it cannot be edited."""
        content, path = self._place(message)
        entry, where = content.tree.at(path), content.tree.edit_path(path)
        if where is None:
            raise LookupError(path)
        return entry, (content.checkpoint_id, where)

    def _draft(self, message: Message) -> None:
        entry, where = self._editable(message)
        answer: Message = {"kind": "draft", "path": message["path"]}
        try:
            now = text_of(entry.value)
            before = self.drafts.get(where)
            answer |= {"text": now.text, "help": now.help, "draft": None if before is None else before[0]["text"]}
        except ValueError as error:
            answer["problem"] = str(error)
        self._answer(message, answer)

    def _typed(self, message: Message) -> None:
        """Store the text being typed, so that it survives closing or reloading the page."""
        (entry, where), text = self._editable(message), message.get("text")
        before = len(self.drafts)
        if isinstance(text, str) and len(text) <= LONGEST:
            self.drafts[where] = message, entry.value
        else:
            self.drafts.pop(where, None)
        if len(self.drafts) != before:
            self._redraw()

    def _edit(self, message: Message) -> None:
        entry, where = self._editable(message)
        self._session.start(self._stage(where, (message, entry.value)))

    async def _stage(self, where: EditPlace, draft: Draft) -> bool:
        """Stage a typed value; if it is invalid, send the reason to its field."""
        message, value = draft
        checkpoint_id, path = where
        self.drafts.pop(where, None)
        problem = ""
        try:
            await self._session.stage(path, value_of(message["text"], value), checkpoint_id)
        except Exception as error:  # noqa: BLE001 - what decodes a checkpoint or compares values may be user code
            self.drafts[where] = draft
            problem = esc(error.problem if isinstance(error, InvalidEdit) else error, into="line", limit=400)
        self._answer(message, {"kind": "edited", "key": message.get("key"), "problem": problem})
        return not problem

    def _discard(self, message: Message) -> None:
        checkpoint_id = self._tabs.content_at(message["stamp"]).checkpoint_id
        self._session.dispatch(lambda model: model.discard_edits(message["path"], checkpoint_id))

    def _answer(self, message: Message, answer: Message, part: str = "side") -> None:
        self._send(part, {**answer, "stamp": message.get("stamp"), "view": message["view"]})

    @property
    def _choices(self) -> tuple[Offer, ...]:
        """Return the breakpoints to choose from; call on the loop of the runs."""
        handle = self._session.handle
        keys = () if handle is None else handle.state
        return offers_of(self._session.model.activity.nodes, self._message_types, keys)

    def _offers(self, message: Message) -> None:
        def send() -> None:
            offers = [(offer.sort, offer.label, offer.options, offer.asks) for offer in self._choices]
            self._answer(message, {"kind": "offers", "offers": offers}, "top")

        self._session.call_on_loop(send)

    def _break(self, message: Message) -> None:
        def set_it() -> None:
            try:
                where = where_of(self._choices, message["sort"], message["choice"], message.get("value"))
                once = message.get("once") is True
                self._session.dispatch(lambda model: model.break_at(where, once=once))
            except (NotebookError, LookupError, ValueError) as error:
                problem = esc(error.args[0] if error.args else error, into="line", limit=400)
                self._answer(message, {"kind": "problem", "text": problem}, "top")

        self._session.call_on_loop(set_it)

    def _break_node(self, message: Message) -> None:
        breaks = self._tabs.content_at(message["stamp"]).breaks
        if message["when"] in ("before", "after") and breaks is not None:
            self._break_at(breaks["executor"], message["when"], on=message["on"])

    def _unbreak(self, message: Message) -> None:
        if any(point.id == message["id"] for point in self._session.model.breakpoints.all):
            self._session.dispatch(lambda model: model.clear(message["id"]))

    def _break_at(self, executor_id: str, kind: str, *, on: bool) -> None:
        """Set or remove the breakpoint before or after an executor."""
        where = f"{kind}:{executor_id}"
        self._session.dispatch(lambda model: model.break_at(where) if on else model.clear(where))

    def _take_marks(self, executor_ids: tuple[str, ...]) -> None:
        """Apply the breakpoints that a person set or removed in the picture."""
        points = [point for point in self._session.model.breakpoints.all if point.kind in ("before", "after")]
        try:
            for point in points:
                if point.where not in executor_ids:
                    self._break_at(str(point.where), point.kind, on=False)
            for executor_id in set(executor_ids).difference(str(point.where) for point in points):
                self._break_at(executor_id, "before", on=True)
        except (NotebookError, ValueError) as error:
            self._session.note_down(str(error))


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    """Return the length of the common prefix; fast for a line that only grew."""
    if after[: len(before)] == before:
        return len(before)
    return next(i for i, item in enumerate(before) if i >= len(after) or item != after[i])


def _box(children: Sequence[Any], *names: str) -> Any:
    box = ipywidgets.Box(list(children))
    for name in names:
        box.add_class(name)
    return box
