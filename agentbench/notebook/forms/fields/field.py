"""One field of a form: its description, and the conversion of typed text to a checked value and back.

Typed text stays text until pydantic accepts it, so nothing is rounded, clamped or guessed on the way.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from agentbench._secrets import is_secret_class
from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.fields.help import example_text, help_text
from agentbench.notebook.forms.text_values.json_text import JsonError, read_json
from agentbench.notebook.forms.text_values.special import bytes_of_text, text_of_bytes, time_text_of
from agentbench.notebook.history.questions import Option, options_of_type, unwrap_optional

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "NO_VALUE",
    "ROOT",
    "FieldError",
    "FieldKind",
    "FormField",
    "NoValue",
    "Raw",
    "adapter_of",
    "field_for",
    "json_field",
    "json_text",
    "schema_of",
]

# The path of a form that is one value.
ROOT = "value"

FieldKind = Literal["text", "number", "choice", "json", "date", "datetime", "time", "file"]

_LONG_TEXT = 120


class NoValue(Enum):
    """The type of `NO_VALUE`: no value at all, where `None` is a value of its own."""

    NO_VALUE = "NO_VALUE"


NO_VALUE: Literal[NoValue.NO_VALUE] = NoValue.NO_VALUE

Raw = str | None


class FieldError(ValueError):
    """Typed text is not a value of the field; the message is for the person who typed it."""


@dataclass(frozen=True)
class FormField:
    """One field.

    Attributes:
        path: Its name in `Form.raw`.
        label: Its label for people.
        kind: The way of typing.
        parse: Converts text to a value; raises `FieldError`.
        to_text: Converts a value to text that `parse` converts back.
        help: The accepted values, in words.
        options: The options, for `choice`.
        allow_other: Whether a text that is not an option is accepted too.
        nullable: Whether `None` is an answer; its raw is `None`, which differs from every typed text.
        required: Whether an answer is needed.
        multiline: Whether text of several lines is expected.
        max_length: Most characters, if the type has a limit.
        secret: Whether the typed text is hidden.
        whole: For numbers: no fraction.
        initial: The initial text; `NO_VALUE` for none.
        suggestion: A text to start from, which counts only once a person edits it.
        zone: For times: whether a zone is needed (`aware`), refused (`naive`) or free (`either`).
        to_input: Converts text to the input of a type around this field, if that is not the value: the type's own
            validators run on it.
        accepts: Whether a value is of the field's type, without any conversion.
    """

    path: str
    label: str
    kind: FieldKind
    parse: Callable[[str], object]
    to_text: Callable[[object], str]
    help: str = ""
    options: tuple[Option, ...] = ()
    allow_other: bool = False
    nullable: bool = False
    required: bool = True
    multiline: bool = False
    max_length: int | None = None
    secret: bool = False
    whole: bool = False
    initial: Raw | Literal[NoValue.NO_VALUE] = NO_VALUE
    suggestion: str = ""
    zone: str = ""
    to_input: Callable[[str], object] | None = None
    accepts: Callable[[object], bool] = lambda _: False

    def read(self, text: str | None) -> object:
        """Return the value of a raw text; `None` is the raw of "none".

        Raises:
            FieldError: The text is not a value.
        """
        if text is not None:
            return self.parse(text)
        if self.nullable or not self.required:
            return None
        msg = "None is not accepted here."
        raise FieldError(msg)

    def input(self, text: str | None) -> object:
        """Return the input of a raw text for the type around this field, which validates once more.

        Raises:
            FieldError: The text is not a value.
        """
        value = self.read(text)
        return value if text is None or self.to_input is None else self.to_input(text)

    def write(self, value: object) -> str | None:
        """Return the raw text of a value."""
        return None if value is None and self.nullable else self.to_text(value)

    def with_value(self, value: object) -> "FormField":
        """Return the field with a value as its initial text; secrets have to be typed again."""
        if self.secret:
            return self
        text = self.write(value)
        # A field of one line would drop its line ends.
        long = text is not None and self.kind == "text" and not {"\n", "\r"}.isdisjoint(text)
        return replace(self, initial=text, multiline=self.multiline or long)


def field_for(
    annotation: Any,
    *,
    path: str = ROOT,
    label: str = "Answer",
    options: Sequence[Option] = (),
    allow_other: bool = False,
    multiline: bool = False,
) -> FormField:
    """Make the field for a type.

    Args:
        annotation: The type. Text and types that are written as text, numbers, bool, `Literal`, `Enum`, dates, times
            and bytes have a field of their own, with or without `None`; every other type is typed as JSON.
        path: Name of the field.
        label: Its label for people.
        options: The options, instead of those of the type.
        allow_other: Whether a text that is not an option is accepted too.
        multiline: Whether text of several lines is expected.

    Raises:
        NotebookError: Pydantic cannot validate values of this type.
    """
    adapter = adapter_of(annotation)
    base, nullable = unwrap_optional(annotation)
    schema = schema_of(annotation, adapter)
    common: dict[str, Any] = {
        "path": path,
        "label": label,
        "nullable": nullable,
        "accepts": lambda value: _is_valid(adapter, value),
    }
    listed = tuple(options) or (_yes_no() if base is bool else options_of_type(annotation))
    if listed:
        return _choice_field(adapter, listed, allow_other, common)
    if _is_text(base):
        return _text_field(adapter, base, schema, multiline, common)
    if base in (int, float, Decimal):
        plain = _finite(_plain(base))
        parse = _number(adapter, plain, whole=base is int)
        return FormField(
            kind="number",
            parse=parse,
            to_text=str,
            help=help_text(schema),
            whole=base is int,
            to_input=plain,
            **common,
        )
    return _special_field(adapter, base, schema, common)


def _special_field(adapter: "TypeAdapter[Any]", base: Any, schema: dict[str, Any], common: dict[str, Any]) -> FormField:
    """Make the field of a date, a file, another type that is written as text, or of any other type as JSON."""
    timed = time_text_of(base)
    if timed is not None:
        plain = _plain(base)

        def parse(text: str) -> object:
            problem = timed.problem(text.strip())
            if problem:
                raise FieldError(problem)
            return _check(adapter, plain(text))

        about = ". ".join(filter(None, [help_text(schema), timed.help]))
        return FormField(
            kind=timed.kind, parse=parse, to_text=_iso, help=about, zone=timed.zone, to_input=plain, **common
        )
    if base is bytes:

        def decode(text: str) -> bytes:
            return bytes_of_text(text, FieldError)

        return FormField(
            kind="file",
            parse=lambda text: _check(adapter, decode(text)),
            to_text=lambda value: text_of_bytes(value) if isinstance(value, bytes) else "",
            help=help_text(schema) or "A file of at most 5 MB",
            to_input=decode,
            **common,
        )
    if schema.get("type") == "string":
        return FormField(
            kind="text",
            parse=lambda text: _check(adapter, text, adapter.validate_strings),
            to_text=lambda value: _plain_text(adapter, value),
            help=help_text(schema),
            **common,
        )
    return _json_field(adapter, schema, common)


def json_field(annotation: Any, *, path: str = ROOT, label: str = "Answer") -> FormField:
    """Make the field in which a value of any type is typed as JSON."""
    adapter = adapter_of(annotation)
    nullable = unwrap_optional(annotation)[1]
    common = {"path": path, "label": label, "nullable": nullable, "accepts": lambda value: _is_valid(adapter, value)}
    return _json_field(adapter, schema_of(annotation, adapter), common)


def _json_field(adapter: "TypeAdapter[Any]", schema: dict[str, Any], common: dict[str, Any]) -> FormField:
    return FormField(
        kind="json",
        parse=_json(adapter),
        to_text=lambda value: json_text(adapter, value),
        help="JSON, for example " + example_text(schema),
        multiline=True,
        **common,
    )


def _choice_field(
    adapter: "TypeAdapter[Any]", listed: tuple[Option, ...], allow_other: bool, common: dict[str, Any]
) -> FormField:
    parse, to_text = _choice(adapter, listed, allow_other)

    def to_input(text: str) -> object:
        return next((option.value for option in listed if option.label == text), text)

    return FormField(
        kind="choice",
        parse=parse,
        to_text=to_text,
        options=listed,
        allow_other=allow_other,
        to_input=to_input,
        **common,
    )


def _text_field(
    adapter: "TypeAdapter[Any]", base: Any, schema: dict[str, Any], multiline: bool, common: dict[str, Any]
) -> FormField:
    longest = schema.get("maxLength")

    def to_input(text: str) -> object:
        # A secret string of ours is a class that pydantic does not make from text.
        return base(text) if issubclass(base, str) else text

    return FormField(
        kind="text",
        parse=lambda text: _check(adapter, to_input(text)),
        to_text=str,
        help=help_text(schema),
        multiline=multiline or bool(schema.get("multiline")) or (longest or 0) > _LONG_TEXT,
        max_length=longest,
        secret=is_secret_class(base),
        to_input=to_input,
        **common,
    )


def json_text(adapter: "TypeAdapter[Any]", value: object) -> str:
    """Write a value as the JSON that the adapter reads again."""
    return adapter.dump_json(value, indent=2).decode()


def adapter_of(annotation: Any) -> "TypeAdapter[Any]":
    """Return pydantic's adapter of a type; values of classes that it does not know are checked by `isinstance`.

    Raises:
        NotebookError: Pydantic cannot validate values of this type.
    """
    from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    try:
        try:
            return TypeAdapter(annotation)
        except PydanticSchemaGenerationError:
            return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError as error:
        msg = f"No form can be made for {annotation!r}: {error.message}"
        raise NotebookError(msg, error) from error


def schema_of(annotation: Any, adapter: "TypeAdapter[Any]") -> dict[str, Any]:
    """Return the JSON Schema of a type, that of X for `X | None`; empty if there is none.

    Raises:
        NotebookError: The type refers to one that is not defined.
    """
    from pydantic import PydanticInvalidForJsonSchema, PydanticUserError

    try:
        schema = adapter.json_schema()
    except PydanticInvalidForJsonSchema:
        return {}
    except PydanticUserError as error:
        msg = f"{annotation!r} refers to a type that is not defined yet. Define it before you make the form."
        raise NotebookError(msg, error) from error
    # `X | None` keeps the limits of X inside anyOf.
    inner = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return {**schema, **inner[0]} if len(inner) == 1 else schema


def _is_text(base: Any) -> bool:
    return base is str or is_secret_class(base)


def _check(adapter: "TypeAdapter[Any]", value: Any, validate: Callable[[Any], object] | None = None) -> object:
    from pydantic import ValidationError

    try:
        return (validate or adapter.validate_python)(value)
    except ValidationError as error:
        raise FieldError(_error_text(error)) from None
    except Exception as error:
        msg = f"{type(error).__name__}: {error}"
        raise FieldError(msg) from error


def _is_valid(adapter: "TypeAdapter[Any]", value: object) -> bool:
    from pydantic import ValidationError

    try:
        adapter.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _plain(base: Any) -> Callable[[str], object]:
    """Return a conversion of text to the bare type, which validators around it expect."""
    adapter = adapter_of(base)
    return lambda text: _check(adapter, text.strip())


def _finite(plain: Callable[[str], object]) -> Callable[[str], object]:
    """Return a conversion that refuses digits that overflow to infinity; infinity is typed as a word."""

    def read(text: str) -> object:
        value = plain(text)
        if isinstance(value, float) and math.isinf(value) and any(map(str.isdigit, text)):
            msg = f"{text.strip()} is too large for a number."
            raise FieldError(msg)
        return value

    return read


def _iso(value: object) -> str:
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _plain_text(adapter: "TypeAdapter[Any]", value: object) -> str:
    if isinstance(value, str):
        return value
    written = adapter.dump_python(value, mode="json")
    return written if isinstance(written, str) else str(value)


def _error_text(error: "ValidationError") -> str:
    lines = []
    for each in error.errors(include_url=False, include_input=False):
        if each["type"] == "needs_python_object":
            return "Values of this type cannot be typed. Answer from code."
        where = ".".join(str(part) for part in each["loc"])
        lines.append(f"{where}: {each['msg']}" if where else each["msg"])
    return "; ".join(dict.fromkeys(lines))


def _number(adapter: "TypeAdapter[Any]", plain: Callable[[str], object], *, whole: bool) -> Callable[[str], object]:
    wanted = "a whole number, such as 12" if whole else "a number, such as 1.5"

    def parse(text: str) -> object:
        text = text.strip()
        if not text:
            msg = f"Type {wanted}."
            raise FieldError(msg)
        if "," in text:
            hint = "Leave out thousands separators." if whole else "Write the decimal sign as a point."
            msg = f"A comma is not allowed in numbers. {hint} Type {wanted}."
            raise FieldError(msg)
        return _check(adapter, plain(text))

    return parse


def _choice(
    adapter: "TypeAdapter[Any]", options: Sequence[Option], allow_other: bool
) -> tuple[Callable[[str], object], Callable[[object], str]]:
    def parse(text: str) -> object:
        for option in options:
            if option.label == text:
                return _check(adapter, option.value)
        if allow_other and text.strip():
            return _check(adapter, text)
        if not text:
            msg = "Choose one."
        else:
            listed = ", ".join(option.label for option in options[:10]) + (", …" if len(options) > 10 else "")
            msg = f"{text!r} is not among the options: {listed}."
        raise FieldError(msg)

    def to_text(value: object) -> str:
        for option in options:
            if option.value == value and type(option.value) is type(value):
                return option.label
        return value.name if isinstance(value, Enum) else str(value)

    return parse, to_text


def _json(adapter: "TypeAdapter[Any]") -> Callable[[str], object]:
    from pydantic import ValidationError

    def parse(text: str) -> object:
        if not text.strip():
            msg = "Type a value as JSON."
            raise FieldError(msg)
        try:
            read_json(text)
            return adapter.validate_json(text)
        except JsonError as error:
            raise FieldError(str(error)) from None
        except ValidationError as error:
            raise FieldError(_error_text(error)) from None

    return parse


def _yes_no() -> tuple[Option, ...]:
    return Option("Yes", True), Option("No", False)
