"""A conversation as plain text, in two columns: speaker and parts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from agentbench.notebook.cards.conversation.model import Turn
from agentbench.notebook.text.escape import esc

__all__ = ["text_lines"]

_WIDTH = 100
_MOST_LINES = 24


def text_lines(turns: Sequence[Turn]) -> list[str]:
    """Return the conversation as lines, one turn after another."""
    names = [esc(turn.name or turn.role, into="line", limit=24) for turn in turns]
    margin = max((len(name) for name in names), default=0) + 2
    lines: list[str] = []
    for name, turn in zip(names, turns, strict=True):
        parts = (
            (part.text, part.sign, part.outcome) if part.kind == "call" else (part.sign, part.text)
            for part in turn.parts
        )
        texts = (" ".join(filter(None, words)) for words in parts)
        body = [line for text in texts for line in _wrap(text, _WIDTH - margin)] or ["(nothing)"]
        lines += [f"{name if at == 0 else '':{margin}}{line}".rstrip() for at, line in enumerate(body)]
    return lines


def _wrap(text: str, width: int) -> list[str]:
    lines = [
        piece
        for line in esc(text, into="text").split("\n")
        for piece in textwrap.wrap(line, max(width, 40), break_on_hyphens=False) or [""]
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    return lines
