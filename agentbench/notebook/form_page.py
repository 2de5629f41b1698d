"""The page's side of a form: an anywidget that holds no text at all, and the talk with it.

What a form shows and what is typed travel as messages, never as traits. Whoever saves the state of all widgets
(nbconvert does) saves the script and the style sheet, and nothing of a person's.

From the page: `ready`, `edit` (raw by path), `press` (action, raw by path), `full` (part), `due`, `reopen`; each with
`view`, the id of the view that speaks. To the page: `form` (once per `ready`), `drafts` (raw by path), `status`,
`full`, `focus`. The raw of a field is `{"text": …}`, `{"option": position}` or `{"none": true}`.
"""

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Literal, Protocol

import anywidget
import traitlets

from agentbench.exceptions import NotebookError
from agentbench.notebook.escaping import esc
from agentbench.notebook.form_content import FormContent
from agentbench.notebook.form_fields import NO_VALUE, FormField, NoValue, Raw
from agentbench.notebook.form_model import FormModel, FormState
from agentbench.notebook.form_text import answer_text, problems_text

__all__ = ["FormPage", "FormPanel"]

_STATIC = files("agentbench.notebook").joinpath("static")
_FULL_LIMIT = 1_000_000

Message = dict[str, Any]


class FormPanel(anywidget.AnyWidget):
    """The widget: it carries messages both ways and keeps none."""

    _esm = _STATIC.joinpath("form.js").read_text(encoding="utf-8")
    _css = _STATIC.joinpath("form.css").read_text(encoding="utf-8")
    # What a page without a kernel can say.
    name = traitlets.Unicode("Form").tag(sync=True)

    def __init__(self, name: str, on_message: Callable[[Message], object]) -> None:
        super().__init__(name=name)
        self._told = on_message
        self.on_msg(self._heard)

    def _heard(self, _widget: object, content: object, _buffers: object) -> None:
        if isinstance(content, dict) and isinstance(content.get("kind"), str):
            self._told(content)

    def __repr__(self) -> str:
        return f"FormPanel({self.name!r})"


class FormControl(Protocol):
    """What a page does to a form."""

    @property
    def state(self) -> FormState:
        """What the form is doing; asking notices a deadline that has passed."""

    def edit(self, raw: Mapping[str, Raw], *, origin: str | None = None) -> None:
        """Take what was typed."""

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
            "full": self._asked_for_all,
            "due": self._due,
            "reopen": self._reopened,
        }.get(message["kind"])
        if handle is None:
            return
        try:
            handle(message)
        except (NotebookError, KeyError):
            # Answered, expired, or sent by no page of ours: the page is told how things are, and nothing changes.
            self._say_status()

    def _ready(self, message: Message) -> None:
        _ = self._form.state  # a deadline may have passed since
        self._say(
            {
                "kind": "form",
                "view": message.get("view"),
                "content": self._content.page(self._model),
                "drafts": self._drafts(self._model.raw),
                "status": self._status(),
            }
        )

    def _edited(self, message: Message) -> None:
        self._form.edit(self._understood(message.get("raw")), origin=_view(message))

    def _pressed(self, message: Message) -> None:
        action = message.get("action")
        if self._model.live and isinstance(action, str):
            self._form.press(action, self._understood(message.get("raw")), origin=_view(message))
            # The person waits for an answer: the first field with a problem gets the focus, in this view only.
            if self._model.state is FormState.INVALID:
                self._say({"kind": "focus", "view": message.get("view"), "path": next(iter(self._model.errors), None)})
        else:
            self._say_status()

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

    def _understood(self, raw: object) -> dict[str, Raw]:
        if not isinstance(raw, dict):
            return {}
        read: dict[str, Raw] = {}
        for path, field in self._model.fields.items():
            text = _raw(field, raw.get(path)) if path not in self._content.hidden else NO_VALUE
            if text is not NO_VALUE:
                read[path] = text
        return read

    # ---- what it is told --------------------------------------------------------------------------------------------

    def _changed(self, paths: tuple[str, ...], origin: str | None) -> None:
        shown = {path: text for path, text in self._model.raw.items() if path in paths}
        if shown:
            self._say({"kind": "drafts", "from": origin, "drafts": self._drafts(shown)})
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
        return {
            "state": str(model.state),
            "live": model.live,
            "errors": {path: esc(text, into="line", limit=500) for path, text in model.shown_errors.items()},
            "note": esc(notes.get(model.state, ""), into="line", limit=600),
        }

    def _drafts(self, raw: Mapping[str, Raw]) -> dict[str, Message]:
        seen = (path for path in raw if path not in self._content.hidden)
        return {path: _page_raw(self._model.fields[path], raw[path]) for path in seen}


def _view(message: Message) -> str | None:
    view = message.get("view")
    return view if isinstance(view, str) else None


def _raw(field: FormField, said: object) -> Raw | Literal[NoValue.NO_VALUE]:
    if not isinstance(said, dict):
        return NO_VALUE
    if said.get("none") is True and field.nullable:
        return None
    position, text = said.get("option"), said.get("text")
    if isinstance(position, int) and 0 <= position < len(field.options):
        return field.options[position].label
    return text if isinstance(text, str) else NO_VALUE


def _page_raw(field: FormField, raw: Raw) -> Message:
    if raw is None:
        return {"none": True}
    for position, option in enumerate(field.options):
        if option.label == raw:
            return {"option": position}
    return {"text": raw}
