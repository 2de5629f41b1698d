"""Converts any storable value to one line of JSON, and back."""

from __future__ import annotations

from typing import Any

from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.reader import JsonReader
from agentbench.serialization.search import explain_unstorable
from agentbench.serialization.writer import JsonWriter


def to_json(value: Any) -> str:
    """Return a value as tagged JSON; equal values of equal types give the same text in every process."""
    try:
        return JsonWriter().write(value)
    except (UnstorableValueError, RecursionError) as error:
        raise explain_unstorable(value) from error


def from_json(text: str) -> Any:
    """Return the value that `to_json` wrote. Nothing named in the text is imported or called."""
    return JsonReader().read(text)
