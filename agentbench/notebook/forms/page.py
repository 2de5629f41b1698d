"""The page's side of a form: a widget without any text in its traits, and its messages.

Texts of the form and typed texts are sent in messages, never in traits, so that the saved state of all widgets (which
nbconvert writes) contains the script and the style sheet, but no text of a person.

From the page: `ready`, `edit` (raw by path), `press` (action, raw by path), `rows` (path, change), `json` (change,
text), `file` (path, with the content as a buffer), `full` (part), `due`, `reopen`, `withdraw`; each with `view`, the
id of the sending view. To the page: `form` (content and state, once per `ready`), `state` (fields, raw by path, JSON
text, labels of the buttons, status), `status`, `full`, `focus`. The raw of a field is `{"text": …}`, `{"option":
position}` or `{"none": true}`; of a group `{"none": …}` or `{"open": true}`, of a union `{"pick": position}`. Paths
are the keys of places: they stay the same when rows move.
"""

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.fields import NO_VALUE, Field, text_of
from agentbench.notebook.forms.form_text import answer_text
from agentbench.notebook.forms.model import FormModel, FormState
from agentbench.notebook.forms.text_values import FILE_LIMIT, JsonError
from agentbench.notebook.forms.values import ValuePlace
from agentbench.notebook.look.style import read_script
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.widgets import Message, MessageWidget

if TYPE_CHECKING:
    from agentbench.notebook.forms.form import Form

_STATIC = files("agentbench.notebook.forms").joinpath("static")
# The files of one module, in order: later files use names of earlier ones.
SCRIPTS = ("parts.js", "controls.js", "boxes.js", "form.js")
_FULL_LIMIT = 1_000_000
_LINES = 1000


class FormPanel(MessageWidget):
    """The widget of a form, which sends and receives messages."""

    _esm = "\n".join(
        [read_script("dom.js", "display.js"), *(_STATIC.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)]
    )
    _css = read_script("theme.css") + _STATIC.joinpath("form.css").read_text(encoding="utf-8")


class FormPage:
    """Translates between a form and the views of its panel.

    Messages from the page are not trusted: unknown kinds, paths, options and actions are ignored.
    """

    def __init__(self, form: "Form", model: FormModel) -> None:
        self._form, self._model, self._content = form, model, model.content
        self.panel = FormPanel(self._handle, name=f"Form {model.content.name}")
        self._stops = [
            model.listeners.add("change", lambda origin: self._send("state", **{"from": origin, **self._state()})),
            model.listeners.add("status", lambda _: self._send_status()),
        ]

    def close(self) -> None:
        """Close the panel and remove its listeners."""
        for stop in self._stops:
            stop()
        self.panel.close()

    def _handle(self, message: Message) -> None:
        handle: Callable[[Message], object] | None = {
            "ready": self._greet,
            "edit": self._type,
            "press": self._press,
            "rows": self._rows,
            "json": self._json,
            "file": lambda message: self._change(lambda root: _put_file(root, message)),
            "full": self._full,
            "due": lambda _: self._send_status(),
            "reopen": lambda _: self._form.reopen(),
            "withdraw": lambda _: self._form.begin_withdrawal(),
        }.get(message["kind"])
        if handle is None:
            return
        try:
            _ = self._form.state  # updates the state if the deadline has passed
            handle(message)
        except (NotebookError, KeyError, IndexError, JsonError):
            # Answered, expired, or an invalid message: nothing changes, and the page gets the status.
            self._send_status()

    def _greet(self, message: Message) -> None:
        # The page continues with its own clock, because the form's clock may be deterministic.
        asked_ns = None if settings.current().deterministic else self._form.asked_ns
        asked = {"origin": esc(self._form.origin, into="line"), "asked": None if asked_ns is None else asked_ns / 1e9}
        self._send(
            "form",
            message,
            content={**self._content.page(), **asked, "withdraws": self._form.can_withdraw},
            **self._state(),
        )

    def _change(self, edit: Callable[[ValuePlace], Any], origin: str | None = None) -> Any:
        return self._form.change(lambda model: model.change(edit, origin=origin, check=True))

    def _type(self, message: Message) -> None:
        self._change(lambda root: self._write(root, message.get("raw")), _view(message))

    def _write(self, root: ValuePlace, raw: object) -> None:
        places = [place for place in root.walk() if place.key not in self._content.hidden]
        # Text typed into a member of a union chooses that member, so explicit choices are applied last.
        for place in sorted(places, key=lambda place: not place.field.is_leaf):
            sent = raw.get(place.key) if isinstance(raw, dict) else None
            text = _raw(place.field, sent) if isinstance(sent, dict) else NO_VALUE
            if text is not NO_VALUE:
                place.write(text)

    def _press(self, message: Message) -> None:
        action = message.get("action")
        if not self._model.live or not isinstance(action, str):
            self._send_status()
            return
        self._form.change_and_press(action, lambda root: self._write(root, message.get("raw")), origin=_view(message))
        # The first field with a problem gets the focus, in the view that sent the message.
        if self._model.state is FormState.INVALID:
            self._send("focus", message, path=next(iter(self._model.visible_errors), None))

    def _rows(self, message: Message) -> None:
        added = self._change(lambda root: _change_rows(root, message))
        if added is not None:
            self._send("focus", message, path=added)

    def _json(self, message: Message) -> None:
        text = message.get("text")
        if message.get("do") == "close":
            self._form.edit_fields()
            self._form.validate()
        else:
            typed, origin = (text, _view(message)) if isinstance(text, str) else (None, None)
            self._form.change(lambda model: model.edit_json(typed, origin=origin, check=True))

    def _full(self, message: Message) -> None:
        part = message.get("part")
        if part in ("prompt", "context"):
            text = esc(getattr(self._content, part), into="text", limit=_FULL_LIMIT)
            self._send("full", message, part=part, text=text)

    def _send_status(self) -> None:
        self._send("status", **self._status())

    def _send(self, kind: str, to: Message | None = None, **content: Any) -> None:
        self.panel.send({"kind": kind, **({} if to is None else {"view": to.get("view")}), **content})

    def _state(self) -> Message:
        model, content = self._model, self._content
        state = {"labels": content.labels(model.root), "status": self._status()}
        if model.over:
            return {"nodes": [], "raw": {}, "text": None, **state}
        raw = {
            place.key: _page_raw(place.field, place.text)
            for place in model.root.walk()
            if place.field.is_leaf and place.text is not NO_VALUE and place.key not in content.hidden
        }
        return {"nodes": content.nodes(model.root), "raw": raw, "text": model.json_text, **state}

    def _status(self) -> Message:
        model, errors = self._model, self._model.visible_errors
        note = ""
        if model.state is FormState.SENDING:
            note = "Sending…"
        elif model.state in (FormState.ANSWERED, FormState.WITHDRAWN):
            note = answer_text(model)
        elif model.state is FormState.REFUSED:
            note = f"Not accepted: {model.refusal}"
        elif model.state is FormState.EXPIRED:
            note = f"Too late: the deadline was {self._content.deadline_text}."
        elif model.state is FormState.INVALID:
            note = count_text(len(errors), "problem")
        return {
            "state": str(model.state),
            "live": model.live,
            "errors": {key: esc(text, into="line", limit=500) for key, text in errors.items()},
            "note": note if model.state is FormState.SENDING else esc(note, into="line", limit=600),
        }


def _view(message: Message) -> str | None:
    view = message.get("view")
    return view if isinstance(view, str) else None


def _place(root: ValuePlace, key: object) -> ValuePlace:
    target = next((place for place in root.walk() if place.key == key), None)
    if target is None:
        raise KeyError(key)
    return target


def _put_file(root: ValuePlace, message: Message) -> None:
    place, buffers = _place(root, message.get("path")), message["buffers"]
    if place.field.kind == "file" and buffers:
        # A file above the limit is cut; the field reports that it is too large.
        place.write(text_of(place.field, bytes(buffers[0])[: FILE_LIMIT + 1]))


def _change_rows(root: ValuePlace, message: Message) -> str | None:
    """Change the rows of a list; returns the key of an added row."""
    many, do, texts = _place(root, message.get("path")), message.get("do"), message.get("texts")
    if many.field.item is None:
        return None
    if do == "add":
        return many.add()
    if do == "lines" and isinstance(texts, list) and len(texts) <= _LINES and all(isinstance(t, str) for t in texts):
        many.write(str(len(texts)))
        for row, text in zip(many.again().children, texts, strict=True):
            if row.text != text:
                row.write(text)
        return None
    at = [row.key for row in many.children].index(str(message.get("row")))
    to = at + {"up": -1, "down": 1}.get(str(do), 0)
    if do == "remove":
        many.remove(at)
    elif to >= 0:
        many.move(at, to)
    return None


def _raw(field: Field, sent: Mapping[str, Any]) -> Any:
    """Return the raw text in a message about a place, `NO_VALUE` if there is none."""
    position, text = sent.get("option"), sent.get("text")
    if sent.get("none") is True:
        return None if field.nullable or (field.omits if not field.is_leaf else not field.required) else NO_VALUE
    if field.kind == "union" and isinstance(at := sent.get("pick"), int) and 0 <= at < len(field.labels):
        return field.labels[at]
    if not field.is_leaf:
        return "" if sent.get("none") is False or sent.get("open") is True else NO_VALUE
    if isinstance(position, int) and 0 <= position < len(field.options):
        return field.options[position].label
    return text if isinstance(text, str) else NO_VALUE


def _page_raw(field: Field, raw: Any) -> Message:
    if raw is None:
        return {"none": True}
    if field.kind == "file":
        return {"size": len(raw) * 3 // 4 - raw[-2:].count("=")}
    for position, option in enumerate(field.options):
        if option.label == raw:
            return {"option": position}
    return {"text": raw}
