"""Converts values to typed text and back: JSON, files, and edited state values.

Nothing in a typed text is dropped or changed silently.
"""

import base64
import binascii
import dataclasses
import json
import math
from typing import Any, NamedTuple, NoReturn

from agentbench._secrets import mask_secrets
from agentbench.messages.message import Message

# Most servers limit a message from a page to ten megabytes.
FILE_LIMIT = 5 * 1024 * 1024
# The longest text of a value that a page edits.
LONGEST = 100_000


class FieldError(ValueError):
    """Typed text is not a value of the field; the message is for the person who typed it."""


class JsonError(FieldError):
    """A text is not JSON, or the JSON does not match the fields of the form."""


class WrittenNumber(float):
    """A number with its original text, because a decimal needs digits that a float drops."""

    text: str

    def __new__(cls, text: str) -> "WrittenNumber":
        """Read a number; raises `JsonError` if it is too large for a float."""
        made = super().__new__(cls, text)
        made.text = text
        if math.isinf(made):
            msg = f"{text} is too large for a number."
            raise JsonError(msg)
        return made

    def __repr__(self) -> str:
        return self.text


def read_json(text: str, number: type[float] = WrittenNumber) -> Any:
    """Parse a text; `number` is the type of numbers with a fraction.

    Raises `JsonError` if it is not JSON, repeats a name, or contains a number that is too large for a float.
    """
    try:
        return json.loads(text, parse_float=number, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        msg = f"Not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        raise JsonError(msg) from None
    except RecursionError:
        msg = "This JSON is nested too deeply."
        raise JsonError(msg) from None


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not a JSON number."
    raise JsonError(msg)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in pairs:
        if name in read:
            msg = f"{name!r} occurs twice in one object."
            raise JsonError(msg)
        read[name] = value
    return read


def write_json(value: Any) -> str:
    """Return a JSON value as text."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def bytes_of_text(text: str) -> bytes:
    """Return the content of a file from its base64 text; raises `FieldError` if it is not base64, or too large."""
    try:
        content = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        msg = "The file content is invalid. Expected base64 text."
        raise FieldError(msg) from None
    if len(content) > FILE_LIMIT:
        msg = f"The file has {len(content):,} bytes; at most {FILE_LIMIT:,} are accepted."
        raise FieldError(msg)
    return content


_EXPECTED = {int: "a whole number, such as 3", float: "a number, such as 0.5", bool: "true or false"}
_HELP = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "JSON; null for None",
}


class EditText(NamedTuple):
    """A value as the text of a field, and the format that is expected."""

    text: str
    help: str


def text_of(value: object) -> EditText:
    """Return a value of a state as text: texts unchanged, everything else as JSON.

    Raises `ValueError` if the text would lose information; the message says what to do.
    """
    kind = type(value).__name__
    if mask_secrets(value) is not value and not isinstance(value, str):
        msg = "It contains a hidden secret. Open it and edit the values next to the secret."
        raise ValueError(msg)
    text = value if isinstance(value, str) else _json_text(value)
    if text is None:
        msg = f"JSON cannot represent the types of this {kind}. Open it, or edit it by code: edit(path, value)."
        raise ValueError(msg)
    if len(text) > LONGEST:
        msg = f"It is {len(text):,} characters long. Edit it by code: edit(path, value)."
        raise ValueError(msg)
    return EditText(text, _HELP.get(type(value), f"JSON of a {kind}" if _has_fields(value) else "JSON"))


def value_of(text: str, before: object) -> Any:
    """Return typed text as a value that replaces `before`; a text is replaced by a text. Raises `JsonError`."""
    if isinstance(before, str):
        return text
    try:
        return read_json(text, float)
    except JsonError as error:
        expected = _EXPECTED.get(type(before))
        msg = f"Expected {expected}." if expected and "JSON number" not in str(error) else str(error)
        raise JsonError(msg) from None


def _has_fields(value: object) -> bool:
    """Whether a class declares its fields, so that its JSON can be read back."""
    return hasattr(type(value), "model_fields") or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _json_text(value: object) -> str | None:
    if _has_fields(value):
        from pydantic_core import PydanticSerializationError, to_json

        try:
            return to_json(value).decode("utf-8")
        except PydanticSerializationError:
            return None
    if isinstance(value, Message):  # pydantic reads it back
        return json.dumps(value.to_dict(), ensure_ascii=False)
    plain = list(value) if isinstance(value, (tuple, set, frozenset)) else value
    return json.dumps(plain, ensure_ascii=False) if _is_json(plain) else None


def _is_json(value: object) -> bool:
    """Whether JSON preserves a value, types included."""
    if type(value) is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())
    if type(value) is list:
        return all(map(_is_json, value))
    return value is None or type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))
