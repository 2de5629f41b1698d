"""A form without its looks: what was typed, what is wrong with it, and what has become of the answer.

Knows no widgets, no clock and no engine. The shell in `forms` tells it what happened and shows what it says.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agentbench.exceptions import FormInvalid
from agentbench.notebook.form_fields import NO_VALUE, FieldError, FormField, Raw

__all__ = ["Action", "FormModel", "FormState"]

Values = Mapping[str, Any]
Listener = Callable[[tuple[str, ...], str | None], object]

_UNTYPED = "An answer is needed here."


class FormState(str, Enum):
    """What a form is doing; members print and compare as their text."""

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


@dataclass(frozen=True)
class Action:
    """A button that ends a form.

    Attributes:
        name: What the page calls it.
        label: What stands on it.
        sets: Raw texts that count when it is pressed, by path; what stands in the fields stays.
        reveals: A field that stays hidden until this is pressed for the first time.
        tone: `yes`, `no` or `plain`; for the looks, the label says the same.
    """

    name: str
    label: str
    sets: Mapping[str, Raw]
    reveals: str | None = None
    tone: str = "plain"


class FormModel:
    """The state of one form.

    Args:
        fields: The fields in the order in which they are shown.
        build: Makes the answer from the values of all fields, by path.
        check: Problems that no field sees by itself, by path; called when every field is fine.

    Attributes:
        fields: As given, by path.
        state: What the form is doing.
        refusal: Why the last answer was refused, empty if none was.
        answer: The accepted answer, `None` before.
        answered_at: When it was accepted, as text.
        answered_here: Whether it came from this form.
    """

    def __init__(
        self,
        fields: Iterable[FormField],
        build: Callable[[Values], Any],
        *,
        check: Callable[[Values], Mapping[str, str]] | None = None,
    ) -> None:
        self.fields = {field.path: field for field in fields}
        self._build = build
        self._check = check
        self._raw: dict[str, Raw] = {}
        self._touched: set[str] = set()
        self._submitted = False
        self._errors: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self._fill()
        self.state = FormState.EDITING
        self.refusal = ""
        self.answer: Any = None
        self.answered_at: str | None = None
        self.answered_here = True

    # ---- what was typed ---------------------------------------------------------------------------------------------

    @property
    def raw(self) -> dict[str, Raw]:
        """What was typed, by path; `None` means "none". Fields that nobody touched and nothing preset are not in it."""
        return dict(self._raw)

    @property
    def live(self) -> bool:
        """Whether fields can be changed."""
        return self.state in _LIVE

    def set_raw(self, raw: Mapping[str, Raw], *, origin: str | None = None) -> None:
        """Put text into fields, as typing does. Nothing is checked yet.

        Args:
            raw: What stands in the fields now, by path; fields that are not named stay as they are.
            origin: Who typed it; listeners are told, so that a page need not hear what it said itself.

        Raises:
            KeyError: If there is no such field. No field is changed then.
            TypeError: If a text is none. Likewise.
        """
        for path, text in raw.items():
            self._require_text(path, text)
        for path, text in raw.items():
            self._raw[path] = text
            self._touched.add(path)
            self._errors.pop(path, None)
        if self.state is not FormState.REFUSED:
            self.state = FormState.EDITING
        self._changed(raw, origin)

    def _require_text(self, path: str, text: object) -> None:
        if path not in self.fields:
            msg = f"No field {path!r}. The fields are: {', '.join(map(repr, self.fields))}."
            raise KeyError(msg)
        if text is not None and not isinstance(text, str):
            msg = f"The raw of {path!r} is the text a person types, got {type(text).__name__} {text!r}. Give it as str."
            raise TypeError(msg)

    # ---- what is wrong ----------------------------------------------------------------------------------------------

    @property
    def errors(self) -> dict[str, str]:
        """Problems found by the last check, by path."""
        return dict(self._errors)

    @property
    def shown_errors(self) -> dict[str, str]:
        """The problems that a person is told: of touched fields only, until an answer was tried."""
        return {p: e for p, e in self._errors.items() if self._submitted or p in self._touched}

    def validate(self) -> bool:
        """Check every field, and set `errors`. Changes no text."""
        self._errors = self._read()[1]
        self._changed()
        return not self._errors

    def value(self) -> Any:
        """The answer that was accepted from here, else the one that stands in the fields.

        Raises:
            FormInvalid: If they hold none.
        """
        if self.state is FormState.ANSWERED and self.answered_here:
            return self.answer
        values, errors = self._read()
        if errors:
            raise FormInvalid(errors)
        return self._build(values)

    def _read(self, overrides: Mapping[str, Raw] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
        raw = {**self._raw, **(overrides or {})}
        values: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for path, field in self.fields.items():
            text = raw.get(path, NO_VALUE)
            if text is NO_VALUE:
                values[path] = None
                if field.required:
                    errors[path] = _UNTYPED
                continue
            try:
                values[path] = field.read(text)
            except FieldError as error:
                errors[path] = str(error)
        if not errors and self._check is not None:
            errors.update(self._check(values))
        return values, errors

    # ---- what becomes of it -----------------------------------------------------------------------------------------

    def begin_sending(self, overrides: Mapping[str, Raw] | None = None) -> Any:
        """Take the answer off the fields and lock them.

        Args:
            overrides: Texts that count instead of what stands in the fields, which stays.

        Returns:
            The answer. The fields keep their text until it is accepted.

        Raises:
            FormInvalid: If the fields hold none; the state is then `invalid`.
        """
        self._submitted = True
        self.state = FormState.VALIDATING
        self.refusal = ""
        values, self._errors = self._read(overrides)
        if self._errors:
            self.state = FormState.INVALID
            self._changed()
            raise FormInvalid(self._errors)
        self.state = FormState.SENDING
        self._changed()
        return self._build(values)

    def accept(self, answer: Any, at: str | None, *, here: bool = True) -> None:
        """The answer was taken; or, with `here` false, another one was there first. Forgets what was typed."""
        self.answer, self.answered_at, self.answered_here = answer, at, here
        self.state = FormState.ANSWERED
        self._forget()

    def refuse(self, reason: str) -> None:
        """The answer was not taken; the fields are live again, with their text."""
        self.refusal = reason
        self.state = FormState.REFUSED
        self._changed()

    def expire(self) -> None:
        """The time for an answer is over. Forgets what was typed."""
        self.state = FormState.EXPIRED
        self._forget()

    def reopen(self) -> None:
        """Let the accepted answer of a form with one field be changed. It stands there again, unless it is a secret."""
        (path,) = self.fields
        self.fields[path] = self.fields[path].with_value(self.answer)
        self._fill()
        self.state = FormState.EDITING
        self._changed(self._raw)

    def _forget(self) -> None:
        self._raw.clear()
        self._errors.clear()
        self._touched.clear()
        self._submitted = False
        self._changed()

    def _fill(self) -> None:
        for path, field in self.fields.items():
            if field.initial is not NO_VALUE:
                self._raw[path] = field.initial

    # ---- who is told ------------------------------------------------------------------------------------------------

    def on_change(self, fn: Listener) -> Callable[[], None]:
        """Call `fn(paths, origin)` after every change; `paths` are the fields whose text it was, often none.

        Returns:
            A function that ends it.
        """
        self._listeners.append(fn)

        def stop() -> None:
            if fn in self._listeners:
                self._listeners.remove(fn)

        return stop

    def _changed(self, paths: Iterable[str] = (), origin: str | None = None) -> None:
        told = tuple(paths)
        for fn in tuple(self._listeners):
            fn(told, origin)
