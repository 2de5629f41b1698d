"""What a form asks for, as a tree: leaves that are typed, and what holds them together.

Made from a type by `form_types` and from a JSON Schema by `form_schema`. Nothing in a shape changes; what is typed
lies in the drafts of `form_drafts`. Children are made when they are first needed, so types may contain themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from agentbench.notebook.form_fields import NO_VALUE, FormField, adapter_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Check", "Const", "Group", "Leaf", "Many", "Member", "OneOf", "Pairs", "Part", "Rows", "Shape", "lazily"]


class Check:
    """The type of a value, asked only when it is needed.

    Args:
        annotation: Any type that pydantic knows.
    """

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._made: TypeAdapter[Any] | None = None

    @property
    def adapter(self) -> "TypeAdapter[Any]":
        """Pydantic's adapter of the type."""
        if self._made is None:
            self._made = adapter_of(self._annotation)
        return self._made

    def validated(self, value: object) -> object:
        """The value as the type makes it; raises pydantic's `ValidationError`."""
        # What is handed in was made of typed text and has the exact types already; a strict model would ask for
        # instances where a form has the fields.
        return self.adapter.validate_python(value, strict=False)

    def accepts(self, value: object) -> bool:
        """Whether a value is one of the type as it is."""
        from pydantic import ValidationError

        try:
            self.adapter.validate_python(value, strict=True)
        except ValidationError:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One place in a form.

    Attributes:
        label: What the person reads.
        help: What is accepted, in words.
        nullable: Whether `None` is an answer.
        required: Whether something must be given.
        omits: Whether it may be left out altogether, which is another answer than every value.
        default: What the type takes where nothing is given; `NO_VALUE` for nothing, or for what only it knows.
        check: The type, which makes the value; without one the parts are the value.
    """

    label: str = ""
    help: str = ""
    nullable: bool = False
    required: bool = True
    omits: bool = False
    default: object = NO_VALUE
    check: Check | None = None


@dataclass(frozen=True, kw_only=True)
class Leaf(Shape):
    """One field."""

    field: FormField


@dataclass(frozen=True, kw_only=True)
class Const(Shape):
    """A value that cannot be another one."""

    value: object
    text: str


@dataclass(frozen=True)
class Part:
    """A named place in a group.

    Attributes:
        name: Its attribute or property.
        key: Under which name the type wants to be given it.
        shape: What stands there.
    """

    name: str
    key: str
    shape: Shape


@dataclass(frozen=True, kw_only=True)
class Group(Shape):
    """A box of named places: a model, a dataclass, an object; or the places of a tuple.

    Attributes:
        parts: Makes the places.
        makes: What the parts become.
        of: What type it is, to notice one inside itself.
        open_ended: Whether other names than those of the parts are kept.
    """

    parts: Callable[[], Sequence[Part]]
    makes: Literal["dict", "list", "tuple"] = "dict"
    of: object = None
    open_ended: bool = False


@dataclass(frozen=True, kw_only=True)
class Many(Shape):
    """Any number of the same.

    Attributes:
        item: Makes the shape of what there may be many of.
        least: Fewest of them.
        most: Most of them, `None` without a limit.
    """

    item: Callable[[], Shape]
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class Rows(Many):
    """A list, tuple or set.

    Attributes:
        makes: What the rows become.
        unique: Whether no two rows may say the same.
    """

    makes: type[Any] = list
    unique: bool = False


@dataclass(frozen=True, kw_only=True)
class Pairs(Many):
    """Rows of a key and a value, whose shape is `item`.

    Attributes:
        key: The shape of a key.
    """

    key: Leaf


@dataclass(frozen=True)
class Member:
    """One of several types: what it is called and what it asks for."""

    label: str
    shape: Callable[[], Shape]


@dataclass(frozen=True, kw_only=True)
class OneOf(Shape):
    """A value of one of several types, in their order."""

    members: tuple[Member, ...]
    labels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(member.label for member in self.members))


def lazily(make: Callable[[], Shape]) -> Callable[[], Shape]:
    """`make`, called once at most."""
    return lru_cache(maxsize=1)(make)
