"""A form without its looks: what was typed, what is wrong with it, and what has become of the answer.

Knows no widgets, no clock and no engine. The shell in `forms` tells it what happened and shows what it says.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agentbench.exceptions import FormInvalid
from agentbench.notebook.form_drafts import ConstDraft, Draft, LeafDraft, Reading, draft_of
from agentbench.notebook.form_fields import NO_VALUE, ROOT, FormField, Raw
from agentbench.notebook.form_groups import OneOfDraft
from agentbench.notebook.form_json import apply_json, json_of_draft, require_fields, write_json
from agentbench.notebook.form_paths import find, paths_of
from agentbench.notebook.form_rows import ManyDraft
from agentbench.notebook.form_shapes import Group, Leaf, Part, Shape
from agentbench.notebook.json_reading import JsonError, read_json

__all__ = ["JSON", "Action", "Change", "FormModel", "FormState", "Whole"]

Values = Mapping[str, Any]
Listener = Callable[["Change"], object]

# The path of the text of a form that is edited as JSON.
JSON = "json"


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
class Change:
    """What happened to a form.

    Attributes:
        texts: The drafts whose text it was, often none.
        origin: Who typed it, so that a page need not hear what it said itself.
        built: Whether there are other fields now than before.
    """

    texts: tuple[Draft[Any], ...] = ()
    origin: str | None = None
    built: bool = False


@dataclass(frozen=True)
class Whole:
    """All of a list, a box or a union at once, as read from JSON."""

    json: Any


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
        asked: The shape of the answer; or fields, in the order in which they are shown.
        build: Makes the answer from the value of a shape, or from the values of fields by path.
        check: Problems that no field sees by itself, by path; called when every field is fine.

    Attributes:
        root: What was typed, as a tree.
        state: What the form is doing.
        refusal: Why the last answer was refused, empty if none was.
        answer: The accepted answer, `None` before.
        answered_at: When it was accepted, as text.
        answered_here: Whether it came from this form.
        json_text: The form as one text, while it is edited as that; else `None`.
    """

    def __init__(
        self,
        asked: Shape | Iterable[FormField],
        build: Callable[[Any], Any],
        *,
        check: Callable[[Values], Mapping[str, str]] | None = None,
    ) -> None:
        self._shape = asked if isinstance(asked, Shape) else _group_of(asked)
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
        """Let a value stand in the form, as the answer until it is changed; of a wrong one, as much as can be shown."""
        self.root.fill(value)

    # ---- what was typed ---------------------------------------------------------------------------------------------

    @property
    def fields(self) -> dict[str, FormField]:
        """The fields that are there now, by path."""
        return {path: draft.field for path, draft in paths_of(self.root) if isinstance(draft, LeafDraft)}

    @property
    def raw(self) -> dict[str, Raw]:
        """What was typed, by path; `None` means "none". Fields that nobody touched and nothing preset are not in it.

        Of a list it is the number of its rows, of a union the name of the type that is chosen.
        """
        texts = {path: draft.raw() for path, draft in paths_of(self.root)}
        typed: dict[str, Raw] = {path: text for path, text in texts.items() if text is not NO_VALUE}
        return typed if self.json_text is None else {**typed, JSON: self.json_text}

    @property
    def live(self) -> bool:
        """Whether fields can be changed."""
        return self.state in _LIVE

    def set_raw(self, raw: Mapping[str, Raw], *, origin: str | None = None) -> None:
        """Put text into fields, as typing does. Nothing is checked yet.

        Args:
            raw: What stands in the fields now, by path; fields that are not named stay as they are. The row after the
                last one of a list is added by naming it; a text for one type of a union chooses that type. A list, a
                box or a union may be given as JSON as a whole.
            origin: Who typed it; listeners are told, so that a page need not hear what it said itself.

        Raises:
            KeyError: If there is no such field. No field is changed then.
            TypeError: If a text is none. Likewise.
            ValueError: If a list, a union or a box is given a text that it cannot have. Likewise.
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
            msg = f"The raw of {path!r} is the text a person types, got {type(text).__name__} {text!r}. Give it as str."
            raise TypeError(msg)
        draft = find(self.root, path)
        problem = "It cannot be changed." if isinstance(draft, ConstDraft) else draft.may_set(text)
        if not problem:
            return draft, text
        try:
            whole = Whole(read_json(text or ""))
            require_fields(draft, whole.json)
        except JsonError:
            msg = f"{path!r} does not take {text!r}. {problem} Or give all of it as JSON."
            raise ValueError(msg) from None
        return draft, whole

    def write(self, found: "Iterable[tuple[Draft[Any], Raw | Whole]]", *, origin: str | None = None) -> None:
        """As `set_raw`, for drafts of this form."""
        before = self._outline()
        texts = []
        for draft, text in found:
            if isinstance(text, Whole):
                apply_json(draft, NO_VALUE, text.json)
            else:
                draft.set_raw(text)
            self._forget_problems(draft)
            texts.append(draft)
        self._edited()
        self._changed(Change(tuple(texts), origin, built=before != self._outline()))

    def _outline(self) -> list[tuple[str, bool]]:
        """What holds what, and which types are chosen."""
        return [(draft.key, draft.is_none and not isinstance(draft, LeafDraft)) for draft in self.root.walk()]

    def build(self, draft: Draft[Any], change: Callable[[], object]) -> None:
        """Add, take away or move what a draft holds."""
        change()
        self._forget_problems(draft)
        self._edited()
        self._changed(Change(built=True))

    def _forget_problems(self, draft: Draft[Any]) -> None:
        stale = {id(each) for each in (draft, *draft.ancestors)}
        # What stood in a row that is gone, or in a type that is no longer chosen, is nobody's problem.
        there = {id(each) for each in self.root.walk()}
        self._problems = [(each, why) for each, why in self._problems if id(each) in there - stale]

    def _edited(self) -> None:
        if self.state is not FormState.REFUSED:
            self.state = FormState.EDITING

    # ---- the whole as one text --------------------------------------------------------------------------------------

    def open_json(self) -> None:
        """Show what stands in the fields as JSON, to be edited.

        Raises:
            JsonError: If JSON cannot say it.
        """
        if self.json_text is None:
            self._json_base = json_of_draft(self.root)
            self.json_text = write_json(self._json_base)
            self._json_problem = ""
            self._changed(Change(built=True))

    def type_json(self, text: str, *, origin: str | None = None) -> None:
        """Put a text in place of the JSON. As soon as it is one that the form has fields for, it stands in them."""
        if text == self.json_text:
            return
        self.json_text = text
        self._edited()
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
        self._changed(Change(origin=origin))

    def close_json(self) -> None:
        """Go back to the fields, unless the text stands in none: then `errors` says why, and it stays."""
        if self.json_text is not None and not self._json_problem:
            self.json_text = None
        self._changed(Change(built=True))

    # ---- what is wrong ----------------------------------------------------------------------------------------------

    @property
    def errors(self) -> dict[str, str]:
        """Problems found by the last check, by path."""
        return self._listed(self._problems)

    @property
    def shown_errors(self) -> dict[str, str]:
        """The problems that a person is told: of touched fields only, until an answer was tried."""
        return self._listed(self.shown_problems)

    @property
    def shown_problems(self) -> list[tuple[Draft[Any], str]]:
        """The same, with the drafts where they are."""
        return [(draft, why) for draft, why in self._problems if self._submitted or draft.touched]

    def _listed(self, problems: Iterable[tuple[Draft[Any], str]]) -> dict[str, str]:
        if self._json_problem:
            return {JSON: self._json_problem}
        places = {id(draft): path for path, draft in paths_of(self.root)}
        said: dict[str, list[str]] = {}
        for draft, why in problems:
            said.setdefault(places[id(draft)], []).append(why)
        return {path: "; ".join(dict.fromkeys(said[path])) for path in dict.fromkeys(places.values()) if path in said}

    def validate(self) -> bool:
        """Check every field, and set `errors`. Changes no text."""
        self._problems = self._read()[1]
        self._changed(Change())
        return not self._wrong

    @property
    def _wrong(self) -> bool:
        return bool(self._problems or self._json_problem)

    def value(self) -> Any:
        """The answer that was accepted from here, else the one that stands in the fields.

        Raises:
            FormInvalid: If they hold none.
        """
        if self.state is FormState.ANSWERED and self.answered_here:
            return self.answer
        value, problems = self._read()
        if problems or self._json_problem:
            raise FormInvalid(self._listed(problems))
        return self._build(value)

    def _read(self, overrides: Mapping[str, Raw] | None = None) -> tuple[Any, list[tuple[Draft[Any], str]]]:
        reading = Reading(overrides or {})
        value: Any = self.root.value(reading)
        if not reading.problems and self._check is not None:
            reading.problems += [(find(self.root, path), why) for path, why in self._check(value).items()]
        if value is NO_VALUE and not reading.problems:
            value = None
        return value, reading.problems

    # ---- what becomes of it -----------------------------------------------------------------------------------------

    def begin_sending(self, overrides: Mapping[str, Raw] | None = None) -> Any:
        """Check all fields, and hand out the answer to send.

        Args:
            overrides: Texts that count this time in place of what stands in the fields.

        Raises:
            FormInvalid: If there is none; `errors` is set and the state is `invalid`.
        """
        self.state = FormState.VALIDATING
        self._submitted = True
        self.refusal = ""
        value, self._problems = self._read(overrides)
        if self._wrong:
            self.state = FormState.INVALID
            self._changed(Change())
            raise FormInvalid(self.errors)
        self.state = FormState.SENDING
        self._changed(Change())
        return self._build(value)

    def begin_sending_value(self) -> None:
        """A value that stands in no field is sent."""
        self.refusal = ""
        self.state = FormState.SENDING
        self._changed(Change())

    def accept(self, answer: Any, at: str | None, *, here: bool = True) -> None:
        """The answer was taken; or, with `here` false, another one was there first. Forgets what was typed."""
        self.answer, self.answered_at, self.answered_here = answer, at, here
        for draft in self.root.walk():
            if here and draft.touched and isinstance(draft, OneOfDraft):
                draft.remember()
        self.state = FormState.ANSWERED
        self._forget()

    def refuse(self, reason: str) -> None:
        """The answer was not taken; the fields are live again, with their text."""
        self.refusal = reason
        self.state = FormState.REFUSED
        self._changed(Change())

    def expire(self) -> None:
        """The time for an answer is over. Forgets what was typed."""
        self.state = FormState.EXPIRED
        self._forget()

    def reopen(self) -> None:
        """Let the accepted answer of a form be changed. It stands there again, but for secrets."""
        self.root = self._fresh()
        self.root.fill(self.answer)
        for draft in list(self.root.walk()):
            if isinstance(draft, LeafDraft) and draft.field.secret:
                draft.clear()
                for each in draft.ancestors:
                    each.kept = NO_VALUE
        self.state = FormState.EDITING
        self._changed(Change(built=True))

    def _forget(self) -> None:
        self.root = self._emptied()
        self.json_text, self._json_base, self._json_problem = None, NO_VALUE, ""
        self._problems.clear()
        self._submitted = False
        self._changed(Change(built=True))

    def _emptied(self) -> Draft[Any]:
        """Drafts in which not even what the type takes by itself stands."""
        root = self._fresh()
        for draft in list(root.walk()):
            draft.clear()
        return root

    # ---- who is told ------------------------------------------------------------------------------------------------

    def on_change(self, fn: Listener) -> Callable[[], None]:
        """Call `fn` with a `Change` after every change, also of the state alone.

        Returns:
            A function that ends it.
        """
        self._listeners.append(fn)

        def stop() -> None:
            if fn in self._listeners:
                self._listeners.remove(fn)

        return stop

    def _changed(self, change: Change) -> None:
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
