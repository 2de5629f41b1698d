"""A conversation as plain text, in two columns: speaker and parts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from agentbench.notebook.cards.conversation.model import (
    ApprovalPart,
    MediaPart,
    NotePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Turn,
)
from agentbench.notebook.text.escape import esc

__all__ = ["speaker", "text_lines"]

_WIDTH = 100
_MOST_LINES = 24


def text_lines(turns: Sequence[Turn]) -> list[str]:
    """Return the conversation as lines, one turn after another."""
    names = [esc(speaker(turn), into="line", limit=24) for turn in turns]
    margin = max((len(name) for name in names), default=0) + 2
    lines: list[str] = []
    for name, turn in zip(names, turns, strict=True):
        body = [line for part in turn.parts for line in _part_lines(part, _WIDTH - margin)] or ["(nothing)"]
        lines += [f"{name if at == 0 else '':{margin}}{line}".rstrip() for at, line in enumerate(body)]
    return lines


def speaker(turn: Turn) -> str:
    """Return the author's name if there is one, else the role."""
    return turn.name or turn.role


def _part_lines(part: Part, width: int) -> Iterator[str]:
    if isinstance(part, TextPart):
        yield from _wrap(part.text, width)
    elif isinstance(part, ReasoningPart):
        yield from _wrap(f"(thinking) {part.text}", width)
    elif isinstance(part, ToolCallPart):
        outcome = "" if part.outcome is None else f" {'✗' if part.failed else '→'} {part.outcome}"
        yield from _wrap(f"{part.signature}{outcome}", width)
    elif isinstance(part, ApprovalPart):
        sign = {None: "?", True: "✓", False: "✗"}[part.answer]
        yield from _wrap(f"{sign} {part.text}", width)
    elif isinstance(part, MediaPart):
        yield from _wrap(f"[{part.label}]", width)
    elif isinstance(part, NotePart):
        yield from _wrap(f"{'✗ ' if part.failed else ''}{part.text}", width)


def _wrap(text: str, width: int) -> list[str]:
    lines = [
        piece
        for line in esc(text, into="text").split("\n")
        for piece in textwrap.wrap(line, max(width, 40), break_on_hyphens=False) or [""]
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    return lines
