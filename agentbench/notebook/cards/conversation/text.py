"""A conversation as plain text, in two columns: speaker and parts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from agentbench.notebook.cards.conversation.model import ApprovalPart, CallPart, Part, TextPart, Turn
from agentbench.notebook.text.escape import esc

__all__ = ["SIGNS", "text_lines"]

SIGNS = {None: "?", True: "✓", False: "✗"}
_WIDTH = 100
_MOST_LINES = 24


def text_lines(turns: Sequence[Turn]) -> list[str]:
    """Return the conversation as lines, one turn after another."""
    names = [esc(turn.name or turn.role, into="line", limit=24) for turn in turns]
    margin = max((len(name) for name in names), default=0) + 2
    lines: list[str] = []
    for name, turn in zip(names, turns, strict=True):
        body = [line for part in turn.parts for line in _wrap(_part_text(part), _WIDTH - margin)] or ["(nothing)"]
        lines += [f"{name if at == 0 else '':{margin}}{line}".rstrip() for at, line in enumerate(body)]
    return lines


def _part_text(part: Part) -> str:
    if isinstance(part, TextPart):
        return f"(thinking) {part.text}" if part.is_reasoning else part.text
    if isinstance(part, CallPart):
        return (
            part.signature if part.outcome is None else f"{part.signature} {'✗' if part.failed else '→'} {part.outcome}"
        )
    if isinstance(part, ApprovalPart):
        return f"{SIGNS[part.approved]} {part.text}"
    return f"✗ {part.text}" if part.failed else part.text


def _wrap(text: str, width: int) -> list[str]:
    lines = [
        piece
        for line in esc(text, into="text").split("\n")
        for piece in textwrap.wrap(line, max(width, 40), break_on_hyphens=False) or [""]
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    return lines
