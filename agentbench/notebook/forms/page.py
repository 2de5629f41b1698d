"""The page's side of a form: an anywidget without any text in its traits, and its messages.

The texts of a form and the typed texts travel as messages, never as traits. The saved state of all widgets (which
nbconvert writes) contains the script and the style sheet, and no text of a person.

From the page: `ready`, `edit` (raw by path), `press` (action, raw by path), `rows` (path, what to do), `json` (what to
do, text), `file` (path, with the content beside it), `full` (part), `due`, `reopen`; each with `view`, the id of the
view that sends it. To the page: `form` (once per `ready`), `nodes` (the fields, if they have changed), `drafts` (raw by
path), `json` (text), `status`, `full`, `focus`. The raw of a field is `{"text": …}`, `{"option": position}` or
`{"none": true}`; of a group `{"none": …}` or `{"open": true}`, of a union `{"pick": position}`. Paths are those of the
drafts: they stay the same when rows move.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal, Protocol

import anywidget
import traitlets

from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.content import FormContent
from agentbench.notebook.forms.fields.field import NO_VALUE, FormField, NoValue, Raw
from agentbench.notebook.forms.form_text import answer_text, problems_text
from agentbench.notebook.forms.model import JSON, Change, FormModel, FormState
from agentbench.notebook.forms.text_values.json_text import JsonError
from agentbench.notebook.forms.text_values.special import FILE_LIMIT, text_of_bytes
from agentbench.notebook.forms.values.drafts import Draft, LeafDraft
from agentbench.notebook.forms.values.groups import OneOfDraft
from agentbench.notebook.forms.values.rows import ManyDraft
from agentbench.notebook.text.escape import esc

__all__ = ["SCRIPTS", "FormPage", "FormPanel"]

_STATIC = files("agentbench.notebook.look").joinpath("static")
# One module on the page, in files of one concept each; later ones use what earlier ones define.
SCRIPTS = ("form_parts.js", "form_controls.js", "form_boxes.js", "form.js")
_FULL_LIMIT = 1_000_000
_LINES = 1000

Message = dict[str, Any]


class FormPanel(anywidget.AnyWidget):
    """The widget: it carries messages both ways and stores none."""

    _esm = "\n".join(_STATIC.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    _css = _STATIC.joinpath("form.css").read_text(encoding="utf-8")
    # The text of a page without a kernel.
    name = traitlets.Unicode("Form").tag(sync=True)

    def __init__(self, name: str, on_message: Callable[[Message], object]) -> None:
        super().__init__(name=name)
        self._on_message = on_message
        self.on_msg(self._receive)

    def _receive(self, _widget: object, content: object, buffers: object) -> None:
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            beside = {"buffers": buffers} if isinstance(buffers, list) else {}
            self._on_message({**content, **beside})

    def __repr__(self) -> str:
        return f"FormPanel({self.name!r})"


class FormControl(Protocol):
    """The methods of a form that the page calls."""

    @property
    def state(self) -> FormState:
        """The state of the form; reading it notices a deadline that has passed."""

    def type_into(self, texts: Iterable[tuple[Draft[Any], Raw]], *, origin: str | None = None) -> None:
        """Set typed texts."""

    def rebuild(self, draft: Draft[Any], change: Callable[[], object]) -> None:
        """Change the drafts below a draft."""

    def edit_json(self, text: str | None = None, *, origin: str | None = None) -> None:
        """Edit the form as JSON."""

    def edit_fields(self) -> bool:
        """Go back to the fields."""

    def validate(self) -> bool:
        """Validate all fields."""

    def press(self, action: str, raw: Mapping[str, Raw] | None = None, *, origin: str | None = None) -> None:
        """Press a button."""

    def reopen(self) -> None:
        """Let an answer be edited again."""


class FormPage:
    """Translates between a form and the views of its panel.

    Messages of the page are not trusted: unknown kinds, paths, options and actions are ignored.

    Attributes:
        panel: The widget.
    """

    def __init__(self, form: FormControl, content: FormContent, model: FormModel) -> None:
        self._form = form
        self._content = content
        self._model = model
        self.panel = FormPanel(f"Form {content.name}", self._handle)
        self._stop = model.on_change(self._update)

    def close(self) -> None:
        """Close the panel and remove its listener."""
        self._stop()
        self.panel.close()

    # ---- from the page ----------------------------------------------------------------------------------------------

    def _handle(self, message: Message) -> None:
        handle = {
            "ready": self._ready,
            "edit": self._edit,
            "press": self._press,
            "rows": self._rows,
            "json": self._json,
            "file": self._file,
            "full": self._full,
            "due": self._due,
            "reopen": self._reopen,
        }.get(message["kind"])
        if handle is None:
            return
        try:
            handle(message)
        except (NotebookError, KeyError, JsonError):
            # Answered, expired, or a message of a foreign page: nothing changes, and the page gets the status.
            self._send_status()

    def _ready(self, message: Message) -> None:
        _ = self._form.state  # a deadline may have passed since
        self._send(
            {
                "kind": "form",
                "view": message.get("view"),
                "content": self._content.page(self._model),
                "drafts": self._drafts(self._model.root.walk()),
                "text": self._model.json_text,
                "status": self._status(),
            }
        )

    def _edit(self, message: Message) -> None:
        self._form.type_into(self._texts_of(message.get("raw")), origin=_view(message))

    def _press(self, message: Message) -> None:
        action = message.get("action")
        if self._model.live and isinstance(action, str):
            typed = self._texts_of(message.get("raw"))
            if typed:
                self._model.write(typed, origin=_view(message))
            self._form.press(action, origin=_view(message))
            # The first field with a problem gets the focus, in the view of the person who pressed.
            if self._model.state is FormState.INVALID:
                first = next((draft.key for draft, _ in self._model.visible_problems), None)
                self._send({"kind": "focus", "view": message.get("view"), "path": first})
        else:
            self._send_status()

    def _rows(self, message: Message) -> None:
        many, change = self._draft(message.get("path")), message.get("do")
        if not isinstance(many, ManyDraft):
            return
        if change == "add":
            self._form.rebuild(many, many.add)
            self._send({"kind": "focus", "view": message.get("view"), "path": many.rows[-1].key})
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
            # A file above the limit is cut; the field reports that it is too large.
            self._form.type_into([(draft, text_of_bytes(content[: FILE_LIMIT + 1]))], origin=None)

    def _draft(self, path: object) -> Draft[Any] | None:
        return next((draft for draft in self._model.root.walk() if draft.key == path), None)

    def _full(self, message: Message) -> None:
        part = message.get("part")
        if part in ("prompt", "context"):
            text = esc(getattr(self._content, part), into="text", limit=_FULL_LIMIT)
            self._send({"kind": "full", "view": message.get("view"), "part": part, "text": text})

    def _due(self, _message: Message) -> None:
        _ = self._form.state
        self._send_status()

    def _reopen(self, _message: Message) -> None:
        self._form.reopen()

    def _texts_of(self, raw: object) -> list[tuple[Draft[Any], Raw]]:
        if not isinstance(raw, dict):
            return []
        read: list[tuple[Draft[Any], Raw]] = []
        for draft in list(self._model.root.walk()):
            sent = raw.get(draft.key)
            if isinstance(sent, dict) and draft.key not in self._content.hidden:
                text = _raw(draft.field, sent) if isinstance(draft, LeafDraft) else _box_raw(draft, sent)
                if text is not NO_VALUE:
                    read.append((draft, text))
        # A text in a member of a union chooses that member, so the choices themselves are applied last.
        return sorted(read, key=lambda each: not isinstance(each[0], LeafDraft))

    # ---- to the page ------------------------------------------------------------------------------------------------

    def _update(self, change: Change) -> None:
        if change.built:
            walked = self._drafts(self._model.root.walk())
            nodes = self._content.nodes(self._model)
            self._send({"kind": "nodes", "nodes": nodes, "drafts": walked, "text": self._model.json_text})
        elif change.texts:
            self._send({"kind": "drafts", "from": change.origin, "drafts": self._drafts(change.texts)})
        elif change.origin is not None and self._model.json_text is not None:
            self._send({"kind": "json", "from": change.origin, "text": self._model.json_text})
        self._send_status()

    def _send_status(self) -> None:
        self._send({"kind": "status", **self._status()})

    def _send(self, message: Message) -> None:
        self.panel.send(message)

    def _status(self) -> Message:
        model = self._model
        notes = {
            FormState.SENDING: "Sending…",
            FormState.ANSWERED: answer_text(model, request=not self._content.repeats),
            FormState.REFUSED: f"Not accepted: {model.refusal}",
            FormState.EXPIRED: f"Too late: the deadline was {self._content.deadline_text}.",
            FormState.INVALID: problems_text(model),
        }
        problems: dict[str, str] = {}
        for draft, why in model.visible_problems:
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


def _raw(field: FormField, sent: object) -> Raw | Literal[NoValue.NO_VALUE]:
    if not isinstance(sent, dict):
        return NO_VALUE
    if sent.get("none") is True:
        return None if field.nullable or not field.required else NO_VALUE
    position, text = sent.get("option"), sent.get("text")
    if isinstance(position, int) and 0 <= position < len(field.options):
        return field.options[position].label
    return text if isinstance(text, str) else NO_VALUE


def _box_raw(draft: Draft[Any], sent: Mapping[str, Any]) -> Raw | Literal[NoValue.NO_VALUE]:
    """Return the raw text of a message about a group, a list or a union."""
    if sent.get("none") is True and (draft.shape.nullable or draft.shape.omits):
        return None
    if sent.get("none") is False or sent.get("open") is True:
        return ""
    at = sent.get("pick")
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
