"""The typed texts of a form, as a tree beside its shape: texts stay texts until the value is read.

A draft stores three things: whether a person touched it, whether it has content, and the value it was filled with, as
long as nothing was changed since. An unchanged value is therefore returned as the same object.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from typing_extensions import override

from agentbench.notebook.forms.fields.field import NO_VALUE, FieldError, Raw
from agentbench.notebook.forms.fields.shapes import Const, Leaf, Shape

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
    """One reading of all drafts.

    Attributes:
        overrides: Texts that replace those of fields in this reading, by key of the draft.
        problems: Each problem with its draft.
    """

    overrides: Mapping[str, Raw] = field(default_factory=dict)
    problems: "list[tuple[Draft[Any], str]]" = field(default_factory=list)

    def refuse(self, draft: "Draft[Any]", why: str) -> object:
        """Record a problem and return `NO_VALUE`."""
        self.problems.append((draft, why))
        return NO_VALUE


class Draft(Generic[S]):
    """The content of one place of a form.

    Attributes:
        shape: The shape of the place.
        key: The place's name for a page; it stays the same when rows move.
        parent: The draft around this one.
        touched: Whether a person changed this place or one below.
        present: Whether the place has content that counts.
        original: The value it was filled with, while unchanged; else `NO_VALUE`.
        is_none: Whether "none" is the answer.
    """

    def __init__(self, shape: S, key: str, parent: "Draft[Any] | None" = None) -> None:
        self.shape = shape
        self.key = key
        self.parent = parent
        self.touched = False
        self.present = False
        self.original: object = NO_VALUE
        self.is_none = False

    # ---- where things are -------------------------------------------------------------------------------------------

    def children(self) -> "Iterator[tuple[str, Draft[Any]]]":
        """Return the current drafts below, with their names."""
        return iter(())

    def child(self, name: str) -> "Draft[Any] | None":
        """Return the draft below of that name; it is made if the shape allows it."""
        return next((draft for each, draft in self.children() if each == name), None)

    def names(self) -> Iterator[str]:
        """Return the names that `child` accepts."""
        return (name for name, _ in self.children())

    def step(self, part: object) -> "Draft[Any] | None":
        """Return the draft that a part of an error's location names; `None` if it only names a type."""
        return next((draft for name, draft in self.children() if name == str(part)), None)

    def walk(self) -> "Iterator[Draft[Any]]":
        """Return this draft and all below."""
        yield self
        for _, draft in self.children():
            yield from draft.walk()

    @property
    def ancestors(self) -> "Iterator[Draft[Any]]":
        """The drafts around this one, innermost first."""
        at = self.parent
        while at is not None:
            yield at
            at = at.parent

    # ---- what is typed ----------------------------------------------------------------------------------------------

    def raw(self) -> "Raw | Any":
        """Return the text of this place itself, `NO_VALUE` if it has none."""
        return None if self.is_none else NO_VALUE

    def set_raw(self, text: Raw) -> None:
        """Set the text of this place, as typing does."""
        self.touch()
        self.is_none = text is None

    def may_set(self, text: Raw) -> str:
        """Return why this place does not accept a text, empty if it does."""
        if text in (None, ""):
            return ""
        names = list(self.names())
        listed = ", ".join(map(repr, names[:_NAMED])) + (", …" if len(names) > _NAMED else "")
        return f"It has fields of its own: name one of them ({listed})."

    def touch(self) -> None:
        """Mark this place, and all around it, as changed."""
        self.touched = self.present = True
        self.original = NO_VALUE
        child: Draft[Any] = self
        for draft in self.ancestors:
            draft.touched = draft.present = True
            draft.original = NO_VALUE
            draft.is_none = False
            draft.open_for(child)
            child = draft

    def open_for(self, child: "Draft[Any]") -> None:
        """Open this place for a child that was touched."""

    # ---- values -----------------------------------------------------------------------------------------------------

    def fill(self, value: object, *, as_answer: bool = True) -> None:
        """Fill this place with a value.

        Args:
            value: The value; of a wrong one, as much as the fields can display.
            as_answer: Whether it is the answer until it is changed; false for a default, which the type adds itself.
        """
        self.present = as_answer
        self.is_none = value is None and self.shape.nullable
        self.original = value if as_answer and self._accepts(value) else NO_VALUE
        if not self.is_none:
            self._fill(value)

    def _accepts(self, value: object) -> bool:
        return self.shape.check is not None and self.shape.check.accepts(value)

    def _fill(self, value: object) -> None:
        """Fill the places below with a value that is not "none"."""

    def clear(self) -> None:
        """Empty this place."""
        self.is_none = self.present = False
        self.original = NO_VALUE

    def read(self, reading: Reading) -> object:
        """Return the input for the type around this place; `NO_VALUE` if there is none, or it is wrong."""
        if reading.overrides.get(self.key, "") is None or self.is_none:
            return self._none(reading)
        if self.original is not NO_VALUE:
            return self.original
        return self._read(reading)

    def _none(self, reading: Reading) -> object:
        if self.shape.nullable:
            return None
        return NO_VALUE if not self.shape.required else reading.refuse(self, NO_NONE)

    def _read(self, reading: Reading) -> object:
        raise NotImplementedError

    def value(self, reading: Reading) -> object:
        """Return the value itself, as its type makes it; `NO_VALUE` if something is wrong."""
        before = len(reading.problems)
        read = self.read(reading)
        check = self.shape.check
        if check is None or read is NO_VALUE or read is self.original or len(reading.problems) > before:
            return read
        from pydantic import ValidationError

        try:
            return check.validate(read)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_input=False):
                reading.problems.append((self._at(each["loc"]), problem_of(dict(each))))
        except Exception as error:  # noqa: BLE001 - a validator of the user's
            reading.refuse(self, f"{type(error).__name__}: {error}")
        return NO_VALUE

    def _at(self, loc: "tuple[int | str, ...]") -> "Draft[Any]":
        """Return the draft at a location of pydantic's error; parts that only name a type are skipped."""
        at: Draft[Any] = self
        for part in loc:
            at = at.step(part) or at
        return at


_KINDS: dict[type[Shape], Callable[..., Draft[Any]]] = {}

K = TypeVar("K", bound=Callable[..., Draft[Any]])


def drafted_by(shape: type[Shape]) -> Callable[[K], K]:
    """Register the class of drafts for a kind of shape."""

    def register(kind: K) -> K:
        _KINDS[shape] = kind
        return kind

    return register


def draft_of(shape: Shape, key: str, parent: Draft[Any] | None = None) -> Draft[Any]:
    """Return the draft of a shape, with its default."""
    made = _KINDS[type(shape)](shape, key, parent)
    if shape.default is not NO_VALUE:
        made.fill(shape.default, as_answer=False)
    return made


def below(parent: Draft[Any], name: str) -> str:
    """Return the key of a draft below `parent`."""
    return name if parent.parent is None else f"{parent.key}.{name}"


def problem_of(error: Mapping[str, Any]) -> str:
    """Return the message of one of pydantic's errors."""
    return str(error["msg"]).removeprefix("Value error, ")


@drafted_by(Leaf)
class LeafDraft(Draft[Leaf]):
    """One field's text.

    Attributes:
        field: The field.
        text: The typed text; `None` for "none", `NO_VALUE` for nothing.
        preset: Whether it was filled with a value.
        tall: Whether it ever had a text of several lines; a field does not shrink while a person types.
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
    def fill(self, value: object, *, as_answer: bool = True) -> None:
        if not as_answer and self.field.secret:
            return
        super().fill(value, as_answer=as_answer)
        # The value of a secret or a file stays, but is not displayed.
        hidden = self.field.secret or self.field.kind == "file"
        self.text = NO_VALUE if hidden and self.original is not NO_VALUE else _text_of(self.field.write, value)
        self.preset = True
        self.tall = _has_lines(self.text)

    @override
    def clear(self) -> None:
        super().clear()
        self.text = NO_VALUE

    @override
    def read(self, reading: Reading) -> object:
        return self._convert(reading, self.field.input)

    @override
    def value(self, reading: Reading) -> object:
        return self._convert(reading, self.field.read)

    def _convert(self, reading: Reading, take: Callable[[Raw], object]) -> object:
        text = reading.overrides.get(self.key, NO_VALUE)
        if text is NO_VALUE:
            if self.original is not NO_VALUE:
                return self.original
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
        """Whether an empty text means no value; for an optional text it is a value, for a number it is none."""
        return not self.field.required and self.field.kind != "text" and not text.strip()


@drafted_by(Const)
class ConstDraft(Draft[Const]):
    """A place with a fixed value."""

    @override
    def read(self, reading: Reading) -> object:
        return self.shape.value

    def _accepts(self, value: object) -> bool:
        return False


def _has_lines(text: object) -> bool:
    return isinstance(text, str) and not {"\n", "\r"}.isdisjoint(text)


def _text_of(write: Callable[[object], Raw], value: object) -> Raw:
    """Return the text of a value, also of one that the field does not accept."""
    try:
        return write(value)
    except (ValueError, TypeError, AttributeError):
        return str(value)


def items_of(value: object) -> list[tuple[Any, object]]:
    """Return the entries of a mapping, or the extra entries of a model."""
    if isinstance(value, Mapping):
        return list(value.items())
    extra = getattr(value, "__pydantic_extra__", None)
    return list(extra.items()) if isinstance(extra, Mapping) else []
