"""The page's side of a form: an anywidget that holds no text at all, and the talk with it.

What a form shows and what is typed travel as messages, never as traits. Whoever saves the state of all widgets
(nbconvert does) saves the script and the style sheet, and nothing of a person's.

From the page: `ready`, `edit` (raw by path), `press` (action, raw by path), `rows` (path, what to do), `json` (what to
do, text), `file` (path, with the content beside it), `full` (part), `due`, `reopen`; each with `view`, the id of the
view that speaks. To the page: `form` (once per `ready`), `nodes` (the fields, after others have come), `drafts` (raw by
path), `json` (text), `status`, `full`, `focus`. The raw of a field is `{"text": …}`, `{"option": position}` or
`{"none": true}`; of a box `{"none": …}` or `{"open": true}`, of a union `{"pick": position}`. Paths are those of the
drafts: they stay the same when rows move.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal, Protocol

import anywidget
import traitlets

from agentbench.exceptions import NotebookError
from agentbench.notebook.escaping import esc
from agentbench.notebook.form_content import FormContent
from agentbench.notebook.form_drafts import Draft, LeafDraft
from agentbench.notebook.form_fields import NO_VALUE, FormField, NoValue, Raw
from agentbench.notebook.form_groups import OneOfDraft
from agentbench.notebook.form_model import JSON, Change, FormModel, FormState
from agentbench.notebook.form_rows import ManyDraft
from agentbench.notebook.form_special_text import FILE_LIMIT, text_of_bytes
from agentbench.notebook.form_text import answer_text, problems_text
from agentbench.notebook.json_reading import JsonError

__all__ = ["SCRIPTS", "FormPage", "FormPanel"]

_STATIC = files("agentbench.notebook").joinpath("static")
# One module on the page, in files of one concept each; later ones use what earlier ones define.
SCRIPTS = ("form_parts.js", "form_controls.js", "form_boxes.js", "form.js")
_FULL_LIMIT = 1_000_000
_LINES = 1000

Message = dict[str, Any]


class FormPanel(anywidget.AnyWidget):
    """The widget: it carries messages both ways and keeps none."""

    _esm = "\n".join(_STATIC.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    _css = _STATIC.joinpath("form.css").read_text(encoding="utf-8")
    # What a page without a kernel can say.
    name = traitlets.Unicode("Form").tag(sync=True)

    def __init__(self, name: str, on_message: Callable[[Message], object]) -> None:
        super().__init__(name=name)
        self._told = on_message
        self.on_msg(self._heard)

    def _heard(self, _widget: object, content: object, buffers: object) -> None:
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            beside = {"buffers": buffers} if isinstance(buffers, list) else {}
            self._told({**content, **beside})

    def __repr__(self) -> str:
        return f"FormPanel({self.name!r})"


class FormControl(Protocol):
    """What a page does to a form."""

    @property
    def state(self) -> FormState:
        """What the form is doing; asking notices a deadline that has passed."""

    def type_into(self, texts: Iterable[tuple[Draft[Any], Raw]], *, origin: str | None = None) -> None:
        """Take what was typed."""

    def rebuild(self, draft: Draft[Any], change: Callable[[], object]) -> None:
        """Change what a draft holds."""

    def edit_json(self, text: str | None = None, *, origin: str | None = None) -> None:
        """Edit the whole as one text."""

    def edit_fields(self) -> bool:
        """Go back to the fields."""

    def validate(self) -> bool:
        """Check all fields."""

    def press(self, action: str, raw: Mapping[str, Raw] | None = None, *, origin: str | None = None) -> None:
        """Do what a button does."""

    def reopen(self) -> None:
        """Let an answer be changed."""


class FormPage:
    """Translates between a form and the views of its panel.

    The page is believed nothing: unknown kinds, paths, options and actions are passed over.

    Attributes:
        panel: The widget.
    """

    def __init__(self, form: FormControl, content: FormContent, model: FormModel) -> None:
        self._form = form
        self._content = content
        self._model = model
        self.panel = FormPanel(f"Form {content.name}", self._hear)
        self._stop = model.on_change(self._changed)

    def close(self) -> None:
        """Take the panel off the page."""
        self._stop()
        self.panel.close()

    # ---- what the page says -----------------------------------------------------------------------------------------

    def _hear(self, message: Message) -> None:
        handle = {
            "ready": self._ready,
            "edit": self._edited,
            "press": self._pressed,
            "rows": self._rows,
            "json": self._json,
            "file": self._file,
            "full": self._asked_for_all,
            "due": self._due,
            "reopen": self._reopened,
        }.get(message["kind"])
        if handle is None:
            return
        try:
            handle(message)
        except (NotebookError, KeyError, JsonError):
            # Answered, expired, or sent by no page of ours: the page is told how things are, and nothing changes.
            self._say_status()

    def _ready(self, message: Message) -> None:
        _ = self._form.state  # a deadline may have passed since
        self._say(
            {
                "kind": "form",
                "view": message.get("view"),
                "content": self._content.page(self._model),
                "drafts": self._drafts(self._model.root.walk()),
                "text": self._model.json_text,
                "status": self._status(),
            }
        )

    def _edited(self, message: Message) -> None:
        self._form.type_into(self._understood(message.get("raw")), origin=_view(message))

    def _pressed(self, message: Message) -> None:
        action = message.get("action")
        if self._model.live and isinstance(action, str):
            typed = self._understood(message.get("raw"))
            if typed:
                self._model.write(typed, origin=_view(message))
            self._form.press(action, origin=_view(message))
            # The person waits for an answer: the first field with a problem gets the focus, in this view only.
            if self._model.state is FormState.INVALID:
                first = next((draft.key for draft, _ in self._model.shown_problems), None)
                self._say({"kind": "focus", "view": message.get("view"), "path": first})
        else:
            self._say_status()

    def _rows(self, message: Message) -> None:
        many, change = self._draft(message.get("path")), message.get("do")
        if not isinstance(many, ManyDraft):
            return
        if change == "add":
            self._form.rebuild(many, many.add)
            self._say({"kind": "focus", "view": message.get("view"), "path": many.rows[-1].key})
            return
        if change == "lines":
            self._lines(many, message.get("texts"))
            return
        row = next((at for at, each in enumerate(many.rows) if each.key == message.get("row")), None)
        steps = {"up": -1, "down": 1}
        if row is None:
            return
        if change == "remove":
            self._form.rebuild(many, lambda: many.remove(row))
        elif change in steps and 0 <= row + steps[change] < len(many.rows):
            self._form.rebuild(many, lambda: many.move(row, row + steps[change]))

    def _lines(self, many: ManyDraft[Any], texts: object) -> None:
        if not isinstance(texts, list) or len(texts) > _LINES or not all(isinstance(each, str) for each in texts):
            return

        def change() -> None:
            many.touch()
            many.grow(len(texts))
            for row, text in zip(many.rows, texts, strict=True):
                if isinstance(row, LeafDraft) and row.text != text:
                    row.set_raw(text)

        self._form.rebuild(many, change)

    def _json(self, message: Message) -> None:
        text = message.get("text")
        if message.get("do") == "close":
            self._form.edit_fields()
            self._form.validate()
        else:
            self._form.edit_json(text if isinstance(text, str) else None, origin=_view(message))
            self._form.validate()

    def _file(self, message: Message) -> None:
        draft, buffers = self._draft(message.get("path")), message.get("buffers")
        if isinstance(draft, LeafDraft) and draft.field.kind == "file" and isinstance(buffers, list) and buffers:
            content = bytes(buffers[0])
            # More than the limit is not even kept; the field says so.
            self._form.type_into([(draft, text_of_bytes(content[: FILE_LIMIT + 1]))], origin=None)

    def _draft(self, path: object) -> Draft[Any] | None:
        return next((draft for draft in self._model.root.walk() if draft.key == path), None)

    def _asked_for_all(self, message: Message) -> None:
        part = message.get("part")
        if part in ("prompt", "context"):
            text = esc(getattr(self._content, part), into="text", limit=_FULL_LIMIT)
            self._say({"kind": "full", "view": message.get("view"), "part": part, "text": text})

    def _due(self, _message: Message) -> None:
        _ = self._form.state
        self._say_status()

    def _reopened(self, _message: Message) -> None:
        self._form.reopen()

    def _understood(self, raw: object) -> list[tuple[Draft[Any], Raw]]:
        if not isinstance(raw, dict):
            return []
        read: list[tuple[Draft[Any], Raw]] = []
        for draft in list(self._model.root.walk()):
            said = raw.get(draft.key)
            if isinstance(said, dict) and draft.key not in self._content.hidden:
                text = _raw(draft.field, said) if isinstance(draft, LeafDraft) else _box_raw(draft, said)
                if text is not NO_VALUE:
                    read.append((draft, text))
        # What is typed into a member of a union chooses it: what was chosen besides counts.
        return sorted(read, key=lambda each: not isinstance(each[0], LeafDraft))

    # ---- what it is told --------------------------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        if change.built:
            walked = self._drafts(self._model.root.walk())
            nodes = self._content.nodes(self._model)
            self._say({"kind": "nodes", "nodes": nodes, "drafts": walked, "text": self._model.json_text})
        elif change.texts:
            self._say({"kind": "drafts", "from": change.origin, "drafts": self._drafts(change.texts)})
        elif change.origin is not None and self._model.json_text is not None:
            self._say({"kind": "json", "from": change.origin, "text": self._model.json_text})
        self._say_status()

    def _say_status(self) -> None:
        self._say({"kind": "status", **self._status()})

    def _say(self, message: Message) -> None:
        self.panel.send(message)

    def _status(self) -> Message:
        model = self._model
        notes = {
            FormState.SENDING: "Sending…",
            FormState.ANSWERED: answer_text(model, request=not self._content.repeats),
            FormState.REFUSED: f"Not taken: {model.refusal}",
            FormState.EXPIRED: f"Too late: the deadline was {self._content.deadline_text}.",
            FormState.INVALID: problems_text(model),
        }
        problems: dict[str, str] = {}
        for draft, why in model.shown_problems:
            problems[draft.key] = f"{problems[draft.key]}; {why}" if draft.key in problems else why
        if JSON in model.errors:
            problems = {JSON: model.errors[JSON]}
        return {
            "state": str(model.state),
            "live": model.live,
            "errors": {key: esc(text, into="line", limit=500) for key, text in problems.items()},
            "note": esc(notes.get(model.state, ""), into="line", limit=600),
        }

    def _drafts(self, drafts: Iterable[Draft[Any]]) -> dict[str, Message]:
        return {
            draft.key: _page_raw(draft.field, draft.text)
            for draft in drafts
            if isinstance(draft, LeafDraft) and draft.text is not NO_VALUE and draft.key not in self._content.hidden
        }


def _view(message: Message) -> str | None:
    view = message.get("view")
    return view if isinstance(view, str) else None


def _raw(field: FormField, said: object) -> Raw | Literal[NoValue.NO_VALUE]:
    if not isinstance(said, dict):
        return NO_VALUE
    if said.get("none") is True:
        return None if field.nullable or not field.required else NO_VALUE
    position, text = said.get("option"), said.get("text")
    if isinstance(position, int) and 0 <= position < len(field.options):
        return field.options[position].label
    return text if isinstance(text, str) else NO_VALUE


def _box_raw(draft: Draft[Any], said: Mapping[str, Any]) -> Raw | Literal[NoValue.NO_VALUE]:
    """What was done to a place that holds others."""
    if said.get("none") is True and (draft.shape.nullable or draft.shape.omits):
        return None
    if said.get("none") is False or said.get("open") is True:
        return ""
    at = said.get("pick")
    if isinstance(draft, OneOfDraft) and isinstance(at, int) and 0 <= at < len(draft.shape.labels):
        return draft.shape.labels[at]
    return NO_VALUE


def _page_raw(field: FormField, raw: Raw) -> Message:
    if raw is None:
        return {"none": True}
    if field.kind == "file":
        return {"size": len(raw) * 3 // 4 - raw[-2:].count("=")}
    for position, option in enumerate(field.options):
        if option.label == raw:
            return {"option": position}
    return {"text": raw}
