"""Convert the result of a function to contents for a model."""

from __future__ import annotations

from typing import Final, final

from agentbench._secrets import MASK, is_secret
from agentbench.messages.content.addition import mend_text
from agentbench.messages.content.content import Content
from agentbench.serialization.plain import text_of, to_plain, write_plain


@final
class SkipParsing:
    """The type of `SKIP_PARSING`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SKIP_PARSING"

    def __reduce__(self) -> str:
        return "SKIP_PARSING"  # copying and unpickling return the singleton


SKIP_PARSING: Final = SkipParsing()
"""The `result_parser` of a tool that keeps the function's result unchanged."""


def parse_result(result: object) -> list[Content]:
    """Convert a function's result to contents: text and contents unchanged, other values as JSON or their `text`."""
    if isinstance(result, Content):
        return [result]
    if isinstance(result, list) and any(isinstance(item, Content) for item in result):
        return [item if isinstance(item, Content) else Content.from_text(_as_text(item)) for item in result]
    return [Content.from_text(_as_text(result))]


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if type(value) is int:
        return str(value)  # plain numbers, without the cost of an encoder
    if is_secret(value):
        return MASK
    if isinstance(value, str):
        return mend_text(str.__str__(value))  # for an enum, its value
    own_text = None if hasattr(value, "model_dump") else _own_text(value)
    return mend_text(write_plain(to_plain(value, other=_text)) if own_text is None else own_text)


def _text(value: object) -> str:
    own_text = _own_text(value)
    return text_of(value) if own_text is None else own_text


def _own_text(value: object) -> str | None:
    text = None if isinstance(value, type) else getattr(value, "text", None)
    return text if isinstance(text, str) else None
