"""The result of a function as contents for a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from agentbench.messages.content.addition import mend_text
from agentbench.messages.content.content import Content


@final
class SkipParsing:
    """The type of `SKIP_PARSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SKIP_PARSING"

    def __reduce__(self) -> str:
        return "SKIP_PARSING"  # copies and pickles are the one object


SKIP_PARSING: Final = SkipParsing()
"""The `result_parser` of a tool that leaves the function's result as it is."""


def parse_result(result: object) -> list[Content]:
    """Return a function's result as contents: text and contents as they are, everything else as JSON or its `text`."""
    if isinstance(result, Content):
        return [result]
    if isinstance(result, list) and any(isinstance(item, Content) for item in result):
        return [item if isinstance(item, Content) else Content.from_text(_as_text(item)) for item in result]
    return [Content.from_text(_as_text(result))]


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = str.__str__(value)  # of an enum, its value
        return text if text.isascii() else mend_text(text)
    if type(value) is int:
        return str(value)  # the usual number, without the cost of an encoder
    own_text = None if _dump_of(value) else _text_of(value)
    if own_text is not None:
        return own_text
    try:
        return _encode(value)
    except (TypeError, ValueError):  # keys that JSON does not know, or a list within itself
        return str(value)


def _plain(value: Any) -> Any:
    """Return what JSON does not know in its own plain form, or as text."""
    dump = _dump_of(value)
    if dump is not None:
        return dump()
    if isinstance(value, Mapping):
        return dict(value)
    text = _text_of(value)
    return str(value) if text is None else text


def _dump_of(value: Any) -> Callable[[], Any] | None:
    """Return the method that gives the plain form of an instance, if it has one."""
    if isinstance(value, type):
        return None
    dump = getattr(value, "model_dump", None) or getattr(value, "to_dict", None)
    return dump if callable(dump) else None


def _text_of(value: Any) -> str | None:
    text = None if isinstance(value, type) else getattr(value, "text", None)
    return text if isinstance(text, str) else None


_encode = json.JSONEncoder(default=_plain).encode
