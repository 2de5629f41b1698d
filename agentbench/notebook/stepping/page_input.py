"""What people do on the pages of a stepper: messages of a page become changes of the model, and answers to the page.

Each message has a `kind`, which names a method, the fields that `_FIELDS` names, and `view`, the id of the view that
sends it; `stamp` is that of the content in this view. The answers are `level`, `full`, `draft` and `edited` to the
side, `offers` and `problem` to the top.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbench.exceptions import InvalidEdit, NotebookError
from agentbench.notebook.forms.text_values import LONGEST, text_of, value_of
from agentbench.notebook.stepping.model.break_offers import Offer, message_types, offers_of, where_of
from agentbench.notebook.stepping.model.commands import COMMANDS
from agentbench.notebook.stepping.session import Change, StepperSession
from agentbench.notebook.stepping.tab_loader import StepperTabs
from agentbench.notebook.stepping.view.messages import level_rows
from agentbench.notebook.stepping.view.screen_state import EditPlace
from agentbench.notebook.stepping.view.tabs import TABS, Content
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.value_tree import Entry

__all__ = ["PageInput"]

Message = dict[str, Any]
Draft = tuple[Message, Any]  # the message with what was typed, and the value that it is to replace

_FIELDS: dict[str, dict[str, type]] = {
    "press": {"name": str},  # and `value`: what was typed
    "goto": {"id": str},
    "tab": {"name": str},
    "level": {"stamp": int, "path": list, "start": int},
    "full": {"stamp": int, "path": list},
    "draft": {"stamp": int, "path": list},
    "typed": {"stamp": int, "path": list},  # and `key`, and `text` or none when it is given up
    "edit": {"stamp": int, "path": list, "text": str, "key": str},
    "discard": {"stamp": int, "path": str},
    "offers": {},
    "break": {"sort": str, "choice": int},  # and `value`, `once`
    "break_node": {"stamp": int, "when": str, "on": bool},
    "unbreak": {"id": str},
}
_OPENS_TAB = {"edit": "state", "see_edits": "diff", "see_output": "output"}


class PageInput:
    """Takes what people press and type. What is not possible now changes nothing: the page is drawn again.

    `send` sends a message to a part of the page, `redraw` draws the page soon, `show_top` sends its top at once.
    """

    def __init__(
        self,
        session: StepperSession,
        tabs: StepperTabs,
        executors: Any,
        *,
        send: Callable[[str, Message], None],
        redraw: Callable[[], None],
        show_top: Callable[[], None],
    ) -> None:
        self._session = session
        self._tabs = tabs
        self._message_types = message_types(executors)
        self._send = send
        self._redraw = redraw
        self._show_top = show_top
        self._marked: tuple[str, ...] = ()  # the breakpoints in the picture
        self.drafts: dict[EditPlace, Draft] = {}  # typed and not staged yet
        self.focus_view: str | None = None  # the view in which a person has let the run move last

    def hear(self, message: Message) -> None:
        """Do what a page says; nothing for what no page of ours would say."""
        kind = message["kind"]
        fields = _FIELDS.get(kind)
        if fields is None or any(type(message.get(name)) is not sort for name, sort in fields.items()):
            return
        try:
            getattr(self, f"_{kind}")(message)
        except (NotebookError, LookupError, ValueError):
            self._redraw()

    # ---- controls ----------------------------------------------------------------------------------------------------

    def _press(self, message: Message) -> None:
        name = message["name"]
        self.focus_view = _view_of(message) if name == "confirm" or name.startswith(("step", "run")) else None
        if name in _OPENS_TAB:
            self.open_tab(_OPENS_TAB[name])
        elif name == "break":
            if (node := self._tabs.selected) is not None:
                points = [(each.kind, each.where) for each in self._session.model.board.all]
                self._break_at(node, "before", on=("before", node) not in points)
        elif name in COMMANDS and (act := COMMANDS[name].act) is not None:
            self._begin(name, lambda model: act(model, message.get("value")))
        if name in ("pause", "stop"):  # seen at once, even while an executor keeps the loop of the runs busy
            self._show_top()

    def _begin(self, command: str, change: Change) -> None:
        """Carry out a command; one that goes on from here takes what was typed here along, if that can be used."""
        drafts: dict[EditPlace, Draft] = {}
        with self._session.reading() as model:
            if command.startswith(("step", "run", "fork")) and "edit" in model.allowed:
                drafts = {where: draft for where, draft in self.drafts.items() if where[0] == model.line.displayed_id}

        async def stage_and_begin() -> None:
            if all([await self._stage(where, draft) for where, draft in drafts.items()]):
                self._session.begin(change)

        if drafts:
            self._session.start(stage_and_begin())
        else:
            self._session.begin(change)

    def _goto(self, message: Message) -> None:
        self._session.dispatch(lambda model: model.go_to(message["id"]))

    def _tab(self, message: Message) -> None:
        if message["name"] in dict(TABS):
            self.open_tab(message["name"])

    def open_tab(self, name: str) -> None:
        """Open a tab."""
        self._tabs.open = name
        self._redraw()

    def select(self, executor_id: str | None) -> None:
        """Show a node of the graph in its tab."""
        self._tabs.selected = executor_id
        self.open_tab(self._tabs.open if executor_id is None else "node")

    # ---- values: levels, whole texts, edits --------------------------------------------------------------------------

    def _place(self, message: Message) -> tuple[Content, list[int]]:
        """The content and the path that a message names; `LookupError` if they are not on any page."""
        content, path = self._tabs.content_at(message["stamp"]), message["path"]
        if not all(type(each) is int for each in path):
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
        """The value that a page wants to edit, and its place; `LookupError` if it may not."""
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
        """Store the text being typed, so that it survives a page that is closed or reloaded."""
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
        """Stage what was typed, and answer its field why that is not possible."""
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
        self._send(part, {**answer, "stamp": message.get("stamp"), "view": _view_of(message)})

    # ---- breakpoints -------------------------------------------------------------------------------------------------

    @property
    def _choices(self) -> tuple[Offer, ...]:
        """The breakpoints that a person may choose from. On the loop of the runs."""
        handle = self._session.handle
        keys = () if handle is None else handle.state
        return offers_of(self._session.model.activity.nodes, self._message_types, keys)

    def _offers(self, message: Message) -> None:
        def send() -> None:
            offers = [(each.sort, each.label, each.options, each.asks) for each in self._choices]
            self._answer(message, {"kind": "offers", "offers": offers}, "top")

        self._session.soon(send)

    def _break(self, message: Message) -> None:
        def set_it() -> None:
            try:
                where = where_of(self._choices, message["sort"], message["choice"], message.get("value"))
                once = message.get("once") is True
                self._session.dispatch(lambda model: model.break_at(where, once=once))
            except (NotebookError, LookupError, ValueError) as error:
                problem = esc(error.args[0] if error.args else error, into="line", limit=400)
                self._answer(message, {"kind": "problem", "text": problem}, "top")

        self._session.soon(set_it)

    def _break_node(self, message: Message) -> None:
        breaks = self._tabs.content_at(message["stamp"]).breaks
        if message["when"] in ("before", "after") and breaks is not None:
            self._break_at(breaks.executor, message["when"], on=message["on"])

    def _unbreak(self, message: Message) -> None:
        if any(each.id == message["id"] for each in self._session.model.board.all):
            self._session.dispatch(lambda model: model.clear(message["id"]))

    def _break_at(self, executor_id: str, kind: str, *, on: bool) -> None:
        """Set or remove the breakpoint before or after an executor."""
        where = f"{kind}:{executor_id}"
        self._session.dispatch(lambda model: model.break_at(where) if on else model.clear(where))

    def marks_to_show(self) -> tuple[str, ...] | None:
        """The executors with a breakpoint before or after them, if the picture does not show them yet."""
        points = [each for each in self._session.model.board.all if each.kind in ("before", "after")]
        marked = tuple(dict.fromkeys(str(each.where) for each in points))
        if marked == self._marked:
            return None
        self._marked = marked
        return marked

    def take_marks(self, executor_ids: tuple[str, ...]) -> None:
        """A person has set or removed breakpoints in the picture."""
        before, self._marked = set(self._marked), executor_ids
        try:
            for each in set(executor_ids) - before:
                self._break_at(each, "before", on=True)
            for each in before - set(executor_ids):
                for kind in ("before", "after"):
                    self._break_at(each, kind, on=False)
        except (NotebookError, ValueError) as error:
            self._session.note_down(str(error))


def _view_of(message: Message) -> str | None:
    view = message.get("view")
    return view if isinstance(view, str) else None
