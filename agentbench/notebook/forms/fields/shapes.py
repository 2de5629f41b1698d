"""The places of a form, as a tree: leaves with a field each, and the groups and lists around them.

Made from a type or a JSON Schema by the modules of `schema`. Shapes are immutable; the typed texts are in the drafts of
`values`. Children are made when they are first needed, so types may contain themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from agentbench.notebook.forms.fields.field import NO_VALUE, FormField, adapter_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Check", "Const", "Group", "Leaf", "Many", "Member", "OneOf", "Pairs", "Part", "Rows", "Shape", "lazily"]


class Check:
    """The type of a value; pydantic's adapter is made when it is needed.

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

    def validate(self, value: object) -> object:
        """Return the value as the type makes it; raises pydantic's `ValidationError`."""
        # The parts were made of typed text and have the exact types already; a strict model would require instances
        # where a form has the fields.
        return self.adapter.validate_python(value, strict=False)

    def accepts(self, value: object) -> bool:
        """Whether a value is of the type, without any conversion."""
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
        label: Its label for people.
        help: The accepted values, in words.
        nullable: Whether `None` is an answer.
        required: Whether an answer is needed.
        omits: Whether "not set" is an answer, which differs from every value.
        default: The default of the type; `NO_VALUE` for none, or for one that only the type can make.
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
    """A fixed value."""

    value: object
    text: str


@dataclass(frozen=True)
class Part:
    """A place in a group.

    Attributes:
        name: Its attribute or property.
        key: Its name in the input of the type, such as an alias.
        shape: Its shape.
    """

    name: str
    key: str
    shape: Shape


@dataclass(frozen=True, kw_only=True)
class Group(Shape):
    """Places with names: those of a model, a dataclass, an object or a tuple.

    Attributes:
        parts: Makes the places.
        makes: The type of the parts together.
        of: The type itself, to notice one inside itself.
        open_ended: Whether entries without a place are allowed, and stay.
    """

    parts: Callable[[], Sequence[Part]]
    makes: Literal["dict", "list", "tuple"] = "dict"
    of: object = None
    open_ended: bool = False


@dataclass(frozen=True, kw_only=True)
class Many(Shape):
    """Any number of places of one shape.

    Attributes:
        item: Makes the shape.
        least: Fewest places.
        most: Most places, `None` without a limit.
    """

    item: Callable[[], Shape]
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class Rows(Many):
    """A list, tuple or set.

    Attributes:
        makes: The type of the rows together.
        unique: Whether all values must differ.
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
    """One of several types: its name and its shape."""

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
    """Return `make`, called at most once."""
    return lru_cache(maxsize=1)(make)
