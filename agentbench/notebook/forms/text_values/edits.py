"""Pure: values as text that a person may edit, and back."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from agentbench.notebook.text.redact import mask_secrets

__all__ = ["EditText", "text_of", "value_of"]

LONGEST = 100_000
_CANNOT_BE_TYPED = "This {} has no JSON text that keeps its types. Open it, or edit it by code: edit(path, value)."


@dataclasses.dataclass(frozen=True, slots=True)
class EditText:
    """A value as the text of a field.

    Attributes:
        text: The text.
        help: The format that is expected.
    """

    text: str
    help: str


def text_of(value: object) -> EditText:
    """Return a value as text: texts unchanged, everything else as JSON.

    Raises:
        ValueError: It cannot be edited as text without losing something; the text says what to do.
    """
    if isinstance(value, str):
        return EditText(_short_enough(value), "text")
    if mask_secrets(value) is not value:
        msg = "It contains a secret, which is hidden. Open it and edit the values beside the secret."
        raise ValueError(msg)
    if _is_record(value):
        return EditText(_short_enough(_record_text(value)), f"JSON of a {type(value).__name__}")
    plain = list(value) if isinstance(value, (tuple, set, frozenset)) else value
    if not _is_json(plain):
        msg = _CANNOT_BE_TYPED.format(type(value).__name__)
        raise ValueError(msg)
    return EditText(_short_enough(json.dumps(plain, ensure_ascii=False)), _HELP.get(type(value), "JSON"))


def value_of(text: str, before: object) -> Any:
    """Return typed text as a value that replaces another one.

    Args:
        text: The typed text.
        before: The value to replace; a text is replaced by a text.

    Raises:
        ValueError: The text is not JSON; the message says where.
    """
    if isinstance(before, str):
        return text
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        known = _EXPECTED.get(type(before))
        msg = f"Expected {known}." if known else f"Not JSON ({error.msg}, {where}). Expected such as {_SUCH_AS}."
        raise ValueError(msg) from None


_SUCH_AS = '{"a": 1}, [1, 2], "text", 0.5, true or null'
_EXPECTED = {int: "a whole number, such as 3", float: "a number, such as 0.5", bool: "true or false"}
_HELP = {int: "a whole number", float: "a number", bool: "true or false", type(None): "JSON; null for nothing"}


def _refuse_constant(name: str) -> Any:
    msg = f"{name} is not JSON. Expected a finite number."
    raise ValueError(msg)


def _short_enough(text: str) -> str:
    if len(text) > LONGEST:
        msg = f"It is {len(text):,} characters long. Edit it by code: edit(path, value)."
        raise ValueError(msg)
    return text


def _is_record(value: object) -> bool:
    """Whether a class declares its fields, so that JSON of it can be read back."""
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return is_dataclass or hasattr(type(value), "model_fields")


def _record_text(value: object) -> str:
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(value).decode("utf-8")
    except PydanticSerializationError as error:
        msg = _CANNOT_BE_TYPED.format(type(value).__name__)
        raise ValueError(msg) from error


def _is_json(value: object) -> bool:
    """Whether JSON preserves a value, types included."""
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _is_json(item) for key, item in value.items())  # type: ignore[attr-defined]
    if kind is list:
        return all(map(_is_json, value))  # type: ignore[call-overload]
    return value is None or kind in (str, int, bool) or (kind is float and math.isfinite(value))  # type: ignore[arg-type]
