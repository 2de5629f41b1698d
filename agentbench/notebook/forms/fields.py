"""A form's fields as a tree, and the conversion of typed text to a checked value and back.

Typed text stays text until pydantic accepts it, so nothing is rounded, clamped or guessed. Fields are immutable; what a
person typed is in `values`. Inner fields are made when they are first needed, so types may contain themselves.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentbench._secrets import is_secret_class
from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.text_values import FieldError, TimeText, bytes_of_text, read_json, time_text_of
from agentbench.notebook.history.questions import Option, options_of_type, unwrap_optional

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "BOXES",
    "NO_NONE",
    "NO_VALUE",
    "ROOT",
    "Checker",
    "Field",
    "NoValue",
    "Part",
    "Raw",
    "field_for",
    "help_text",
    "json_field",
    "json_of",
    "title_of",
]

# The path of a form that is one value.
ROOT = "value"
NO_NONE = "None is not accepted here."

Kind = Literal[
    "text", "number", "choice", "json", "date", "datetime", "time", "file", "const",
    "group", "rows", "pairs", "pair", "union",
]  # fmt: skip
BOXES = frozenset(["group", "rows", "pairs", "pair", "union"])

_LONG_TEXT = 120


class NoValue(Enum):
    """The type of `NO_VALUE`: no value at all, where `None` is a value of its own."""

    NO_VALUE = "NO_VALUE"


NO_VALUE: Literal[NoValue.NO_VALUE] = NoValue.NO_VALUE

Raw = str | None


class Part(NamedTuple):
    """A field inside another: its name, its name in the input of the type (such as an alias), and what makes it."""

    name: str
    key: str
    field: "Callable[[], Field]"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field, or several in a box.

    Attributes:
        kind: How it is typed: one text, a fixed value (`const`), or a box with fields inside.
        label: Its label for people.
        help: The accepted values, in words.
        required: Whether an answer is needed.
        nullable: Whether `None` is an answer; its raw is `None`, which differs from every typed text.
        omits: Whether "not set" is an answer, which differs from every value.
        default: The default of the type; `NO_VALUE` for none, or for one that only the type can make.
        accepts: Whether a value is of the field's type, without any conversion.
        check: Makes the value of a box from the values inside; without one they are the value.
        parse: Converts text to a value; raises `FieldError`.
        plain: Converts text to the input of a type around this field, whose validators run on it.
        to_text: Converts a value to text that `parse` converts back.
        options: The options of a choice, the only one of a `const`.
        allow_other: Whether a text that is not an option is accepted too.
        multiline: Whether text of several lines is expected.
        max_length: Most characters, if the type has a limit.
        secret: Whether the typed text is hidden.
        whole: For numbers: no fraction.
        suggestion: A text to start from, which counts only once a person edits it.
        zone: For times: whether a zone is needed (`aware`), refused (`naive`) or free (`either`).
        parts: Makes the fields of a group or pair, or the members of a union.
        item: Makes the field of a row.
        makes: The type of all rows, or of the parts of a group, together.
        least: Fewest rows.
        most: Most rows, `None` without a limit.
        unique: Whether all rows must differ.
        of: The type of a group, to notice one inside itself.
        open_ended: Whether a group may have entries without a field, which stay.
    """

    kind: Kind
    label: str = ""
    help: str = ""
    required: bool = True
    nullable: bool = False
    omits: bool = False
    default: object = NO_VALUE
    accepts: Callable[[object], bool] = lambda _: False
    check: Callable[[object], object] | None = None
    parse: Callable[[str], object] = str
    plain: Callable[[str], object] | None = None
    to_text: Callable[[object], str] = str
    options: tuple[Option, ...] = ()
    allow_other: bool = False
    multiline: bool = False
    max_length: int | None = None
    secret: bool = False
    whole: bool = False
    suggestion: str = ""
    zone: str = ""
    parts: Callable[[], Sequence[Part]] = tuple
    item: "Callable[[], Field] | None" = None
    makes: type = dict
    least: int = 0
    most: int | None = None
    unique: bool = False
    of: object = None
    open_ended: bool = False

    @property
    def is_leaf(self) -> bool:
        """Whether it is typed as one text."""
        return self.kind not in BOXES and self.kind != "const"

    @property
    def labels(self) -> list[str]:
        """The names of the parts, such as those of a union's members."""
        return [part.name for part in self.parts()]

    def itself(self) -> "Field":
        """Return the field: what a `Part` calls that needs no delay."""
        return self

    def read(self, text: Raw, *, whole: bool = True) -> object:
        """Return the value of a raw text, without `whole` the input of the type around it; raises `FieldError`."""
        if text is None:
            if self.nullable or not self.required:
                return None
            raise FieldError(NO_NONE)
        value = self.parse(text)
        return value if whole or self.plain is None else self.plain(text)

    def write(self, value: object) -> Raw:
        """Return the raw text of a value, also of one that the field does not accept."""
        if value is None and self.nullable:
            return None
        try:
            return self.to_text(value)
        except (ValueError, TypeError, AttributeError):
            return str(value)


class Checker:
    """Checks values of a type; pydantic's adapter is made when it is needed.

    Values of classes that pydantic does not know are checked by `isinstance`.
    """

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    @cached_property
    def adapter(self) -> "TypeAdapter[Any]":
        """Pydantic's adapter; raises `NotebookError` for a type that pydantic cannot validate."""
        from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

        try:
            try:
                return TypeAdapter(self.annotation)
            except PydanticSchemaGenerationError:
                return TypeAdapter(self.annotation, config=ConfigDict(arbitrary_types_allowed=True))
        except PydanticUserError as error:
            msg = f"No form can be made for {self.annotation!r}: {error.message}"
            raise NotebookError(msg, error) from error

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema, of `X | None` that of X; empty if there is none.

        Raises:
            NotebookError: The type refers to one that is not defined.
        """
        from pydantic import PydanticInvalidForJsonSchema, PydanticUserError

        try:
            schema = self.adapter.json_schema()
        except PydanticInvalidForJsonSchema:
            return {}
        except PydanticUserError as error:
            msg = f"{self.annotation!r} refers to a type that is not defined yet. Define it before you make the form."
            raise NotebookError(msg, error) from error
        # `X | None` keeps the limits of X inside anyOf.
        inner = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        return {**schema, **inner[0]} if len(inner) == 1 else schema

    def make(self, value: object) -> object:
        """Return the value as the type makes it; raises pydantic's `ValidationError`."""
        # The parts have the exact types already; a strict model would require instances where a form has fields.
        return self.adapter.validate_python(value, strict=False)

    def accepts(self, value: object) -> bool:
        """Whether a value is of the type, without any conversion."""
        from pydantic import ValidationError

        try:
            self.adapter.validate_python(value, strict=True)
        except ValidationError:
            return False
        return True

    def convert(self, value: Any, by: Callable[[Any], object] | None = None) -> object:
        """Return typed input as a value; raises `FieldError` with pydantic's words."""
        from pydantic import ValidationError

        try:
            return (by or self.adapter.validate_python)(value)
        except ValidationError as error:
            raise FieldError(_error_text(error)) from None
        except Exception as error:
            msg = f"{type(error).__name__}: {error}"
            raise FieldError(msg) from error


def _error_text(error: "ValidationError") -> str:
    lines = []
    for each in error.errors(include_url=False, include_input=False):
        if each["type"] == "needs_python_object":
            return "Values of this type cannot be typed. Answer from code."
        where = ".".join(str(part) for part in each["loc"])
        lines.append(f"{where}: {each['msg']}" if where else each["msg"])
    return "; ".join(dict.fromkeys(lines))


# ---- fields of one text ---------------------------------------------------------------------------------------------


def field_for(
    annotation: Any,
    *,
    label: str = "Answer",
    options: Sequence[Option] = (),
    allow_other: bool = False,
    multiline: bool = False,
) -> Field:
    """Make the field in which a value of a type is typed as one text.

    Text and types that are written as text, numbers, bool, `Literal`, `Enum`, dates, times and bytes have a field of
    their own, with or without `None`; every other type is typed as JSON. `options` replace those of the type.

    Raises:
        NotebookError: Pydantic cannot validate values of this type.
    """
    checker = Checker(annotation)
    base, nullable = unwrap_optional(annotation)
    schema = checker.schema
    common: dict[str, Any] = {
        "label": label, "nullable": nullable, "accepts": checker.accepts, "help": help_text(schema)
    }  # fmt: skip
    listed = tuple(options) or (_YES_NO if base is bool else options_of_type(annotation))
    if listed:
        return _choice(checker, listed, allow_other, common)
    if base is str or is_secret_class(base):
        return _text(checker, base, multiline, common)
    if base in (int, float, Decimal):
        return _checked_field(checker, _number(base), kind="number", whole=base is int, **common)
    if timed := time_text_of(base):
        return _time(checker, base, timed, common)
    if base is bytes:
        common["help"] = common["help"] or "A file of at most 5 MB"
        return _checked_field(checker, bytes_of_text, kind="file", to_text=_text_of_bytes, **common)
    if schema.get("type") == "string":
        by = checker.adapter.validate_strings
        return Field(
            kind="text",
            parse=lambda text: checker.convert(text, by),
            to_text=lambda value: _plain_text(checker, value),
            **common,
        )
    return json_field(annotation, label=label)


def json_field(annotation: Any, *, label: str = "Answer") -> Field:
    """Make the field in which a value of any type is typed as JSON."""
    checker = Checker(annotation)

    def parse(text: str) -> object:
        if not text.strip():
            msg = "Type a value as JSON."
            raise FieldError(msg)
        read_json(text)
        return checker.convert(text, checker.adapter.validate_json)

    return Field(
        kind="json",
        label=label,
        nullable=unwrap_optional(annotation)[1],
        accepts=checker.accepts,
        parse=parse,
        to_text=lambda value: checker.adapter.dump_json(value, indent=2).decode(),
        help="JSON, for example " + _example_text(checker.schema),
        multiline=True,
    )


def _checked_field(checker: Checker, plain: Callable[[str], object], **rest: Any) -> Field:
    return Field(plain=plain, parse=lambda text: checker.convert(plain(text)), **rest)


_YES_NO = Option("Yes", True), Option("No", False)


def _choice(checker: Checker, options: tuple[Option, ...], allow_other: bool, common: dict[str, Any]) -> Field:
    def plain(text: str) -> object:
        for option in options:
            if option.label == text:
                return option.value
        if allow_other and text.strip():
            return text
        listed = ", ".join(option.label for option in options[:10]) + (", …" if len(options) > 10 else "")
        msg = f"{text!r} is not among the options: {listed}." if text else "Choose one."
        raise FieldError(msg)

    def to_text(value: object) -> str:
        for option in options:
            if option.value == value and type(option.value) is type(value):
                return option.label
        return value.name if isinstance(value, Enum) else str(value)

    common["help"] = ""
    return _checked_field(
        checker, plain, kind="choice", to_text=to_text, options=options, allow_other=allow_other, **common
    )  # fmt: skip


def _text(checker: Checker, base: Any, multiline: bool, common: dict[str, Any]) -> Field:
    longest = checker.schema.get("maxLength")
    return _checked_field(
        checker,
        base if issubclass(base, str) else str,  # a secret string of ours is a class that pydantic does not make
        kind="text",
        multiline=multiline or bool(checker.schema.get("multiline")) or (longest or 0) > _LONG_TEXT,
        max_length=longest,
        secret=is_secret_class(base),
        **common,
    )


def _number(base: Any) -> Callable[[str], object]:
    """Return a conversion of text to the bare number type, which validators around it expect."""
    whole = base is int
    wanted = "a whole number, such as 12" if whole else "a number, such as 1.5"
    checker = Checker(base)

    def plain(text: str) -> object:
        text = text.strip()
        if not text:
            msg = f"Type {wanted}."
            raise FieldError(msg)
        if "," in text:
            hint = "Leave out thousands separators." if whole else "Write the decimal sign as a point."
            msg = f"A comma is not allowed in numbers. {hint} Type {wanted}."
            raise FieldError(msg)
        value = checker.convert(text)
        # Infinity is typed as a word.
        if isinstance(value, float) and math.isinf(value) and any(map(str.isdigit, text)):
            msg = f"{text} is too large for a number."
            raise FieldError(msg)
        return value

    return plain


def _time(checker: Checker, base: Any, timed: TimeText, common: dict[str, Any]) -> Field:
    bare = Checker(base)

    def plain(text: str) -> object:
        timed.require(text.strip())
        return bare.convert(text.strip())

    common["help"] = ". ".join(filter(None, [common["help"], timed.help]))
    return _checked_field(checker, plain, kind=timed.kind, to_text=_iso, zone=timed.zone, **common)


def _iso(value: object) -> str:
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _text_of_bytes(value: object) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else ""


def _plain_text(checker: Checker, value: object) -> str:
    written = value if isinstance(value, str) else checker.adapter.dump_python(value, mode="json")
    return written if isinstance(written, str) else str(value)


# ---- words ----------------------------------------------------------------------------------------------------------

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
_EXAMPLES = {
    "object": '{"key": "value"}',
    "array": '["a", "b"]',
    "string": '"text"',
    "integer": "1",
    "number": "1.5",
    "boolean": "true",
}


def help_text(schema: Mapping[str, Any]) -> str:
    """Return the description and the limits of a value, as a sentence or two; empty if there are none."""
    limits = ", ".join(text.format(schema[key]) for key, text in _LIMITS.items() if key in schema)
    described = schema.get("description")
    text = ". ".join(filter(None, [described.rstrip(".") if isinstance(described, str) else "", limits]))
    return text[:1].upper() + text[1:]


def _example_text(schema: Mapping[str, Any], depth: int = 0) -> str:
    items, properties = schema.get("items"), schema.get("properties")
    if schema.get("type") == "array" and isinstance(items, dict):
        return f"[{_example_text(items, depth + 1)}]"
    if not isinstance(properties, dict) or not properties or depth > 0:
        return _EXAMPLES.get(str(schema.get("type")), '"text", 1, true or {"key": "value"}' if depth == 0 else "…")
    inner = ", ".join(f"{json.dumps(name)}: {_example_text(each, 1)}" for name, each in list(properties.items())[:6])
    return "{" + inner + "}"


def title_of(name: str) -> str:
    """Return the name of a field as its label."""
    text = name.replace("_", " ").strip() or name
    return text[:1].upper() + text[1:]


def json_of(value: object) -> object:
    """Return a constant as a JSON value: of a member of an `Enum` its value."""
    return value.value if isinstance(value, Enum) else value
