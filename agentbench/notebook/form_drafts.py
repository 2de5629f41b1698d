"""What was typed into a form, as a tree beside its shape: texts stay texts until somebody asks for the value.

A draft knows three things: whether a person touched it, whether something stands in it, and the value it was filled
with, as long as nothing was changed since. A value that nobody changed is therefore given back as it came.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from typing_extensions import override

from agentbench.notebook.form_fields import NO_VALUE, FieldError, Raw
from agentbench.notebook.form_shapes import Const, Leaf, Shape

__all__ = [
    "UNTYPED",
    "ConstDraft",
    "Draft",
    "LeafDraft",
    "Reading",
    "below",
    "draft_of",
    "drafted_by",
    "items_of",
    "problem_of",
]

UNTYPED = "An answer is needed here."
_NAMED = 10
NO_NONE = "None is not accepted here."

S = TypeVar("S", bound=Shape)


@dataclass
class Reading:
    """One look at all drafts.

    Attributes:
        overrides: Texts that count in place of what stands in a field, by key of the draft.
        problems: What is wrong, with the draft where it is.
    """

    overrides: Mapping[str, Raw] = field(default_factory=dict)
    problems: "list[tuple[Draft[Any], str]]" = field(default_factory=list)

    def refuse(self, draft: "Draft[Any]", why: str) -> object:
        """Note a problem; there is no value."""
        self.problems.append((draft, why))
        return NO_VALUE


class Draft(Generic[S]):
    """What stands in one place of a form.

    Args:
        shape: What is asked for.
        key: The place's name for a page; it stays the same when rows move.
        parent: What holds it.

    Attributes:
        shape: As given.
        key: As given.
        parent: As given.
        touched: Whether somebody typed here or below.
        present: Whether something stands here that counts.
        kept: The value it was filled with, while unchanged; else `NO_VALUE`.
        is_none: Whether "none" is the answer.
    """

    def __init__(self, shape: S, key: str, parent: "Draft[Any] | None" = None) -> None:
        self.shape = shape
        self.key = key
        self.parent = parent
        self.touched = False
        self.present = False
        self.kept: object = NO_VALUE
        self.is_none = False

    # ---- where things are -------------------------------------------------------------------------------------------

    def named(self) -> "Iterator[tuple[str, Draft[Any]]]":
        """What stands below now, by name."""
        return iter(())

    def child(self, name: str) -> "Draft[Any] | None":
        """What stands below under that name; makes it if it may be there."""
        return next((draft for each, draft in self.named() if each == name), None)

    def names(self) -> Iterator[str]:
        """The names that `child` knows."""
        return (name for name, _ in self.named())

    def step(self, part: object) -> "Draft[Any] | None":
        """What a part of an error's place stands for; `None` if it only names a type."""
        return next((draft for name, draft in self.named() if name == str(part)), None)

    def walk(self) -> "Iterator[Draft[Any]]":
        """This draft and all below."""
        yield self
        for _, draft in self.named():
            yield from draft.walk()

    @property
    def ancestors(self) -> "Iterator[Draft[Any]]":
        """What holds this draft, from near to far."""
        at = self.parent
        while at is not None:
            yield at
            at = at.parent

    # ---- what is typed ----------------------------------------------------------------------------------------------

    def raw(self) -> "Raw | Any":
        """The text of this place itself, `NO_VALUE` if it has none."""
        return None if self.is_none else NO_VALUE

    def set_raw(self, text: Raw) -> None:
        """Put a text here, as typing does."""
        self.touch()
        self.is_none = text is None

    def may_set(self, text: Raw) -> str:
        """Why a text cannot stand here, empty if it can."""
        if text in (None, ""):
            return ""
        names = list(self.names())
        named = ", ".join(map(repr, names[:_NAMED])) + (", …" if len(names) > _NAMED else "")
        return f"It has fields of its own: name one of them ({named})."

    def touch(self) -> None:
        """Somebody changed something here."""
        self.touched = self.present = True
        self.kept = NO_VALUE
        child: Draft[Any] = self
        for draft in self.ancestors:
            draft.touched = draft.present = True
            draft.kept = NO_VALUE
            draft.is_none = False
            draft.hold(child)
            child = draft

    def hold(self, child: "Draft[Any]") -> None:
        """Something below was touched."""

    # ---- values -----------------------------------------------------------------------------------------------------

    def fill(self, value: object, *, given: bool = True) -> None:
        """Let a value stand here.

        Args:
            value: The value; of a wrong one, as much as can be shown.
            given: Whether it is the answer until it is changed; false for what the type would take anyway.
        """
        self.present = given
        self.is_none = value is None and self.shape.nullable
        self.kept = value if given and self._accepts(value) else NO_VALUE
        if not self.is_none:
            self._fill(value, given)

    def _accepts(self, value: object) -> bool:
        return self.shape.check is not None and self.shape.check.accepts(value)

    def _fill(self, value: object, given: bool) -> None:
        """Show a value that is not "none"."""

    def clear(self) -> None:
        """Let nothing stand here."""
        self.is_none = self.present = False
        self.kept = NO_VALUE

    def read(self, reading: Reading) -> object:
        """What the type around is given; `NO_VALUE` if nothing is, or if it is wrong."""
        if reading.overrides.get(self.key, "") is None or self.is_none:
            return self._none(reading)
        if self.kept is not NO_VALUE:
            return self.kept
        return self._read(reading)

    def _none(self, reading: Reading) -> object:
        if self.shape.nullable:
            return None
        return NO_VALUE if not self.shape.required else reading.refuse(self, NO_NONE)

    def _read(self, reading: Reading) -> object:
        raise NotImplementedError

    def value(self, reading: Reading) -> object:
        """The value itself, as its type makes it; `NO_VALUE` if something is wrong."""
        before = len(reading.problems)
        given = self.read(reading)
        check = self.shape.check
        if check is None or given is NO_VALUE or given is self.kept or len(reading.problems) > before:
            return given
        from pydantic import ValidationError

        try:
            return check.validated(given)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_input=False):
                reading.problems.append((self._at(each["loc"]), problem_of(dict(each))))
        except Exception as error:  # noqa: BLE001 - a validator of the user's
            reading.refuse(self, f"{type(error).__name__}: {error}")
        return NO_VALUE

    def _at(self, loc: "tuple[int | str, ...]") -> "Draft[Any]":
        """The draft that a place of pydantic's names; parts that only name a type are passed over."""
        at: Draft[Any] = self
        for part in loc:
            at = at.step(part) or at
        return at


_KINDS: dict[type[Shape], Callable[..., Draft[Any]]] = {}

K = TypeVar("K", bound=Callable[..., Draft[Any]])


def drafted_by(shape: type[Shape]) -> Callable[[K], K]:
    """Name the drafts of a kind of shape."""

    def register(kind: K) -> K:
        _KINDS[shape] = kind
        return kind

    return register


def draft_of(shape: Shape, key: str, parent: Draft[Any] | None = None) -> Draft[Any]:
    """The empty draft of a shape; what the type takes by itself stands in it."""
    made = _KINDS[type(shape)](shape, key, parent)
    if shape.default is not NO_VALUE:
        made.fill(shape.default, given=False)
    return made


def below(parent: Draft[Any], name: str) -> str:
    """The key of what stands below `parent`."""
    return name if parent.parent is None else f"{parent.key}.{name}"


def problem_of(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors in words."""
    return str(error["msg"]).removeprefix("Value error, ")


@drafted_by(Leaf)
class LeafDraft(Draft[Leaf]):
    """One field's text.

    Attributes:
        field: What is typed.
        text: What was typed; `None` for "none", `NO_VALUE` for nothing.
        preset: Whether a value stood here before anybody typed.
        tall: Whether a text of several lines ever stood here; a field does not shrink while somebody types.
    """

    def __init__(self, shape: Leaf, key: str, parent: Draft[Any] | None = None) -> None:
        super().__init__(shape, key, parent)
        self.field = shape.field
        self.text: Any = self.field.initial
        self.present = self.text is not NO_VALUE
        self.preset = False
        self.tall = _has_lines(self.text)

    @override
    def raw(self) -> Any:
        return self.text

    @override
    def may_set(self, text: Raw) -> str:
        return ""

    @override
    def set_raw(self, text: Raw) -> None:
        self.touch()
        self.text = text
        self.tall = self.tall or _has_lines(text)
        self.is_none = text is None

    def _accepts(self, value: object) -> bool:
        return self.field.accepts(value)

    @override
    def fill(self, value: object, *, given: bool = True) -> None:
        if not given and self.field.secret:
            return
        super().fill(value, given=given)
        # A secret or a file is kept, and not shown.
        hidden = self.field.secret or self.field.kind == "file"
        self.text = NO_VALUE if hidden and self.kept is not NO_VALUE else _text_of(self.field.write, value)
        self.preset = True
        self.tall = _has_lines(self.text)

    @override
    def clear(self) -> None:
        super().clear()
        self.text = NO_VALUE

    @override
    def read(self, reading: Reading) -> object:
        return self._taken(reading, self.field.input)

    @override
    def value(self, reading: Reading) -> object:
        return self._taken(reading, self.field.read)

    def _taken(self, reading: Reading, take: Callable[[Raw], object]) -> object:
        text = reading.overrides.get(self.key, NO_VALUE)
        if text is NO_VALUE:
            if self.kept is not NO_VALUE:
                return self.kept
            text = self.text
        if text is NO_VALUE or (text is not None and self._is_left_out(text)):
            return reading.refuse(self, UNTYPED) if self.field.required else NO_VALUE
        if text is None and not self.field.nullable and not self.field.required:
            return NO_VALUE
        try:
            return take(text)
        except FieldError as error:
            return reading.refuse(self, str(error))

    def _is_left_out(self, text: str) -> bool:
        """A text may be empty; a number that need not be given is left out when it is."""
        return not self.field.required and self.field.kind != "text" and not text.strip()


@drafted_by(Const)
class ConstDraft(Draft[Const]):
    """A place that asks nothing."""

    @override
    def read(self, reading: Reading) -> object:
        return self.shape.value

    def _accepts(self, value: object) -> bool:
        return False


def _has_lines(text: object) -> bool:
    return isinstance(text, str) and not {"\n", "\r"}.isdisjoint(text)


def _text_of(write: Callable[[object], Raw], value: object) -> Raw:
    """The text of a value, also of one that is none of the field's."""
    try:
        return write(value)
    except (ValueError, TypeError, AttributeError):
        return str(value)


def items_of(value: object) -> list[tuple[Any, object]]:
    """The entries of a mapping, or what a model has besides its fields."""
    if isinstance(value, Mapping):
        return list(value.items())
    extra = getattr(value, "__pydantic_extra__", None)
    return list(extra.items()) if isinstance(extra, Mapping) else []
