"""The state of a form: typed texts, problems and answer. All forms of one request share it.

Independent of widgets, clock and engine. `Form` calls it and displays its state.
"""

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from agentbench.exceptions import FormInvalid
from agentbench.notebook.forms.content import FormContent
from agentbench.notebook.forms.fields import NO_VALUE, Field, Raw
from agentbench.notebook.forms.json_view import apply_json, json_of_place
from agentbench.notebook.forms.reading import Problems, read
from agentbench.notebook.forms.text_values import JsonError, read_json, write_json
from agentbench.notebook.forms.values import Texts, ValuePlace
from agentbench.notebook.runtime.listeners import CallbackList

# The path of the JSON text of a form.
JSON = "json"


class FormState(StrEnum):
    """The state of a form; members print and compare as their text.

    `editing`, `validating`, `invalid` (see `Form.errors`), `sending`, `answered`, `refused` (see `Form.refusal`),
    `withdrawn` (nobody will answer) or `expired` (the deadline has passed).

    Example:
        number = form(int)
        assert number.state == "editing" and number.state is FormState.EDITING
    """

    EDITING = "editing"
    VALIDATING = "validating"
    INVALID = "invalid"
    SENDING = "sending"
    ANSWERED = "answered"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"

    def __str__(self) -> str:
        return str(self.value)


class FormModel:
    """The content, the typed texts, the problems and the answer of one form.

    `value` is the initial value. `build` makes the answer from the value of the field, and `check` returns problems
    between fields, by path. Listeners of `change` get the view in which a text was typed, if any; listeners of
    `status` are called when only the state or the problems change.
    """

    def __init__(
        self,
        content: FormContent,
        field: Field,
        *,
        value: object = NO_VALUE,
        build: Callable[[Any], Any] = lambda value: value,
        check: Callable[[Any], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self.content = content
        self.root = ValuePlace(field, Texts(value))
        self.lock = threading.RLock()
        self.listeners = CallbackList()
        self.state = FormState.EDITING
        self.refusal = ""
        self.answer: Any = None
        self.answered_at: str | None = None
        self.answered_here = True
        self.json_text: str | None = None
        """The text if the form is edited as JSON, otherwise `None`."""
        self._json_problem = ""
        self._problems: Problems = []
        self._submitted = False
        self._build, self._check = build, check

    @property
    def over(self) -> bool:
        """Whether the form is closed for typing."""
        return self.state in (FormState.ANSWERED, FormState.WITHDRAWN, FormState.EXPIRED)

    @property
    def live(self) -> bool:
        """Whether fields can be changed."""
        return not self.over and self.state is not FormState.SENDING

    @property
    def raw(self) -> dict[str, Raw]:
        """The typed texts by path; see `Form.raw`."""
        places = [] if self.over else self.root.walk()
        texts = {place.path: raw for place in places if (raw := place.raw) is not NO_VALUE}
        return texts if self.json_text is None else {**texts, JSON: self.json_text}

    def change(self, edit: Callable[[ValuePlace], Any], *, origin: str | None = None, check: bool = False) -> Any:
        """Call `edit` with the form to write into it, and return its result. If it raises, nothing changes."""
        root, result = self._edited(edit)
        self._replace_root(root, origin, check=check)
        return result

    def _edited(self, edit: Callable[[ValuePlace], Any]) -> tuple[ValuePlace, Any]:
        root = ValuePlace(self.root.field, self.root.texts.copy())
        result = edit(root)
        return root.again(), result

    def set_raw(self, raw: Mapping[str, Raw]) -> None:
        """Type into several fields by path, all or none. Raises like `Form.set_raw`."""
        self.change(lambda root: write_texts(root, raw))

    def _replace_root(self, root: ValuePlace, origin: str | None, *, check: bool) -> None:
        self.root, self._problems = root, []
        if check:
            self._read(root)
        if self.state is not FormState.REFUSED:
            self.state = FormState.EDITING
        self.listeners.emit("change", origin)

    def json(self) -> str:
        """Return the content of the form as JSON; raises `JsonError` if two keys of a dict are the same."""
        if self.json_text is not None:
            return self.json_text
        value = json_of_place(self.root)
        return "" if value is NO_VALUE else write_json(value)

    def edit_json(self, text: str | None = None, *, origin: str | None = None, check: bool = False) -> None:
        """Edit the form as JSON; valid JSON is written into the fields. Raises like `json`."""
        if self.json_text is None:
            self.json_text, self._json_problem = self.json(), ""
        root = self.root
        if text is not None and text != self.json_text:
            self.json_text, self._json_problem = text, ""
            root = ValuePlace(root.field, root.texts.copy())
            try:
                if text.strip():
                    apply_json(root, read_json(text))
                elif not root.field.parts():
                    root.clear()
                root = root.again()
            except JsonError as error:
                root, self._json_problem = self.root, str(error)
        self._replace_root(root, origin, check=check)

    def edit_fields(self) -> bool:
        """Go back to the fields, if the JSON text is valid for them."""
        if not self._json_problem:
            self.json_text = None
        self.listeners.emit("change", None)
        return self.json_text is None

    @property
    def errors(self) -> dict[str, str]:
        """Problems found by the last check, by path."""
        return self._by_name(lambda place: place.path)

    @property
    def visible_errors(self) -> dict[str, str]:
        """The problems that are displayed, by key: those of touched fields, or all after a first submit."""
        return self._by_name(lambda place: place.key if self._submitted or place.touched else None)

    def _by_name(self, name_of: Callable[[ValuePlace], str | None]) -> dict[str, str]:
        if self._json_problem:
            return {JSON: self._json_problem}
        found: dict[str, dict[str, None]] = {}
        for key, why in self._problems:
            found.setdefault(key, {})[why] = None
        named = (
            [(name_of(place), found[place.key]) for place in self.root.walk() if place.key in found] if found else []
        )
        return {name: "; ".join(every) for name, every in named if name is not None}

    def validate(self) -> bool:
        """Validate every field and set `errors`; return whether they are valid. Does not change texts."""
        self._read(self.root)
        self.listeners.emit("status", None)
        return not (self._problems or self._json_problem)

    def _read(self, root: ValuePlace) -> Any:
        problems: Problems = []
        value = read(root, problems)
        if not problems:
            problems = [(root.find(path).key, why) for path, why in self._check(value).items()]
        self._problems = problems
        return None if value is NO_VALUE else value

    def value(self, sets: Mapping[str, Raw] = {}) -> Any:
        """Return the value of the fields; `sets` replaces texts this time. Raises `FormInvalid` and sets `errors`."""
        root = ValuePlace(self.root.field, self.root.texts.copy())
        for path, text in sets.items():
            root.find(path).write(text)
        value = self._read(root.again())
        if self._problems or self._json_problem:
            raise FormInvalid(self.errors)
        return self._build(value)

    def begin_sending(
        self, sets: Mapping[str, Raw], edit: Callable[[ValuePlace], Any] = lambda _: None, origin: str | None = None
    ) -> Any:
        """Change the form like `change`, and return the answer to send; raises like `value`."""
        self.root, _ = self._edited(edit)
        self._submitted = True
        try:
            answer = self.value(sets)
        except FormInvalid:
            self.enter(FormState.INVALID, origin=origin)
            raise
        self.enter(FormState.SENDING)
        return answer

    def enter(self, state: FormState, refusal: str = "", *, origin: str | None = None) -> None:
        """Change the state, with the reason of a refusal."""
        self.state, self.refusal = state, refusal
        self.listeners.emit("status" if state is FormState.SENDING else "change", origin)

    def end(self, state: FormState, answer: Any = None, at: str | None = None, *, here: bool = True) -> None:
        """Record an answer, `here` or elsewhere, or the end without one, and drop the typed texts."""
        self.answer, self.answered_at, self.answered_here = answer, at, here
        self.root = ValuePlace(self.root.field, Texts())
        self.json_text, self._json_problem, self._submitted = None, "", False
        self.state, self.refusal, self._problems = state, "", []
        self.listeners.emit("change", None)

    def reopen(self) -> None:
        """Make the accepted answer editable again: fill the fields with it, except for secrets."""
        self.state = FormState.EDITING
        filled = ValuePlace(self.root.field, Texts(self.answer))
        secret = frozenset(place.key for place in filled.walk() if place.field.secret)
        self._replace_root(ValuePlace(self.root.field, Texts(self.answer, cleared=secret)), None, check=False)


def write_texts(root: ValuePlace, raw: Mapping[str, Raw]) -> None:
    """Write texts by path into a form; raises like `Form.set_raw`."""
    for path, text in raw.items():
        _write(root.again().find(path), text)


def _write(place: ValuePlace, text: object) -> None:
    if text is not None and not isinstance(text, str):
        msg = f"The raw text of {place.path!r} must be a str, got {type(text).__name__} {text!r}."
        raise TypeError(msg)
    problem = place.problem_of(text)
    if not problem:
        place.write(text)
        return
    try:
        apply_json(place, read_json(text or ""))
    except JsonError:
        msg = f"{place.path!r} does not accept {text!r}. {problem} Or pass the whole value as JSON."
        raise ValueError(msg) from None
