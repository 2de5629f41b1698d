"""The paths of the branches of a what-if as a tree: what ran in each superstep, and how often for each variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench._secrets import mask_text
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench.notebook.look.svg import cut_to_width, number, picture, room_for, text
from agentbench.notebook.plots.plot import Plot, cut_lines

if TYPE_CHECKING:
    import pandas as pd

_ROW, _COLUMN, _HEAD, _EDGE = 24.0, 22.0, 40.0, 16.0
_NAME = 60
_WIDEST = 860.0
_MOST_ROWS = 200
_RULES = (
    ".ab_link{stroke:var(--line);stroke-width:1.6;fill:none}",
    ".ab_dot{fill:var(--surface);stroke:var(--line);stroke-width:1.8}.ab_end{fill:var(--line)}",
)


@dataclass
class _Node:
    """A superstep of several branches: its executors, and the counts of its branches by variant."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    next: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class _Line:
    """A line of the tree; `end` if it is how branches ended."""

    depth: int
    parent: int | None
    name: str
    counts: str
    is_end: bool


def path_tree(result: Any) -> Plot:
    """Draw the paths of the branches of a `WhatIf` as a tree with counts.

    Example:
        path_tree(result).save("paths.svg")
    """
    root = _Node("")
    variants = list(dict.fromkeys(row.variant for row in result.rows))
    for row in result.rows:
        node = root
        for name in [*filter(None, row.path.split(" > ")), f"= {row.status}"]:
            node = node.next.setdefault(name, _Node(name))
            node.counts[row.variant] = node.counts.get(row.variant, 0) + 1
    lines = list(_lines(root, variants))
    paths = len({(row.path, row.status) for row in result.rows})
    title = f"{count_text(paths, 'path')} of {count_text(len(result.rows), 'run')} from superstep {result.at}"
    return Plot(
        title,
        svg=lambda: _svg(lines, title),
        text=lambda: _text(lines, title),
        frame=lambda: _frame(result.rows),
    )


def _lines(root: _Node, variants: Sequence[str]) -> Iterator[_Line]:
    """Yield a line per node, the most frequent first; a chain without a fork stays in one column."""
    waiting: list[tuple[_Node, int, int | None]] = [(root, 0, None)]
    at = -1
    while waiting:
        node, depth, parent = waiting.pop()
        if node is not root:
            at += 1
            counts = ", ".join(f"{_short(name)} {node.counts[name]}" for name in variants if name in node.counts)
            yield _Line(depth, parent, _short(node.name), counts, node.name.startswith("= "))
            parent = at
        ordered = sorted(node.next.values(), key=lambda each: sum(each.counts.values()))
        below = depth + (len(ordered) > 1 and node is not root)
        waiting += [(each, below, parent) for each in ordered]


def _short(name: str) -> str:
    return esc(mask_text(name), into="line", limit=_NAME)


def _text(lines: Sequence[_Line], title: str) -> str:
    return "\n".join([title, *cut_lines([f"{'  ' * line.depth}{line.name}  ({line.counts})" for line in lines])])


def _svg(lines: Sequence[_Line], title: str) -> str:
    hidden, lines = max(0, len(lines) - _MOST_ROWS), lines[:_MOST_ROWS]
    columns = min(16, 1 + max((line.depth for line in lines), default=0))
    left = [_EDGE + (min(line.depth, columns - 1) + 0.5) * _COLUMN for line in lines]
    texts = [f"{line.name} ({line.counts})" for line in lines]
    need = max((x + 14 + room_for(each, 13) for x, each in zip(left, texts, strict=True)), default=0)
    wide = max(280.0, min(_WIDEST, need + 2 * _EDGE), min(_WIDEST, room_for(title, 14) + 2 * _EDGE))
    parts = [text(_EDGE, 20, cut_to_width(title, wide - 2 * _EDGE), classes="ab_strong")]
    places = [(x, _HEAD + (at + 0.5) * _ROW) for at, x in enumerate(left)]
    for (x, y), line in zip(places, lines, strict=True):
        if line.parent is not None:
            x0, y0 = places[line.parent]
            parts.append(f'<path class="ab_link" d="M{number(x0)} {number(y0)}V{number(y)}H{number(x)}"/>')
    for (x, y), line, content in zip(places, lines, texts, strict=True):
        look = "ab_dot ab_end" if line.is_end else "ab_dot"
        parts.append(f'<circle class="{look}" cx="{number(x)}" cy="{number(y)}" r="5"/>')
        parts.append(text(x + 14, y, cut_to_width(content, wide - _EDGE - x - 14)))
    if hidden:
        y = _HEAD + (len(lines) + 0.5) * _ROW
        parts.append(text(_EDGE, y, f"… {hidden:,} more", classes="ab_soft"))
    height = _HEAD + (len(lines) + bool(hidden)) * _ROW + 12
    description = _text(lines, title)
    return picture(parts, width=wide, height=height, title=title, description=description, rules=_RULES)


def _frame(rows: Sequence[Any]) -> pd.DataFrame:
    require("pandas", extra="notebook", purpose="tabulate paths")
    import pandas as pd

    frame = pd.DataFrame(
        {
            "variant": [mask_text(row.variant) for row in rows],
            "path": [row.path for row in rows],
            "status": [str(row.status) for row in rows],
        }
    )
    return frame.groupby(["variant", "path", "status"], sort=False).size().rename("runs").reset_index()
