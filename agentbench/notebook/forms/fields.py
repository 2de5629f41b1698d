"""A form's fields as a tree, and the conversion of one typed text to the input of a type and back.

Typed text stays text until pydantic accepts it, so nothing is rounded, clamped or guessed. Fields are immutable; the
typed texts are in `values`. Inner fields are made when first needed, so types may contain themselves.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from enum import Enum
from typing import Any, Literal, NamedTuple

from agentbench.notebook.forms.questions import Option
from agentbench.notebook.forms.text_values import FieldError, bytes_of_text, read_json, write_json

# The path of a form that is one value.
ROOT = "value"
YES_NO = Option("Yes", True), Option("No", False)

Kind = Literal[
    "text", "number", "choice", "json", "date", "datetime", "time", "file", "const",
    "group", "rows", "pairs", "pair", "union",
]  # fmt: skip


class NoValue(Enum):
    """The type of `NO_VALUE`: no value at all, as opposed to the value `None`."""

    NO_VALUE = "NO_VALUE"


NO_VALUE: Literal[NoValue.NO_VALUE] = NoValue.NO_VALUE

Raw = str | None


class FieldPart(NamedTuple):
    """A field inside another: its name, its name in the input of the type (such as an alias), and its factory."""

    name: str
    key: str
    field: "Callable[[], Field]"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field, or a box of several, as described by a schema."""

    kind: Kind
    label: str = ""
    help: str = ""
    required: bool = True
    nullable: bool = False
    """`None` is an answer; its raw is `None`, which differs from every typed text."""
    omits: bool = False
    """"Not set" is an answer, which differs from every value."""
    default: object = NO_VALUE
    validate: Callable[[Any], Any] | None = None
    """Makes the value of the input; raises pydantic's `ValidationError`. Without one, the enclosing type does it."""
    accepts: Callable[[Any], bool] | None = None
    """Whether a value is of this type, without any conversion; only for members of a union of a Python type."""
    options: tuple[Option, ...] = ()
    """Options of a choice; the only option of a `const`."""
    allow_other: bool = False
    multiline: bool = False
    max_length: int | None = None
    secret: bool = False
    makes: Callable[[str], Any] = str
    """The class of numbers, or of secret texts that pydantic does not make."""
    suggestion: str = ""
    """The initial text, which counts only after a person edits it."""
    zone: str = ""
    """Time zone of times: required (`aware`), refused (`naive`) or optional (`either`)."""
    parts: Callable[[], Sequence[FieldPart]] = tuple
    """The fields of a group or pair, or the members of a union."""
    item: "Callable[[], Field] | None" = None
    """Factory of the field of a row."""
    positional: bool = False
    """A group whose value is a list."""
    least: int = 0
    most: int | None = None
    unique: bool = False
    of: object = None
    """The type of a group, to detect recursion."""
    open_ended: bool = False
    """Whether a group may have entries without a field, which are kept."""

    @property
    def is_leaf(self) -> bool:
        """Whether the field is one typed text."""
        return self.kind not in ("group", "rows", "pairs", "pair", "union", "const")

    @property
    def labels(self) -> list[str]:
        """The names of the parts, such as those of a union's members."""
        return [part.name for part in self.parts()]

    def itself(self) -> "Field":
        """Return the field; the factory of a `FieldPart` that needs no delay."""
        return self


def json_field(help: str = 'JSON, for example "text", 1, true or {"key": "value"}', **rest: Any) -> Field:  # noqa: A002
    """Make a field for any value, typed as JSON."""
    return Field(kind="json", multiline=True, help=help, **rest)


_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
_ZONE = r" ?([Zz]|[+-]\d{2}:?\d{2}(:\d{2})?)?"
_DAY = r"\d{4}-\d{2}-\d{2}"
# Pydantic would read other texts, such as a number, as seconds since 1970.
_TIMES = {
    "date": (_DAY, "a date such as 2024-05-17"),
    "datetime": (f"{_DAY}[T ]{_CLOCK}{_ZONE}", "a date and a time such as 2024-05-17 14:30"),
    "time": (f"{_CLOCK}{_ZONE}", "a time such as 14:30"),
}
_ZONES = {
    "aware": ", with a zone: Z for UTC, or +02:00",
    "naive": ", without a zone",
    "either": "; a zone may follow: Z for UTC, or +02:00",
}


def input_of(field: Field, text: str) -> Any:
    """Return a typed text as the input of the type, which validates it; raises `FieldError`."""
    if field.kind == "text":
        return field.makes(text)
    if field.kind == "choice":
        return _option_value(field, text)
    text = text.strip()
    if field.kind == "number":
        return _number(field, text)
    if field.kind == "file":
        return bytes_of_text(text)
    if field.kind == "json":
        if not text:
            msg = "Type a value as JSON."
            raise FieldError(msg)
        read_json(text)  # refuses numbers that a float cannot represent
        return read_json(text, float)
    pattern, wanted = _TIMES[field.kind]
    if not re.fullmatch(pattern, text):
        msg = f"Type {wanted}."
        raise FieldError(msg)
    return text


def _option_value(field: Field, text: str) -> object:
    for option in field.options:
        if option.label == text:
            return option.value
    if field.allow_other and text.strip():
        return text
    listed = ", ".join(option.label for option in field.options[:10]) + (", …" if len(field.options) > 10 else "")
    msg = f"{text!r} is not one of the options: {listed}." if text else "Choose one."
    raise FieldError(msg)


def _number(field: Field, text: str) -> object:
    whole = field.makes is int
    wanted = "a whole number, such as 12" if whole else "a number, such as 1.5"
    if not text or "," in text:
        hint = "Leave out thousands separators." if whole else "Write the decimal sign as a point."
        msg = (f"Numbers must not contain a comma. {hint} " if text else "") + f"Type {wanted}."
        raise FieldError(msg)
    try:
        value = field.makes(text)
    except (ValueError, ArithmeticError):
        return text  # pydantic reports the problem
    # Infinity must be typed as a word.
    if isinstance(value, float) and math.isinf(value) and any(map(str.isdigit, text)):
        msg = f"{text} is too large for a number."
        raise FieldError(msg)
    return value


def text_of(field: Field, value: Any) -> Raw:
    """Return the raw text of a value, also of one that the field does not accept."""
    from pydantic_core import to_jsonable_python

    if value is None and field.nullable:
        return None
    if field.kind == "choice":
        for option in field.options:
            if option.value == value and type(option.value) is type(value):
                return option.label
        return value.name if isinstance(value, Enum) else str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if field.kind == "file":
        return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)
    if field.kind == "number" or isinstance(value, str):
        return write_json(value) if field.kind == "json" else str(value)
    try:
        plain = to_jsonable_python(value)
    except ValueError:
        return str(value)
    return write_json(plain) if field.kind == "json" else str(plain)


def json_of(value: object) -> object:
    """Return a constant as a JSON value; a member of an `Enum` becomes its value."""
    return value.value if isinstance(value, Enum) else value


def holds(field: Field, value: Any) -> bool:
    """Whether a field can display a value without conversion; for a Python type, whether the value is an instance."""
    kind = field.kind
    if field.accepts is not None:
        return field.accepts(value)
    if (value is None and field.nullable) or kind == "json":
        return True
    if kind in ("choice", "const"):
        return any(repr(json_of(option.value)) == repr(value) for option in field.options)
    if kind == "number":
        return isinstance(value, int if field.makes is int else (int, float)) and not isinstance(value, bool)
    if field.is_leaf:
        return isinstance(value, str)
    parts = {part.key: part.field() for part in field.parts()}
    if kind == "union":
        return any(holds(each, value) for each in parts.values())
    if kind == "rows" or field.positional:
        return isinstance(value, list)
    if not isinstance(value, Mapping) or any(each.required and key not in value for key, each in parts.items()):
        return kind == "pairs" and isinstance(value, Mapping)
    return all(holds(parts[key], item) if key in parts else field.open_ended for key, item in value.items())


_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matching {}",
}


def help_text(schema: Mapping[str, Any]) -> str:
    """Return the description and the limits of a value, as a sentence or two; empty if there are none."""
    limits = ", ".join(text.format(schema[key]) for key, text in _LIMITS.items() if key in schema)
    described = schema.get("description")
    return _sentence(". ".join(filter(None, [described.rstrip(".") if isinstance(described, str) else "", limits])))


def time_help(kind: str, zone: str) -> str:
    """Return the accepted texts of a date or time, in words."""
    return _sentence(_TIMES[kind][1] + ("" if kind == "date" else _ZONES[zone]))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def title_of(name: str) -> str:
    """Return the name of a field as its label."""
    return _sentence(name.replace("_", " ").strip() or name)
