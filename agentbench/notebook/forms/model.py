"""The state of a form without its display: typed texts, problems, and the answer.

Uses no widgets, no clock and no engine. `Form` calls it and displays its state.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agentbench.exceptions import FormInvalid
from agentbench.notebook.forms.fields.field import NO_VALUE, ROOT, FormField, Raw
from agentbench.notebook.forms.fields.shapes import Group, Leaf, Part, Shape
from agentbench.notebook.forms.json_view import apply_json, json_of_draft, require_fields, write_json
from agentbench.notebook.forms.text_values.json_text import JsonError, read_json
from agentbench.notebook.forms.values.drafts import ConstDraft, Draft, LeafDraft, Reading, draft_of
from agentbench.notebook.forms.values.groups import OneOfDraft
from agentbench.notebook.forms.values.paths import find, paths_of
from agentbench.notebook.forms.values.rows import ManyDraft

__all__ = ["JSON", "Action", "Change", "FormModel", "FormState", "Whole"]

Values = Mapping[str, Any]
Listener = Callable[["Change"], object]

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


@dataclass(frozen=True)
class Change:
    """A change of a form.

    Attributes:
        texts: The drafts whose text changed, often none.
        origin: The view that typed it, which needs no echo.
        built: Whether fields were added or removed.
    """

    texts: tuple[Draft[Any], ...] = ()
    origin: str | None = None
    built: bool = False


@dataclass(frozen=True)
class Whole:
    """All of a list, a group or a union at once, as read from JSON."""

    json: Any


@dataclass(frozen=True)
class Action:
    """A button that ends a form.

    Attributes:
        name: Its name in messages of the page.
        label: Its text.
        sets: Raw texts that replace those of fields when it is pressed, by path; the fields themselves do not change.
        reveals: A field that stays hidden until this is pressed for the first time.
        tone: `yes`, `no` or `plain`, for its colour.
    """

    name: str
    label: str
    sets: Mapping[str, Raw]
    reveals: str | None = None
    tone: str = "plain"


class FormModel:
    """The state of one form.

    Args:
        shape: The shape of the answer; or fields, in the order of their display.
        build: Makes the answer from the value of a shape, or from the values of fields by path.
        check: Returns problems of several fields together, by path; called when every field is valid.

    Attributes:
        root: The typed texts, as a tree.
        state: The state of the form.
        refusal: Why the last answer was refused, empty if none was.
        answer: The accepted answer, `None` before.
        answered_at: Time of the acceptance, as text.
        answered_here: Whether the answer came from this form.
        json_text: The JSON text of the form while it is edited as JSON, else `None`.
    """

    def __init__(
        self,
        shape: Shape | Iterable[FormField],
        build: Callable[[Any], Any],
        *,
        check: Callable[[Values], Mapping[str, str]] | None = None,
    ) -> None:
        self._shape = shape if isinstance(shape, Shape) else _group_of(shape)
        self._build = build
        self._check = check
        self._submitted = False
        self._problems: list[tuple[Draft[Any], str]] = []
        self._listeners: list[Listener] = []
        self.json_text: str | None = None
        self._json_base: Any = NO_VALUE
        self._json_problem = ""
        self.root = self._fresh()
        self.state = FormState.EDITING
        self.refusal = ""
        self.answer: Any = None
        self.answered_at: str | None = None
        self.answered_here = True

    def _fresh(self) -> Draft[Any]:
        return draft_of(self._shape, ROOT)

    def fill(self, value: object) -> None:
        """Fill the form with a value, which is the answer until it is changed."""
        self.root.fill(value)

    # ---- typed texts ------------------------------------------------------------------------------------------------

    @property
    def fields(self) -> dict[str, FormField]:
        """The current fields, by path."""
        return {path: draft.field for path, draft in paths_of(self.root) if isinstance(draft, LeafDraft)}

    @property
    def raw(self) -> dict[str, Raw]:
        """The typed texts by path; `None` means "none". Empty fields that were never touched have no entry.

        The text of a list is the number of its rows, that of a union the name of the chosen type.
        """
        texts = {path: draft.raw() for path, draft in paths_of(self.root)}
        typed: dict[str, Raw] = {path: text for path, text in texts.items() if text is not NO_VALUE}
        return typed if self.json_text is None else {**typed, JSON: self.json_text}

    @property
    def live(self) -> bool:
        """Whether fields can be changed."""
        return self.state in _LIVE

    def set_raw(self, raw: Mapping[str, Raw], *, origin: str | None = None) -> None:
        """Set the texts of fields, as typing does. Nothing is validated yet.

        Args:
            raw: Texts by path. The path of the row after the last one adds that row; a text for one type of a union
                chooses that type. A list, a group or a union also accepts JSON for all of it.
            origin: The view that typed it; listeners get it in the `Change`.

        Raises:
            KeyError: There is no such field. No field is changed.
            TypeError: A text is not a `str` or `None`. No field is changed.
            ValueError: A list, a union or a group does not accept the text. No field is changed.
        """
        sizes = [(draft, len(draft.rows)) for draft in self.root.walk() if isinstance(draft, ManyDraft)]
        try:
            found = [self._place(path, text) for path, text in raw.items()]
        except (KeyError, TypeError, ValueError):
            for draft, count in sizes:
                del draft.rows[count:]
            raise
        self.write(found, origin=origin)

    def _place(self, path: str, text: object) -> tuple[Draft[Any], "Raw | Whole"]:
        if text is not None and not isinstance(text, str):
            msg = f"The raw of {path!r} is the text a person types, got {type(text).__name__} {text!r}. Pass a str."
            raise TypeError(msg)
        draft = find(self.root, path)
        problem = "It cannot be changed." if isinstance(draft, ConstDraft) else draft.may_set(text)
        if not problem:
            return draft, text
        try:
            whole = Whole(read_json(text or ""))
            require_fields(draft, whole.json)
        except JsonError:
            msg = f"{path!r} does not take {text!r}. {problem} Or pass all of it as JSON."
            raise ValueError(msg) from None
        return draft, whole

    def write(self, found: "Iterable[tuple[Draft[Any], Raw | Whole]]", *, origin: str | None = None) -> None:
        """Set the texts of drafts, as `set_raw` does by path."""
        before = self._outline()
        texts = []
        for draft, text in found:
            if isinstance(text, Whole):
                apply_json(draft, NO_VALUE, text.json)
            else:
                draft.set_raw(text)
            self._drop_problems(draft)
            texts.append(draft)
        self._resume_editing()
        self._notify(Change(tuple(texts), origin, built=before != self._outline()))

    def _outline(self) -> list[tuple[str, bool]]:
        """Return the keys of all drafts with whether they are "none", to notice that fields were added or removed."""
        return [(draft.key, draft.is_none and not isinstance(draft, LeafDraft)) for draft in self.root.walk()]

    def build(self, draft: Draft[Any], change: Callable[[], object]) -> None:
        """Add, remove or move the drafts below a draft."""
        change()
        self._drop_problems(draft)
        self._resume_editing()
        self._notify(Change(built=True))

    def _drop_problems(self, draft: Draft[Any]) -> None:
        stale = {id(each) for each in (draft, *draft.ancestors)}
        # Problems of removed rows, and of types that are no longer chosen, are dropped too.
        there = {id(each) for each in self.root.walk()}
        self._problems = [(each, why) for each, why in self._problems if id(each) in there - stale]

    def _resume_editing(self) -> None:
        if self.state is not FormState.REFUSED:
            self.state = FormState.EDITING

    # ---- the form as JSON -------------------------------------------------------------------------------------------

    def open_json(self) -> None:
        """Start to edit the form as JSON.

        Raises:
            JsonError: The fields have no JSON text: two keys of a dict are the same.
        """
        if self.json_text is None:
            self._json_base = json_of_draft(self.root)
            self.json_text = write_json(self._json_base)
            self._json_problem = ""
            self._notify(Change(built=True))

    def type_json(self, text: str, *, origin: str | None = None) -> None:
        """Replace the JSON text. If the form has fields for it, it is written into them."""
        if text == self.json_text:
            return
        self.json_text = text
        self._resume_editing()
        try:
            new = read_json(text) if text.strip() else NO_VALUE
            if new is NO_VALUE:
                self.root.clear()
            else:
                apply_json(self.root, self._json_base, new)
            self._json_base, self._json_problem = new, ""
            self._problems = []
        except JsonError as error:
            self._json_problem = str(error)
        self._notify(Change(origin=origin))

    def close_json(self) -> None:
        """Go back to the fields; if the form has none for the text, `errors` says why, and the JSON stays open."""
        if self.json_text is not None and not self._json_problem:
            self.json_text = None
        self._notify(Change(built=True))

    # ---- problems ---------------------------------------------------------------------------------------------------

    @property
    def errors(self) -> dict[str, str]:
        """Problems found by the last check, by path."""
        return self._by_path(self._problems)

    @property
    def visible_errors(self) -> dict[str, str]:
        """The problems that are displayed: those of touched fields, or all after a first submit."""
        return self._by_path(self.visible_problems)

    @property
    def visible_problems(self) -> list[tuple[Draft[Any], str]]:
        """The displayed problems with their drafts."""
        return [(draft, why) for draft, why in self._problems if self._submitted or draft.touched]

    def _by_path(self, problems: Iterable[tuple[Draft[Any], str]]) -> dict[str, str]:
        if self._json_problem:
            return {JSON: self._json_problem}
        places = {id(draft): path for path, draft in paths_of(self.root)}
        found: dict[str, list[str]] = {}
        for draft, why in problems:
            found.setdefault(places[id(draft)], []).append(why)
        return {path: "; ".join(dict.fromkeys(found[path])) for path in dict.fromkeys(places.values()) if path in found}

    def validate(self) -> bool:
        """Validate every field and set `errors`; return whether there are none. Changes no text."""
        self._problems = self._read()[1]
        self._notify(Change())
        return not self._wrong

    @property
    def _wrong(self) -> bool:
        return bool(self._problems or self._json_problem)

    def value(self) -> Any:
        """Return the answer that was accepted from here, else the value of the fields.

        Raises:
            FormInvalid: The fields have no valid value.
        """
        if self.state is FormState.ANSWERED and self.answered_here:
            return self.answer
        value, problems = self._read()
        if problems or self._json_problem:
            raise FormInvalid(self._by_path(problems))
        return self._build(value)

    def _read(self, overrides: Mapping[str, Raw] | None = None) -> tuple[Any, list[tuple[Draft[Any], str]]]:
        reading = Reading(overrides or {})
        value: Any = self.root.value(reading)
        if not reading.problems and self._check is not None:
            reading.problems += [(find(self.root, path), why) for path, why in self._check(value).items()]
        if value is NO_VALUE and not reading.problems:
            value = None
        return value, reading.problems

    # ---- the answer -------------------------------------------------------------------------------------------------

    def begin_sending(self, overrides: Mapping[str, Raw] | None = None) -> Any:
        """Validate all fields and return the answer to send.

        Args:
            overrides: Texts that replace those of fields this time, by path.

        Raises:
            FormInvalid: The fields have no valid value; `errors` is set and the state is `invalid`.
        """
        self.state = FormState.VALIDATING
        self._submitted = True
        self.refusal = ""
        value, self._problems = self._read(overrides)
        if self._wrong:
            self.state = FormState.INVALID
            self._notify(Change())
            raise FormInvalid(self.errors)
        self.state = FormState.SENDING
        self._notify(Change())
        return self._build(value)

    def begin_sending_value(self) -> None:
        """Start to send a value that is not from the fields."""
        self.refusal = ""
        self.state = FormState.SENDING
        self._notify(Change())

    def accept(self, answer: Any, at: str | None, *, here: bool = True) -> None:
        """Record an accepted answer, with `here` false one from elsewhere, and drop the typed texts."""
        self.answer, self.answered_at, self.answered_here = answer, at, here
        for draft in self.root.walk():
            if here and draft.touched and isinstance(draft, OneOfDraft):
                draft.remember()
        self.state = FormState.ANSWERED
        self._reset()

    def refuse(self, reason: str) -> None:
        """Record that the answer was refused; the fields can be edited again, with their texts."""
        self.refusal = reason
        self.state = FormState.REFUSED
        self._notify(Change())

    def expire(self) -> None:
        """Record that the deadline has passed, and drop the typed texts."""
        self.state = FormState.EXPIRED
        self._reset()

    def reopen(self) -> None:
        """Let the accepted answer be edited again: the fields have it as their content, except for secrets."""
        self.root = self._fresh()
        self.root.fill(self.answer)
        for draft in list(self.root.walk()):
            if isinstance(draft, LeafDraft) and draft.field.secret:
                draft.clear()
                for each in draft.ancestors:
                    each.original = NO_VALUE
        self.state = FormState.EDITING
        self._notify(Change(built=True))

    def _reset(self) -> None:
        # Drafts without content, not even the defaults of the type.
        self.root = self._fresh()
        for draft in list(self.root.walk()):
            draft.clear()
        self.json_text, self._json_base, self._json_problem = None, NO_VALUE, ""
        self._problems.clear()
        self._submitted = False
        self._notify(Change(built=True))

    # ---- listeners --------------------------------------------------------------------------------------------------

    def on_change(self, fn: Listener) -> Callable[[], None]:
        """Call `fn` with a `Change` after every change, also of the state alone.

        Returns:
            A function that removes the listener.
        """
        self._listeners.append(fn)

        def stop() -> None:
            if fn in self._listeners:
                self._listeners.remove(fn)

        return stop

    def _notify(self, change: Change) -> None:
        for fn in tuple(self._listeners):
            fn(change)


def _group_of(fields: Iterable[FormField]) -> Group:
    parts = [
        Part(
            field.path,
            field.path,
            Leaf(label=field.label, required=field.required, nullable=field.nullable, field=field),
        )
        for field in fields
    ]
    return Group(parts=lambda: parts)
