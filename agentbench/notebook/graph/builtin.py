"""The built-in renderer: a graph as SVG in plain Python, with the same ids and classes as the other renderers."""

import functools
import math
from collections.abc import Mapping, Sequence

from agentbench._text.escape import esc
from agentbench.notebook.graph.dot import EDGE_STYLE, Detail, Direction, edge_label, node_class, node_label
from agentbench.notebook.graph.layout import FRAME_MARGIN, TITLE_HEIGHT, Box, Point, place
from agentbench.notebook.graph.shape import GraphShape, ShapeNode
from agentbench.notebook.look.style import PALETTE
from agentbench.notebook.look.svg import number as _n
from agentbench.notebook.look.svg import text_width

__all__ = ["draw_builtin"]

Frame = tuple[float, float, float, float]  # left, top, right and bottom

_PAD, _BORDER, _RIM, _ARROW, _ROUNDING = 16.0, 8.0, 6.0, 8.0, 9.0
_NAME_SIZE, _TEXT_SIZE = 13.0, 12.0
_INK = PALETTE["light"]


@functools.lru_cache(maxsize=16)
def draw_builtin(shape: GraphShape, direction: Direction = "LR", detail: Detail = "full") -> bytes:
    """Return the picture of a graph as SVG."""
    labels = {node.id: node_label(node, detail) for node in shape.nodes}
    sizes = {node.id: _size(node, labels[node.id]) for node in shape.nodes}
    edges = {(edge.source, edge.target): edge for edge in shape.edges}
    texts = {pair: edge_label(edge, detail) for pair, edge in edges.items()}
    rooms = {pair: (text_width(label, _TEXT_SIZE) + 10, 16.0) for pair, label in texts.items() if label}
    boxes, wires = place(shape, sizes, rooms, direction)
    frames = _frames(shape, boxes)
    parts = []
    for frame in (frame for frame in shape.frames if frame.id in frames):
        drawn = _frame(frames[frame.id], node_label(frame, detail))
        parts.append(_group(shape, frame, "cluster ab_frame", drawn))
    for pair, (points, text) in wires.items():
        kind = edges[pair].kind
        line = _outside(_outside(points, frames.get(pair[1]))[::-1], frames.get(pair[0]))[::-1]
        drawn = _line(line, dashed=EDGE_STYLE.get(kind, {}).get("style") == "dashed")
        if texts[pair]:
            drawn += _text(texts[pair], *text, _TEXT_SIZE)
        element = shape.element_of[pair]
        parts.append(f'<g id="{element}" class="edge ab_edge ab_e_{kind}"><title/>{drawn}</g>')
    parts += [_group(shape, node, "node ab_node", _node(node, boxes[node.id], labels[node.id])) for node in shape.nodes]
    covered = [*frames.values(), *(_frame_of(*box) for box in boxes.values())]
    covered += [_frame_of(*text, *rooms.get(pair, (0.0, 0.0))) for pair, (points, text) in wires.items()]
    covered += [(*point, *point) for points, _ in wires.values() for point in points]
    left, top, right, bottom = _around(covered or [(0.0, 0.0, 0.0, 0.0)])
    width, height = right - left + 2 * _PAD, bottom - top + 2 * _PAD
    return (
        f'<svg width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}">'
        f'<g id="graph0" transform="translate({_n(_PAD - left)} {_n(_PAD - top)})">{"".join(parts)}</g></svg>'
    ).encode()


def _group(shape: GraphShape, node: ShapeNode, kind: str, drawn: str) -> str:
    return f'<g id="{shape.element_of[node.id]}" class="{node_class(node, kind)}"><title/>{drawn}</g>'


def _frame_of(x: float, y: float, width: float, height: float) -> Frame:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _around(inside: Sequence[Frame]) -> Frame:
    lefts, tops, rights, bottoms = zip(*inside, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _frames(shape: GraphShape, boxes: Mapping[str, Box]) -> dict[str, Frame]:
    """Return the frame of each opened sub-workflow, around its nodes and inner frames."""
    around: dict[str | None, list[Frame]] = {}
    for node in shape.nodes:
        around.setdefault(node.frame, []).append(_frame_of(*boxes[node.id]))
    frames: dict[str, Frame] = {}
    for frame in reversed(shape.frames):  # from inner to outer frames
        if inside := around.get(frame.id):
            left, top, right, bottom = _around(inside)
            margin = FRAME_MARGIN
            frames[frame.id] = (left - margin, top - margin - TITLE_HEIGHT, right + margin, bottom + margin)
            around.setdefault(frame.frame, []).append(frames[frame.id])
    return frames


def _outside(points: list[Point], frame: Frame | None) -> list[Point]:
    """Return a line without its last part inside a frame."""
    if frame is None:
        return points
    left, top, right, bottom = frame
    inside = [left < x < right and top < y < bottom for x, y in points]
    points = points[: max(2, len(points) - inside[::-1].index(False) + 1)] if False in inside else points
    (x1, y1), (x2, y2) = points[-2:]
    for _ in range(12):  # bisect towards the border
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        if left < x < right and top < y < bottom:
            x2, y2 = x, y
        else:
            x1, y1 = x, y
    return [*points[:-1], (x2, y2)]


def _size(node: ShapeNode, label: str) -> Point:
    width, height = text_width(label, _NAME_SIZE) + 26, 32.0
    if "hitl" in node.kinds:
        width += 20
    elif "subworkflow" in node.kinds:
        height += 2 * _RIM
    elif "start" in node.kinds:
        width += 14
    border = _BORDER if "output" in node.kinds else 0
    return max(width, 54.0) + border, height + border


def _node(node: ShapeNode, box: Box, label: str) -> str:
    paint = f'stroke="{_INK["line"]}" stroke-width="1.2"'
    outer = ""
    if "output" in node.kinds:
        outer = _outline(node, box, f'fill="none" {paint}')
        box = Box(box.x, box.y, box.width - _BORDER, box.height - _BORDER)
    inner = _outline(node, box, f'fill="{_INK["surface"]}" {paint}')
    y = box.y
    if "subworkflow" in node.kinds and "hitl" not in node.kinds:  # the front edge of the lid
        left, top, right, _ = _frame_of(*box)
        rim, bow, y = top + _RIM, top + _RIM * 7 / 3, y + _RIM / 2
        curve = f"M{_at(left, rim)}C{_at(left, bow)} {_at(right, bow)} {_at(right, rim)}"
        inner += f'<path fill="none" {paint} d="{curve}"/>'
    return inner + outer + _text(label, box.x, y, _NAME_SIZE)


def _outline(node: ShapeNode, box: Box, paint: str) -> str:
    left, top, right, bottom = _frame_of(*box)
    if "hitl" in node.kinds:
        cut = box.height * 0.3
        corners = [(left, box.y), (left + cut, top), (right - cut, top)]
        corners += [(right, box.y), (right - cut, bottom), (left + cut, bottom)]
        return f'<polygon {paint} points="{" ".join(_at(*corner) for corner in corners)}"/>'
    if "subworkflow" in node.kinds:
        top, bottom, bow = top + _RIM, bottom - _RIM, _RIM * 4 / 3  # a cubic curve that approximates half an ellipse
        over = f"C{_at(left, top - bow)} {_at(right, top - bow)} {_at(right, top)}"
        under = f"C{_at(right, bottom + bow)} {_at(left, bottom + bow)} {_at(left, bottom)}"
        return f'<path {paint} d="M{_at(left, top)}{over}L{_at(right, bottom)}{under}Z"/>'
    if "start" in node.kinds:
        radii = f'rx="{_n(box.width / 2)}" ry="{_n(box.height / 2)}"'
        return f'<ellipse {paint} cx="{_n(box.x)}" cy="{_n(box.y)}" {radii}/>'
    return f"<rect {paint} {_place((left, top, right, bottom))}/>"


def _frame(frame: Frame, label: str) -> str:
    outline = f'<rect fill="none" stroke="{_INK["line"]}" stroke-dasharray="5,2" {_place(frame)}/>'
    return outline + _text(label, frame[0] + 10 + text_width(label, _TEXT_SIZE) / 2, frame[1] + 12, _TEXT_SIZE)


def _line(points: Sequence[Point], *, dashed: bool) -> str:
    """Return a line with rounded corners and an arrow at its end."""
    bends = [points[0]]
    for point, after in zip(points[1:], [*points[2:], None], strict=True):
        (x0, y0), (x1, y1), (x2, y2) = bends[-1], point, after or (math.inf, 0)
        if after is None or abs((x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1)) > 1:
            bends.append(point)
    tip, tail = bends[-1], _towards(bends[-1], bends[-2], _ARROW)
    path = f"M{_at(*bends[0])}"
    for before, corner, after in zip(bends, bends[1:-1], bends[2:], strict=False):
        radius = min(_ROUNDING, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        path += f"L{_at(*_towards(corner, before, radius))}Q{_at(*corner)} {_at(*_towards(corner, after, radius))}"
    (x, y), side = tail, 0.4
    aside = ((tip[1] - y) * side, (x - tip[0]) * side)
    wings = f"{_at(x + aside[0], y + aside[1])} {_at(x - aside[0], y - aside[1])}"
    dashes, edge = ' stroke-dasharray="5,2"' if dashed else "", _INK["edge"]
    line = f'<path fill="none" stroke="{edge}" stroke-width="1.2"{dashes} d="{path}L{_at(*tail)}"/>'
    return f'{line}<polygon fill="{edge}" stroke="{edge}" points="{_at(*tip)} {wings}"/>'


def _towards(start: Point, end: Point, distance: float) -> Point:
    share = distance / (math.dist(start, end) or 1.0)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _text(text: str, x: float, y: float, size: float) -> str:
    escaped = esc(text, into="svg", limit=None)
    return f'<text text-anchor="middle" x="{_n(x)}" y="{_n(y + size * 0.35)}" font-size="{size:g}">{escaped}</text>'


def _place(frame: Frame) -> str:
    left, top, right, bottom = frame
    return f'rx="{_ROUNDING:g}" x="{_n(left)}" y="{_n(top)}" width="{_n(right - left)}" height="{_n(bottom - top)}"'


def _at(x: float, y: float) -> str:
    return f"{_n(x)},{_n(y)}"
