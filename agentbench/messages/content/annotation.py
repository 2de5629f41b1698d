"""Where a piece of text comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class TextSpanRegion(TypedDict, total=False):
    """A part of a text.

    Units: indices count characters; the end is not included.
    """

    type: Literal["text_span"]
    start_index: int
    end_index: int


class Annotation(TypedDict, total=False):
    """A source that a text cites, and the places where it does."""

    type: Literal["citation"]
    title: str
    url: str
    file_id: str
    tool_name: str
    snippet: str
    annotated_regions: Sequence[TextSpanRegion]
    additional_properties: dict[str, Any]
    raw_representation: Any
