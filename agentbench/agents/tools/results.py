"""What a function returned, as contents for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, final

from agentbench.messages.content import Content


@final
class SkipParsing:
    """The type of `SKIP_PARSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SKIP_PARSING"

    def __reduce__(self) -> str:
        return "SKIP_PARSING"  # copies and pickles are the one object


SKIP_PARSING: Final = SkipParsing()
"""As `result_parser` of a tool: hand on what the function returned, as it is."""


_encode = json.JSONEncoder(default=str).encode


def parse_result(result: object) -> list[Content]:
    """Turn what a function returned into contents.

    Text and contents stay what they are; of a list that holds contents, the other items become text. `None` is empty
    text. Pydantic models, objects with `to_dict()` and plain values become JSON, wherever they stand; an object that
    only has a `text` gives that.
    """
    if isinstance(result, Content):
        return [result]
    if isinstance(result, list) and any(isinstance(item, Content) for item in result):
        return [item if isinstance(item, Content) else Content.from_text(_as_text(item)) for item in result]
    return [Content.from_text(_as_text(result))]


def _as_text(value: object) -> str:
    if value is None:
        return ""
    plain = _plain(value)
    if isinstance(plain, str):
        return str.__str__(plain)  # of an enum, its value
    if type(plain) is int:
        return str(plain)  # the usual number, without the cost of an encoder
    try:
        return _encode(plain)
    except (TypeError, ValueError):  # keys that JSON does not know, or a list within itself
        return str(value)


def _plain(value: Any) -> Any:
    """Return a value with everything that can tell its own plain form in that form."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, type):
        return value
    for method in ("model_dump", "to_dict"):
        if callable(dump := getattr(value, method, None)):
            return dump()
    text = getattr(value, "text", None)
    return text if isinstance(text, str) else value
