"""JSON that a person typed: nothing in it is dropped or changed without a word."""

import json
import math
from typing import Any, NoReturn

__all__ = ["JsonError", "WrittenNumber", "read_json"]


class JsonError(ValueError):
    """A text is no JSON, or JSON that there is no place for; `str()` says which."""


class WrittenNumber(float):
    """A number that remembers how it was written: digits that a float drops count in a decimal."""

    text: str

    def __new__(cls, text: str) -> "WrittenNumber":
        """Read a number; raises `JsonError` if no float is as large."""
        made = super().__new__(cls, text)
        if math.isinf(made):
            msg = f"{text} is too large for a number."
            raise JsonError(msg)
        made.text = text
        return made


def read_json(text: str) -> Any:
    """Parse a text.

    Raises:
        JsonError: If it is no JSON, names something twice, or holds a number that no float can be.
    """
    try:
        return json.loads(text, parse_float=WrittenNumber, parse_constant=_no_number, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        msg = f"This is no JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        raise JsonError(msg) from None
    except RecursionError:
        msg = "This JSON is too deep."
        raise JsonError(msg) from None


def _no_number(name: str) -> NoReturn:
    msg = f"{name} is no JSON number."
    raise JsonError(msg)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        msg = f"{twice!r} is there twice in one object."
        raise JsonError(msg)
    return read
