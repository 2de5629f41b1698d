"""One field of a form: what it asks for, and how typed text becomes a checked value and a value text.

What a person types stays text until pydantic accepts it, so nothing is rounded, clamped or guessed on the way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from agentbench.exceptions import NotebookError
from agentbench.notebook.request_reading import Option, options_of_type, unwrapped

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = ["NO_VALUE", "ROOT", "FieldError", "FieldKind", "FormField", "NoValue", "Raw", "field_for", "json_text"]

# The path of a form that is one value.
ROOT = "value"

FieldKind = Literal["text", "number", "choice", "json"]

_LONG_TEXT = 120


class NoValue(Enum):
    """The one member says that nothing is there, where `None` is a value of its own."""

    NO_VALUE = "NO_VALUE"


NO_VALUE: Literal[NoValue.NO_VALUE] = NoValue.NO_VALUE

Raw = str | None


class FieldError(ValueError):
    """Typed text is not a value of the field; `str()` says why, for the person who typed it."""


@dataclass(frozen=True)
class FormField:
    """One field.

    Attributes:
        path: Its name in `Form.raw`.
        label: What the person reads.
        kind: How it is typed.
        parse: Text to value; raises `FieldError`.
        to_text: Value to the text that gives it again.
        help: What is accepted, in words.
        options: What to choose from, for `choice`.
        allow_other: Whether a text that is no option is taken too.
        nullable: Whether `None` is an answer; its raw is `None`, which no typed text means.
        required: Whether something must be given.
        multiline: Whether text of several lines is expected.
        max_length: Most characters, if the type says so.
        secret: Whether what is typed is hidden.
        whole: For numbers: no fraction.
        initial: The text that stands there first; `NO_VALUE` for none.
        suggestion: A text to start from, which counts only once somebody takes it up.
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

    def read(self, text: str | None) -> object:
        """Turn raw text into the value; `None` is the raw of "none".

        Raises:
            FieldError: If it is not one.
        """
        if text is not None:
            return self.parse(text)
        if self.nullable or not self.required:
            return None
        msg = "None is not accepted here."
        raise FieldError(msg)

    def write(self, value: object) -> str | None:
        """The raw text of a value."""
        return None if value is None and self.nullable else self.to_text(value)

    def with_value(self, value: object) -> "FormField":
        """The same field with a value standing in it; secrets have to be typed again."""
        if self.secret:
            return self
        text = self.write(value)
        long = text is not None and self.kind == "text" and "\n" in text
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
        annotation: Text, whole and decimal numbers, bool, `Literal` and `Enum` get a field of their own, with or
            without `None`; every other type is typed as JSON.
        path: Name of the field.
        label: What the person reads.
        options: What to choose from, instead of what the type lists.
        allow_other: Take another text than the options too.
        multiline: Expect several lines of text.

    Raises:
        NotebookError: If pydantic knows no way to check a value of this type.
    """
    adapter = _adapter(annotation)
    base, nullable = unwrapped(annotation)
    schema = _schema(annotation, adapter)
    common: dict[str, Any] = {"path": path, "label": label, "nullable": nullable}
    listed = tuple(options) or (_yes_no() if base is bool else options_of_type(annotation))
    if listed:
        parse, to_text = _choice(adapter, listed, allow_other)
        return FormField(kind="choice", parse=parse, to_text=to_text, options=listed, allow_other=allow_other, **common)
    if _is_text(base):
        longest = schema.get("maxLength")
        return FormField(
            kind="text",
            # A secret string of ours is a class that pydantic does not make from text.
            parse=lambda text: _checked(adapter, base(text) if issubclass(base, str) else text),
            to_text=str,
            help=_help(schema),
            multiline=multiline or bool(schema.get("multiline")) or (longest or 0) > _LONG_TEXT,
            max_length=longest,
            secret=_hides_itself(base),
            **common,
        )
    if base in (int, float, Decimal):
        parse = _number(adapter, whole=base is int)
        return FormField(kind="number", parse=parse, to_text=str, help=_help(schema), whole=base is int, **common)
    return FormField(
        kind="json",
        parse=_json(adapter),
        to_text=lambda value: json_text(adapter, value),
        help="JSON, for example " + _example(schema),
        multiline=True,
        **common,
    )


def json_text(adapter: "TypeAdapter[Any]", value: object) -> str:
    """Write a value as the JSON that the adapter reads again."""
    return adapter.dump_json(value, indent=2).decode()


def _adapter(annotation: Any) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter

    try:
        return TypeAdapter(annotation)
    except PydanticSchemaGenerationError:
        # Classes that pydantic does not know are at least checked by isinstance.
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))


def _schema(annotation: Any, adapter: "TypeAdapter[Any]") -> dict[str, Any]:
    from pydantic import PydanticInvalidForJsonSchema, PydanticUserError

    try:
        schema = adapter.json_schema()
    except PydanticInvalidForJsonSchema:
        return {}
    except PydanticUserError as error:
        msg = f"{annotation!r} names a type that is not defined where the form is made. Define it before."
        raise NotebookError(msg, error) from error
    # `X | None` keeps the limits of X inside anyOf.
    inner = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return {**schema, **inner[0]} if len(inner) == 1 else schema


def _is_text(base: Any) -> bool:
    return base is str or _hides_itself(base)


def _hides_itself(base: Any) -> bool:
    return isinstance(base, type) and callable(getattr(base, "get_secret_value", None))


def _checked(adapter: "TypeAdapter[Any]", value: object) -> object:
    from pydantic import ValidationError

    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise FieldError(_said(error)) from None


def _said(error: "ValidationError") -> str:
    lines = []
    for each in error.errors(include_url=False, include_input=False):
        if each["type"] == "needs_python_object":
            return "Values of this type cannot be typed. Answer from code."
        where = ".".join(str(part) for part in each["loc"])
        lines.append(f"{where}: {each['msg']}" if where else each["msg"])
    return "; ".join(dict.fromkeys(lines))


def _number(adapter: "TypeAdapter[Any]", *, whole: bool) -> Callable[[str], object]:
    wanted = "a whole number, such as 12" if whole else "a number, such as 1.5"

    def parse(text: str) -> object:
        text = text.strip()
        if not text:
            msg = f"Type {wanted}."
            raise FieldError(msg)
        if "," in text:
            hint = "Leave out thousands separators." if whole else "Write the decimal sign as a point."
            msg = f"A comma is not read in numbers. {hint} Type {wanted}."
            raise FieldError(msg)
        return _checked(adapter, text)

    return parse


def _choice(
    adapter: "TypeAdapter[Any]", options: Sequence[Option], allow_other: bool
) -> tuple[Callable[[str], object], Callable[[object], str]]:
    def parse(text: str) -> object:
        for option in options:
            if option.label == text:
                return _checked(adapter, option.value)
        if allow_other and text.strip():
            return _checked(adapter, text)
        if not text:
            msg = "Choose one."
        else:
            shown = ", ".join(option.label for option in options[:10]) + (", …" if len(options) > 10 else "")
            msg = f"{text!r} is not among the options: {shown}."
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
            return adapter.validate_json(text)
        except ValidationError as error:
            raise FieldError(_said(error)) from None

    return parse


def _yes_no() -> tuple[Option, ...]:
    return Option("Yes", True), Option("No", False)


_LIMITS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matching {}"),
)


def _help(schema: dict[str, Any]) -> str:
    limits = [text.format(schema[key]) for key, text in _LIMITS if key in schema]
    described = [schema["description"]] if isinstance(schema.get("description"), str) else []
    text = ". ".join([*described, *([", ".join(limits)] if limits else [])])
    return text[:1].upper() + text[1:]


_EXAMPLES = {
    "object": '{"key": "value"}',
    "array": '["a", "b"]',
    "string": '"text"',
    "integer": "1",
    "number": "1.5",
    "boolean": "true",
}


def _example(schema: dict[str, Any], depth: int = 0) -> str:
    """A short text of the shape that the schema wants."""
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        return f"[{_example(items, depth + 1)}]"
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or depth > 0:
        return _EXAMPLES.get(str(schema.get("type")), '"text", 1, true or {"key": "value"}' if depth == 0 else "…")
    inner = ", ".join(f'"{name}": {_example(each, depth + 1)}' for name, each in list(properties.items())[:6])
    return "{" + inner + "}"
