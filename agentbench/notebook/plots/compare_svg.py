"""A comparison of two runs as SVG: both graphs with what differs marked, above a table aligned by superstep."""

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from agentbench.notebook.history.compare import RunComparison
from agentbench.notebook.look.svg import FONT_SIZE, SMALL, cut_to_width, number, picture, text, text_width
from agentbench.notebook.plots.compare_text import Line, lines_of
from agentbench.notebook.text.escape import esc

__all__ = ["MarkedGraph", "compare_svg"]

_EDGE = 16.0
_ROW = 24.0
_LINE = 19.0
_MOST_LINES = 80
_SMALLEST = 0.62
_TALLEST = 260.0
_SIGN = "\N{NOT EQUAL TO}"

_RULES = (
    ".ab_rule{stroke:var(--rim)}.ab_tint{fill:var(--break);opacity:.07}.ab_edge_mark{fill:var(--break)}",
    ".ab_plot text.ab_sign{fill:var(--break);font-weight:bold}.ab_plot text.ab_same{fill:var(--muted)}",
    ".ab_card{fill:none;stroke:var(--rim)}",
    ".ab_plot .ab_graph .ab_differs .ab_shape{stroke:var(--break)!important;stroke-width:2.8!important}",
)


@dataclass(frozen=True)
class MarkedGraph:
    """The graph of one side.

    Attributes:
        svg: Finished picture of a graph.
        elements: Ids of its elements that differ.
    """

    svg: str
    elements: Collection[str]


def compare_svg(
    found: RunComparison, graphs: Sequence[MarkedGraph] = (), *, width: float = 760.0, description: str = ""
) -> str:
    """Draw a comparison.

    Args:
        found: What was compared.
        graphs: The graphs of both sides, or none.
        width: Of the picture, in points.
        description: The same in words.
    """
    parts = [text(_EDGE, 22, cut_to_width(found.title, width - 2 * _EDGE), classes="ab_strong")]
    y = 46.0
    for line in _wrap(found.verdict, width - 2 * _EDGE):
        parts.append(text(_EDGE, y, line))
        y += _LINE
    y += 4
    if graphs:
        drawn, y = _graphs(found, graphs, y, width)
        parts += drawn
    lines = lines_of(found, most=_MOST_LINES)
    if lines:
        parts += _table(found, lines, y, width)
        y += _ROW * (len(lines) + 1)
    return picture(
        parts, width=width, height=y + 12, title=found.title, description=description or found.verdict, rules=_RULES
    )


def _wrap(words: str, room: float) -> list[str]:
    """Return the lines of a text that fit, at most four."""
    letters = max(20, int(len(words) * room / max(1.0, text_width(words, FONT_SIZE))))
    return textwrap.wrap(words, letters, max_lines=4, placeholder=" …") or [""]


# ---- graphs -----------------------------------------------------------------------------------------------------


def _graphs(found: RunComparison, graphs: Sequence[MarkedGraph], y: float, width: float) -> tuple[list[str], float]:
    """Return both graphs, side by side if they stay readable, else one above the other."""
    names = (found.a.name, found.b.name)
    sizes = [_size(each.svg) for each in graphs]
    half = (width - 3 * _EDGE) / 2
    aside = all(min(1.0, half / wide) >= _SMALLEST for wide, _ in sizes)
    room = half if aside else width - 2 * _EDGE
    scales = [min(1.0, room / wide, _TALLEST / tall) for wide, tall in sizes]
    parts: list[str] = []
    x, bottom = _EDGE, y
    for at, (graph, (wide, tall), scale) in enumerate(zip(graphs, sizes, scales, strict=True)):
        parts.append(text(x, y + 8, cut_to_width(names[at], room), classes="ab_soft ab_small"))
        left = x + (room - wide * scale) / 2
        box = (x, y + 18, room, max(t * s for (_, t), s in zip(sizes, scales, strict=True)) if aside else tall * scale)
        parts.append(_card(*box))
        parts.append(_nest(graph, at, (left, y + 18, wide * scale, box[3])))
        bottom = max(bottom, y + 18 + box[3])
        if aside:
            x += half + _EDGE
        else:
            y = bottom + 10
    return parts, bottom + 16


def _card(x: float, y: float, wide: float, high: float) -> str:
    size = f'x="{number(x)}" y="{number(y)}" width="{number(wide)}" height="{number(high)}"'
    return f'<rect class="ab_card" {size} rx="6"/>'


def _size(svg: str) -> tuple[float, float]:
    box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', svg)
    return (float(box[1]), float(box[2])) if box else (300.0, 100.0)


def _nest(graph: MarkedGraph, place: int, box: tuple[float, float, float, float]) -> str:
    """Return a graph as a part of this picture, without its ids and its background."""
    root = ElementTree.fromstring(graph.svg)
    for child in list(root):
        kind = child.tag.rpartition("}")[2]
        if kind in ("title", "desc") or child.get("class") == "ab_ground" or (kind == "style" and place):
            root.remove(child)
    for each in root.iter():
        element = each.attrib.pop("id", None)
        if element in graph.elements:
            each.set("class", f"{each.get('class', '')} ab_differs")
            label = next((child for child in each if child.tag.endswith("text")), None)
            if label is not None:
                label.text = f"{label.text or ''} {_SIGN}"
        each.tag = each.tag.rpartition("}")[2]
    root.set("class", f"{root.get('class', '')} ab_graph")
    for name in ("role", "aria-labelledby", "aria-label"):
        root.attrib.pop(name, None)
    for name, value in zip(("x", "y", "width", "height"), box, strict=True):
        root.set(name, number(value))
    return ElementTree.tostring(root, encoding="unicode")


# ---- table ------------------------------------------------------------------------------------------------------


def _table(found: RunComparison, lines: Sequence[Line], y: float, width: float) -> Iterator[str]:
    at = _places(lines, width)
    mid = y + _ROW / 2
    yield text(at[0], mid, "superstep", anchor="end", classes="ab_soft ab_small")
    taken_apart = any(not line.is_equal for line in lines)
    for column, side in ((3, found.a), (4, found.b)) if taken_apart else ():
        name = cut_to_width(side.name, at[5] - at[4] - 12)
        yield text(at[column], mid, name, classes="ab_strong ab_small")
    for place, line in enumerate(lines):
        top = y + (place + 1) * _ROW
        if line[0] or place == 0:
            yield f'<path class="ab_rule" d="M{number(_EDGE)} {number(top)}H{number(width - _EDGE)}"/>'
        yield from _line(line, top, at)


def _places(lines: Sequence[Line], width: float) -> tuple[float, ...]:
    """Return the right end of the numbers, the left ends of sign, part and both sides, and the end of the table."""
    numbers = max(text_width(each, SMALL) for each in ("superstep", *(line[0] for line in lines)))
    end = width - _EDGE
    sign = _EDGE + numbers + 14
    part = sign + 18
    widest = max((text_width(line[2], FONT_SIZE) for line in lines if not line.is_equal), default=60.0)
    a = part + min(max(60.0, widest) + 16, 0.3 * width)
    return _EDGE + numbers, sign, part, a, a + (end - a) / 2, end


def _line(line: Line, top: float, at: tuple[float, ...]) -> Iterator[str]:
    numbers, sign, part, a, b, end = at
    y = top + _ROW / 2
    if line.is_equal or not line[1]:
        yield text(numbers, y, line[0], anchor="end", classes="ab_same")
        yield text(sign, y, line[1], classes="ab_same")
        yield text(part, y, cut_to_width(line[2], end - part), classes="ab_same")
        return
    size = f'y="{number(top)}" height="{number(_ROW)}"'
    yield f'<rect class="ab_tint" x="{number(_EDGE)}" {size} width="{number(end - _EDGE)}"/>'
    yield f'<rect class="ab_edge_mark" x="{number(_EDGE - 4)}" {size} width="3"/>'
    yield text(numbers, y, line[0], anchor="end")
    yield text(sign, y, line[1], classes="ab_sign")
    for x, room, cell in ((part, a - part, line[2]), (a, b - a, line[3]), (b, end - b, line[4])):
        if cell:
            whole = f"<title>{esc(cell, into='svg', limit=400)}</title>"
            yield f"<g>{whole}{text(x, y, cut_to_width(cell, room - 10))}</g>"
