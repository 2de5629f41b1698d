"""What differs between two checkpoints as SVG: a table with the changed words marked."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agentbench.notebook.history.changes.lines import Piece, cells_of, counts, masked_path
from agentbench.notebook.look.svg import FONT_SIZE, SMALL, cut_to_width, number, picture, text, text_width
from agentbench.notebook.text.escape import esc

__all__ = ["diff_svg"]

_EDGE = 16.0
_LINE = 18.0
_PAD = 5.0
_MOST_ROWS = 60
_MOST_LINES = 6
_SIGNS = {"added": "+", "removed": "\N{MINUS SIGN}", "changed": "\N{NOT EQUAL TO}", "reordered": "\N{UP DOWN ARROW}"}
_PARTS = re.compile(r"\s+|\S{1,24}")

_RULES = (
    ".ab_rule{stroke:var(--rim)}.ab_plot .ab_del{fill:var(--gone);text-decoration:line-through}",
    ".ab_plot .ab_ins{fill:var(--new);text-decoration:underline}",
)


def diff_svg(diff: Any, *, title: str, description: str, width: float = 760.0) -> str:
    """Draw a diff.

    Args:
        diff: A `CheckpointDiff`.
        title: The heading.
        description: The diff in words, for screen readers.
        width: Width of the picture, in points.
    """
    parts = [text(_EDGE, 22, cut_to_width(title, width - 2 * _EDGE), classes="ab_strong")]
    parts.append(text(_EDGE, 44, counts(diff), classes="ab_soft"))
    changes = diff.changes[:_MOST_ROWS]
    y = 72.0
    if changes:
        paths = [esc(masked_path(change), into="line", limit=200) for change in changes]
        at = _places(paths, width)
        parts += _head(diff, y, at)
        y += 20
        for change, path in zip(changes, paths, strict=True):
            cells = [_wrap(side, at[place + 2] - at[place + 1] - 12) for place, side in enumerate(cells_of(change))]
            parts += _row(change.op, path, cells, y, at)
            y += max(1, *map(len, cells)) * _LINE + 2 * _PAD
    if len(diff) > _MOST_ROWS:
        parts.append(text(_EDGE, y + 12, f"… {len(diff) - _MOST_ROWS:,} more", classes="ab_soft"))
        y += 22
    return picture(parts, width=width, height=y + 8, title=title, description=description, rules=_RULES)


def _places(paths: Sequence[str], width: float) -> tuple[float, float, float, float]:
    """Return the left ends of the columns path, before and after, and the right end of the table."""
    path = _EDGE + 20
    before = path + min(max(text_width(each, FONT_SIZE) for each in paths) + 16, 0.32 * width)
    end = width - _EDGE
    return path, before, before + (end - before) / 2, end


def _head(diff: Any, y: float, at: Sequence[float]) -> Iterator[str]:
    yield text(at[0], y, "path", classes="ab_soft ab_small")
    for place, side, info in ((1, "before", diff.before), (2, "after", diff.after)):
        head = f"{side}: superstep {info.iteration}"
        yield text(at[place], y, cut_to_width(head, at[place + 1] - at[place] - 12, SMALL), classes="ab_soft ab_small")


def _row(
    op: str, path: str, cells: Sequence[Sequence[Sequence[Piece]]], y: float, at: Sequence[float]
) -> Iterator[str]:
    yield f'<path class="ab_rule" d="M{number(_EDGE)} {number(y - 6)}H{number(at[3])}"/>'
    middle = y + _PAD + 4
    yield f"<g><title>{esc(f'{op}: {path}', into='svg', limit=300)}</title>"
    yield text(_EDGE, middle, _SIGNS[op], classes="ab_strong")
    yield text(at[0], middle, cut_to_width(path, at[1] - at[0] - 12))
    for place, lines in enumerate(cells):
        for line, pieces in enumerate(lines):
            yield _spans(at[place + 1], middle + line * _LINE, pieces)
    yield "</g>"


def _spans(x: float, y: float, pieces: Sequence[Piece]) -> str:
    spans = "".join(
        esc(words, into="svg", limit=None)
        if kind == "equal"
        else f'<tspan class="ab_{kind}">{esc(words, into="svg", limit=None)}</tspan>'
        for kind, words in pieces
    )
    return f'<text x="{number(x)}" y="{number(y + 4.5)}" xml:space="preserve">{spans}</text>'


def _wrap(pieces: Sequence[Piece], room: float) -> list[list[Piece]]:
    """Return the pieces in lines that fit, at most six."""
    lines: list[list[Piece]] = [[]]
    used = 0.0
    for kind, words in pieces:
        for part in _PARTS.findall(words):
            word = " " if part.isspace() else part
            wide = text_width(esc(word, into="line"), FONT_SIZE)
            if used + wide > room and used:
                lines.append([])
                used = 0.0
            if used or word != " ":
                lines[-1].append(Piece(kind, word))
                used += wide
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], [*lines[_MOST_LINES - 1][:1], Piece("equal", " …")]]
    return lines
