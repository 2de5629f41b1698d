"""Conditions of edges, and nodes of state graphs."""

from __future__ import annotations

from typing import Any


def always(data: Any) -> bool:
    return True


def note(text: str) -> Any:
    """Return a node that adds a text to the notes of the state."""
    return lambda state: {"notes": [text]}
