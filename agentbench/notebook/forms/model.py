"""The state of a form without its display: typed texts, problems, and the answer.

Uses no widgets, no clock and no engine. `Form` calls it and displays its state.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from agentbench.exceptions import FormInvalid
from agentbench.notebook.forms.fields import NO_VALUE, Field, Raw
from agentbench.notebook.forms.json_view import apply_json, json_of_place
from agentbench.notebook.forms.reading import Problems, read
from agentbench.notebook.forms.text_values import JsonError, read_json, write_json
from agentbench.notebook.forms.values import Place, Texts, parent_keys
from agentbench.notebook.runtime.listeners import Listeners, Unsubscribe

__all__ = ["JSON", "FormModel", "FormState"]

# The path of the text of a form that is edited as JSON.
JSON = "json"


class FormState(str, Enum):
    """The state of a form; members print and compare as their text.

    `editing`, `validating`, `invalid` (see `Form.errors`), `sending`, `answered`, `refused` (see `Form.refusal`) or
    `expired` (the deadline has passed).

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
    EXPIRED = "expired"

    def __str__(self) -> str:
        return str(self.value)


_LIVE = frozenset({FormState.EDITING, FormState.VALIDATING, FormState.INVALID, FormState.REFUSED})


class FormModel:
    """The state of one form.

    Args:
        field: The field of the answer.
        value: The value that it is filled with; `NO_VALUE` for none.
        build: Makes the answer from the value of the field.
        check: Returns problems of several fields together, by path; called when every field is valid.
    """

    def __init__(
        self,
        field: Field,
        *,
        value: object = NO_VALUE,
        build: Callable[[Any], Any] = lambda value: value,
        check: Callable[[Any], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self.root = Place(field, Texts(value))
        self._build = build
        self._check = check
        self._submitted = False
        self._problems: Problems = []
        self._listeners = Listeners()
        #: The text while the form is edited as JSON, else `None`.
        self.json_text: str | None = None
        self._json_problem = ""
        self.state = FormState.EDITING
        self.refusal = ""
        self.answer: Any = None
        self.answered_at: str | None = None
        self.answered_here = True

    # ---- typed texts ------------------------------------------------------------------------------------------------

    @property
    def raw(self) -> dict[str, Raw]:
        """The typed texts by path; `None` means "none". Empty fields that were never touched have no entry.

        The text of a list is the number of its rows, that of a union the name of the chosen type.
        """
        texts = {path: raw for path, place in self.root.paths() if (raw := place.raw) is not NO_VALUE}
        return texts if self.json_text is None else {**texts, JSON: self.json_text}

    @property
    def live(self) -> bool:
        """Whether fields can be changed."""
        return self.state in _LIVE

    def change(self, edit: Callable[[Place], Any], *, origin: str | None = None) -> Any:
        """Call `edit` with the form, to write into it, and return its result. If it raises, nothing is changed."""
        old = self.root.texts
        made = Place(self.root.field, old.copy())
        result = edit(made)
        new = made.texts
        typed = [key for key in {**old.typed, **new.typed} if old.typed.get(key, "") != new.typed.get(key, "")]
        self._settle(made.again(), [*typed, *(key for key in new.rows if new.rows[key] != old.rows.get(key))])
        self._listeners.emit("change", origin)
        return result

    def set_raw(self, raw: Mapping[str, Raw], *, origin: str | None = None) -> None:
        """Set the texts of fields by path, as typing does; if one is not accepted, none is. Nothing is validated yet.

        Raises:
            KeyError: There is no such field.
            TypeError: A text is not a `str` or `None`.
            ValueError: A list, a union or a group does not accept the text.
        """

        def edit(root: Place) -> None:
            for path, text in raw.items():
                _write(root.again().find(path), text)

        self.change(edit, origin=origin)

    def _settle(self, root: Place, changed: list[str]) -> None:
        """Use the changed texts, and drop the problems of changed places, of those around them, and of removed ones."""
        self.root = root
        there = {place.key for place in root.walk()}
        stale = {root.key, *changed, *(parent for key in changed for parent in parent_keys(key))}
        self._problems = [(key, why) for key, why in self._problems if key in there - stale]
        if self.state is not FormState.REFUSED:
            self.state = FormState.EDITING

    # ---- the form as JSON -------------------------------------------------------------------------------------------

    def open_json(self) -> None:
        """Start to edit the form as JSON; raises `JsonError` if two keys of a dict are the same."""
        if self.json_text is None:
            self.json_text, self._json_problem = self.json(), ""
            self._listeners.emit("change", None)

    def json(self) -> str:
        """Return the content of the form as JSON; raises as `open_json`."""
        found = json_of_place(self.root) if self.json_text is None else NO_VALUE
        return (self.json_text or "") if found is NO_VALUE else write_json(found)

    def type_json(self, text: str, *, origin: str | None = None) -> None:
        """Replace the JSON text. If the form has fields for it, it is written into them."""
        if text == self.json_text:
            return
        self.json_text = text
        made = Place(self.root.field, self.root.texts.copy())
        try:
            if text.strip():
                apply_json(made, read_json(text))
            elif not self.root.field.parts():
                made.clear()
            self._json_problem, self._problems = "", []
            self._settle(made.again(), [])
        except JsonError as error:
            self._json_problem = str(error)
            self._settle(self.root, [])
        self._listeners.emit("change", origin)

    def close_json(self) -> None:
        """Go back to the fields; if the form has none for the text, `errors` says why, and the JSON stays open."""
        if not self._json_problem:
            self.json_text = None
        self._listeners.emit("change", None)

    # ---- problems ---------------------------------------------------------------------------------------------------

    @property
    def errors(self) -> dict[str, str]:
        """Problems found by the last check, by path."""
        return self._by_path(self._problems)

    @property
    def visible_errors(self) -> dict[str, str]:
        """The problems that are displayed, by key: those of touched fields, or all after a first submit."""
        if self._json_problem:
            return {JSON: self._json_problem}
        touched = {place.key for place in self.root.walk() if self._submitted or place.touched}
        return _join((key, why) for key, why in self._problems if key in touched)

    def _by_path(self, problems: Problems) -> dict[str, str]:
        if self._json_problem:
            return {JSON: self._json_problem}
        found = _join(problems)
        return {path: found[place.key] for path, place in self.root.paths() if place.key in found}

    def validate(self) -> bool:
        """Validate every field and set `errors`; return whether there are none. Changes no text."""
        self._problems = self._read(self.root)[1]
        self._listeners.emit("status", None)
        return not (self._problems or self._json_problem)

    def value(self) -> Any:
        """Return the answer that was accepted from here, else the value of the fields; raises `FormInvalid`."""
        if self.state is FormState.ANSWERED and self.answered_here:
            return self.answer
        value, problems = self._read(self.root)
        if problems or self._json_problem:
            raise FormInvalid(self._by_path(problems))
        return self._build(value)

    def _read(self, root: Place) -> tuple[Any, Problems]:
        problems: Problems = []
        value = read(root, problems)
        if not problems:
            problems = [(root.find(path).key, why) for path, why in self._check(value).items()]
        return None if value is NO_VALUE else value, problems

    # ---- the answer -------------------------------------------------------------------------------------------------

    def begin_sending(self, sets: Mapping[str, Raw]) -> Any:
        """Validate all fields and return the answer to send.

        Args:
            sets: Texts by path that replace those of fields this time; the fields themselves do not change.

        Raises:
            FormInvalid: The fields have no valid value; `errors` is set and the state is `invalid`.
        """
        self._submitted = True
        root = Place(self.root.field, self.root.texts.copy())
        for path, text in sets.items():
            root.find(path).write(text)
        value, self._problems = self._read(root.again())
        wrong = self._problems or self._json_problem
        self._enter(FormState.INVALID if wrong else FormState.SENDING)
        if wrong:
            raise FormInvalid(self.errors)
        return self._build(value)

    def begin_sending_value(self) -> None:
        """Start to send a value that is not from the fields."""
        self._enter(FormState.SENDING)

    def accept(self, answer: Any, at: str | None, *, here: bool = True) -> None:
        """Record an accepted answer, with `here` false one from elsewhere, and drop the typed texts."""
        self.answer, self.answered_at, self.answered_here = answer, at, here
        self._end(FormState.ANSWERED)

    def refuse(self, reason: str) -> None:
        """Record that the answer was refused; the fields can be edited again, with their texts."""
        self._enter(FormState.REFUSED, reason)

    def expire(self) -> None:
        """Record that the deadline has passed, and drop the typed texts."""
        self._end(FormState.EXPIRED)

    def reopen(self) -> None:
        """Let the accepted answer be edited again: the fields have it as their content, except for secrets."""
        filled = Place(self.root.field, Texts(self.answer))
        secret = frozenset(place.key for place in filled.walk() if place.field.secret)
        self.root = Place(self.root.field, Texts(self.answer, cleared=secret))
        self._enter(FormState.EDITING, kind="change")

    def _end(self, state: FormState) -> None:
        # Without content, not even the defaults of the type.
        self.root = Place(self.root.field, Texts(cleared=frozenset({self.root.key})))
        self.json_text, self._json_problem = None, ""
        self._problems, self._submitted = [], False
        self._enter(state, kind="change")

    def _enter(self, state: FormState, refusal: str = "", kind: str = "status") -> None:
        self.state, self.refusal = state, refusal
        self._listeners.emit(kind, None)

    def on_change(self, fn: Callable[[str | None], object], *, kind: str = "change") -> Unsubscribe:
        """Call `fn` after every change, with the view that typed it if one did; returns what ends it.

        The `kind` is `status` for changes of the state and the problems alone.
        """
        return self._listeners.add(kind, fn)


def _write(place: Place, text: object) -> None:
    if text is not None and not isinstance(text, str):
        msg = f"The raw of {place.path!r} is the text a person types, got {type(text).__name__} {text!r}. Pass a str."
        raise TypeError(msg)
    problem = place.problem_of(text)
    if not problem:
        place.write(text)
        return
    try:
        apply_json(place, read_json(text or ""))
    except JsonError:
        msg = f"{place.path!r} does not take {text!r}. {problem} Or pass all of it as JSON."
        raise ValueError(msg) from None


def _join(problems: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for key, why in problems:
        found.setdefault(key, []).append(why)
    return {key: "; ".join(dict.fromkeys(every)) for key, every in found.items()}
