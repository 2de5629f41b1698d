"""The painter: the SVG of a graph from the positions of any layout, for panels, pictures, PNG and PDF.

Elements are numbered as in `GraphShape.element_of`. Foreign text passes through `esc`; everything else is made here.
"""

import hashlib
import html
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence

from agentbench._text.escape import esc
from agentbench.notebook.graph.layout import (
    BORDER,
    NAME_SIZE,
    NOTE_HEIGHT,
    PAUSE_SIGN,
    RIM,
    TEXT_SIZE,
    Box,
    Detail,
    Layout,
    Point,
    Wire,
    edge_label,
    node_label,
)
from agentbench.notebook.look.states import INK, PAUSE, STATES
from agentbench.notebook.look.style import PALETTE, static_style
from agentbench.notebook.look.svg import number as _n
from agentbench.notebook.look.svg import room_for, text_width
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode

_PAD, _ARROW, _ROUNDING = 16.0, 8.0, 9.0
_NOTE_MARGIN, _NOTE_LINE = 14, 16
# The colours are for viewers without style sheets.
_COLOURS = PALETTE["light"]
_LINE = f'stroke="{_COLOURS["line"]}" stroke-width="1.2"'
_FONT = 'font-family="Helvetica,Arial,sans-serif"'
_ICON = f'fill="none" stroke="{INK["light"]}" stroke-width="1.9" stroke-linecap="round"'


def paint_live(shape: GraphShape, layout: Layout, detail: Detail) -> str:
    """Return the picture for a panel that paints states: with names and connections, without a style."""
    body, width, height = _body(shape, layout, detail, None)
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_FONT} class="ab_svg">{body}</svg>'


def paint_picture(
    shape: GraphShape, layout: Layout, detail: Detail, states: Mapping[str, str], *, theme: str, text: str
) -> str:
    """Return a standalone picture: with name and description, style, and a background for any page.

    `states` are by element id; `text` is for readers that do not see the picture.
    """
    body, width, height = _body(shape, layout, detail, states)
    digest = hashlib.sha256(f"{shape.name}\0{text}".encode("utf-8", "replace")).hexdigest()[:8]
    # Lines below the picture report folded and hidden nodes.
    lines = textwrap.wrap(esc(shape.note, into="line", limit=400), max(24, int(width / 7)))
    wider = max([0.0, *(text_width(line, 12) * 1.1 + 2 * _NOTE_MARGIN - width for line in lines)])
    left, note = 0 - wider / 2, ""
    for index, line in enumerate(lines):
        place = f'x="{_n(left + _NOTE_MARGIN)}" y="{_n(height + 8 + index * _NOTE_LINE)}"'
        note += f'<text class="ab_note" {place} font-size="12">{_line(line)}</text>'
    width += wider
    height += 8 + len(lines) * _NOTE_LINE if lines else 0
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="{_n(left)} 0 {_n(width)} {_n(height)}"'
    ground = f'fill="{_COLOURS["ground"]}" stroke="{_COLOURS["rim"]}" x="{_n(left + 0.5)}" y="0.5" rx="8"'
    style = html.escape(static_style(theme, states=bool(states)), quote=False)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_FONT} role="img" class="ab_svg ab_{theme}"'
        f' aria-labelledby="ab_{digest}_t ab_{digest}_d">'
        f'<title id="ab_{digest}_t">Graph of {_line(shape.name, 200)}</title>'
        f'<desc id="ab_{digest}_d">{esc(text, into="svg", limit=None)}</desc><style>{style}</style>'
        f'<rect class="ab_ground" {ground} width="{_n(width - 1)}" height="{_n(height - 1)}"/>{body}{note}</svg>'
    )


def _body(
    shape: GraphShape, layout: Layout, detail: Detail, states: Mapping[str, str] | None
) -> tuple[str, float, float]:
    """Return frames, edges and nodes, nodes in execution order for the Tab key, with the size of the picture."""
    nodes = {node.id: node for node in (*shape.nodes, *shape.frames)}
    frames = [_node(shape, frame, layout.boxes[frame.id], detail, states) for frame in shape.frames]
    edges = []
    covered = list(layout.boxes.values())
    for edge in shape.edges:
        wire, label = layout.wires[edge.source, edge.target], edge_label(edge, detail)
        ends = [(nodes[end], layout.boxes[end]) for end in (edge.source, edge.target)]
        edges.append(_edge(shape, edge, _touching(shape, wire, ends), label, states))
        covered += [Box(x, y, 0, 0) for x, y in wire.points]
        covered += [Box(*wire.text, text_width(label, TEXT_SIZE) + 10, 16)] if label else []
    drawn = [_node(shape, nodes[node_id], layout.boxes[node_id], detail, states) for node_id in shape.levels]
    left, top, right, bottom = Box.around(covered or [Box(0, 0, 0, 0)]).sides
    move = f'transform="translate({_n(_PAD - left)} {_n(_PAD - top)})"'
    body = f'<g id="graph0" {move}>{"".join([*frames, *edges, *drawn])}</g>'
    return body, right - left + 2 * _PAD, bottom - top + 2 * _PAD


def _group(element: str, kind: str, state: str, data: Mapping[str, str] | None, title: str, drawn: str) -> str:
    marked = "" if state == "idle" else f" ab_s_{state}"
    facts = "".join(f' data-{name}="{value}"' for name, value in (data or {}).items())
    return f'<g id="{element}" class="{kind}{marked}"{facts}><title>{_line(title)}</title>{drawn}</g>'


def _line(text: str, limit: int | None = 2048) -> str:
    return esc(esc(text, into="line", limit=limit), into="svg", limit=None)


# ---- nodes and frames


def _node(shape: GraphShape, node: ShapeNode, box: Box, detail: Detail, states: Mapping[str, str] | None) -> str:
    element = shape.element_of[node.id]
    is_frame = element.startswith("c")
    state = (states or {}).get(element, "idle")
    style = STATES[state]
    fill = "none" if is_frame else style.light or _COLOURS["surface"]
    dashes = ' stroke-dasharray="5,3"' if is_frame else ""
    paint = f'fill="{fill}" {_LINE}{dashes}'
    form = _form_of(shape, node)
    has_border = "output" in node.kinds and not is_frame
    outer = " ab_outer" if states is None else ""
    inner = Box(box.x, box.y, box.width - BORDER, box.height - BORDER) if has_border else box
    drawn = _outline(form, inner, f'class="ab_shape{"" if has_border else outer}" {paint}')
    y = box.y
    if form == "cylinder":
        left, top, right, _ = inner.sides
        rim, bow, y = top + RIM, top + RIM * 7 / 3, y + RIM / 2
        curve = f"M{_at(left, rim)}C{_at(left, bow)} {_at(right, bow)} {_at(right, rim)}"  # the lid's front edge
        drawn += f'<path class="ab_line" fill="none" {_LINE} d="{curve}"/>'
    if has_border:
        drawn += _outline(form, box, f'class="ab_line{outer}" fill="none" {_LINE}')
    if state == "waiting":  # a double border: wider copies below the shape
        rings = (("ab_halo", "6.5", _COLOURS["line"]), ("ab_gap", "4", "#FFFFFF"))
        copies = (f'class="{name}" fill="none" stroke="{colour}" stroke-width="{wide}"' for name, wide, colour in rings)
        drawn = "".join(_outline(form, box, copy) for copy in copies) + drawn
    if node.note and not is_frame:
        drawn += _text(node.note, box.x, y + NOTE_HEIGHT / 2, TEXT_SIZE).replace("<text", '<text class="ab_note"', 1)
        y -= NOTE_HEIGHT / 2
    drawn += _name(node_label(node, detail), box, y, is_frame=is_frame)
    if style.icon:
        drawn += _mark(state, form, box)
    data = {"name": _line(node.name), "what": node.words, "box": " ".join(f"{side:g}" for side in box.sides)}
    facts = ", ".join(fact for fact in (node.words, node.type_name) if fact)
    more = ", …" if len(node.members) > 20 else ""
    title = f"{node.id}{f' ({facts})' if facts else ''}"
    title += f": {', '.join(node.members[:20])}{more}" if node.members else ""
    kinds = " ".join(f"ab_k_{kind}" for kind in node.kinds or ("executor",))
    kind = f"{'ab_frame' if is_frame else 'ab_node'} {kinds}"
    return _group(element, kind, state, data if states is None else None, title, drawn)


def _form_of(shape: GraphShape, node: ShapeNode) -> str:
    """Return the geometric form of a node or frame."""
    forms = {"hitl": "hexagon", "subworkflow": "cylinder", "start": "ellipse"}
    if shape.element_of[node.id].startswith("c"):
        return "rect"
    return next((form for kind, form in forms.items() if kind in node.kinds), "rect")


def _outline(form: str, box: Box, paint: str) -> str:
    left, top, right, bottom = box.sides
    if form == "hexagon":
        cut = box.height * 0.3
        corners = [(left, box.y), (left + cut, top), (right - cut, top)]
        corners += [(right, box.y), (right - cut, bottom), (left + cut, bottom)]
        return f'<polygon {paint} points="{" ".join(_at(*corner) for corner in corners)}"/>'
    if form == "cylinder":
        top, bottom, bow = top + RIM, bottom - RIM, RIM * 4 / 3  # a cubic curve that approximates half an ellipse
        over = f"C{_at(left, top - bow)} {_at(right, top - bow)} {_at(right, top)}"
        under = f"C{_at(right, bottom + bow)} {_at(left, bottom + bow)} {_at(left, bottom)}"
        return f'<path {paint} d="M{_at(left, top)}{over}L{_at(right, bottom)}{under}Z"/>'
    if form == "ellipse":
        radii = f'rx="{_n(box.width / 2)}" ry="{_n(box.height / 2)}"'
        return f'<ellipse {paint} cx="{_n(box.x)}" cy="{_n(box.y)}" {radii}/>'
    place = f'x="{_n(left)}" y="{_n(top)}" width="{_n(box.width)}" height="{_n(box.height)}"'
    return f'<rect {paint} rx="{_n(_ROUNDING)}" {place}/>'


def _name(label: str, box: Box, y: float, *, is_frame: bool) -> str:
    """Return the label of a node, or of a frame at its upper left; the pause sign is a shape, which fonts may lack."""
    size, pause = TEXT_SIZE if is_frame else NAME_SIZE, label.startswith(PAUSE_SIGN)
    text = label.removeprefix(PAUSE_SIGN).lstrip()
    half, x = (room_for if pause else text_width)(text, size) / 2, box.x
    if is_frame:
        left, top, _, _ = box.sides
        x, y = left + 10 + half, top + 12
    if not pause:
        return _text(text, x, y, size)
    icon = f'<path class="ab_icon" transform="translate({_n(x - half - 4)} {_n(y)})" d="{PAUSE}" {_ICON}/>'
    return _text(text, x + 6, y, size) + icon


def _mark(state: str, form: str, box: Box) -> str:
    """Return the sign of a state, at the upper right of the shape."""
    _, top, right, _ = box.sides
    inset = 0.12 * box.width if form in ("hexagon", "ellipse") else 0.0  # of the corners
    disc = f'<circle r="8.5" fill="{STATES[state].light or "#FFFFFF"}" stroke="{_COLOURS["line"]}"/>'
    sign = f'<path d="{STATES[state].icon}" {_ICON}/>'
    return f'<g class="ab_mark" transform="translate({_n(right - inset)} {_n(top + 1)})">{disc}{sign}</g>'


# ---- edges


def _edge(shape: GraphShape, edge: ShapeEdge, wire: Wire, label: str, states: Mapping[str, str] | None) -> str:
    element, names = shape.element_of, shape.name_of
    colour, dashes = _COLOURS["edge"], ' stroke-dasharray="5,2"' if edge.is_dashed else ""
    tip, before = wire.points[-1], wire.points[-2]
    is_loop = edge.kind == "loop"
    tail = _towards(tip, before, _ARROW)
    notch = _towards(tail, tip, _ARROW * 0.35)  # in the arrow of a loop
    line = f'class="ab_wire" fill="none" stroke="{colour}" stroke-width="1.2"{dashes}'
    drawn = f'<path {line} d="{_path(wire)}L{_at(*(notch if is_loop else tail))}"/>'
    (x, y), side = tail, 0.4
    aside = ((tip[1] - y) * side, (x - tip[0]) * side)
    wings = (x + aside[0], y + aside[1]), (x - aside[0], y - aside[1])
    corners = [tip, wings[0], notch, wings[1]] if is_loop else [tip, *wings]
    points = " ".join(_at(*corner) for corner in corners)
    drawn += f'<polygon class="ab_tip" fill="{colour}" stroke="{colour}" points="{points}"/>'
    drawn += _text(label, *wire.text, TEXT_SIZE) if label else ""
    ends = (element[edge.source], element[edge.target])
    key = element[edge.source, edge.target]
    title = f"{names[edge.source]} -> {names[edge.target]}{f' [{edge.label}]' if edge.label else ''}"
    data = dict(zip(("from", "to"), ends, strict=True)) if states is None else None
    weight = "" if edge.weight is None else f" ab_w{edge.weight}"
    return _group(key, f"ab_edge ab_e_{edge.kind}{weight}", (states or {}).get(key, "idle"), data, title, drawn)


def _touching(shape: GraphShape, wire: Wire, ends: Sequence[tuple[ShapeNode, Box]]) -> Wire:
    """Return an edge that ends at the drawn outlines of its two nodes; layouts end it at boxes."""
    points = wire.points if wire.curved else _bends(wire.points)
    (source, from_box), (target, to_box) = ends
    first = _reach(points[0], points[1], from_box, _form_of(shape, source))
    last = _reach(points[-1], points[-2], to_box, _form_of(shape, target))
    return wire._replace(points=[first, *points[1:-1], last])


def _reach(end: Point, before: Point, box: Box, form: str) -> Point:
    """Return the end of a line, moved on until it is inside an outline."""
    for step in range(4 * int(_ROUNDING)):
        point = _towards(end, before, -step / 2)
        across, along = abs(point[0] - box.x) / box.width * 2, abs(point[1] - box.y) / box.height * 2
        if max(across, along) <= 1.05 and _contains(form, box, across, along):
            return point
    return end


def _contains(form: str, box: Box, across: float, along: float) -> bool:
    """Whether a point is inside an outline, by its distances from the centre as shares of half the size."""
    if form == "ellipse":
        return math.hypot(across, along) <= 1.02
    if form == "hexagon":
        return across <= 1 - 0.6 * box.height / box.width * along + 0.02
    if form == "cylinder":
        return along * box.height / 2 <= box.height / 2 - RIM + RIM * math.sqrt(max(0.0, 1 - across * across)) + 0.5
    corner = ((1 - share) * side / 2 for share, side in ((across, box.width), (along, box.height)))
    return math.hypot(*(max(0.0, _ROUNDING - distance) for distance in corner)) <= _ROUNDING + 0.5


def _bends(points: Sequence[Point]) -> list[Point]:
    """Return the points of a line without those at which it does not bend."""
    bends = [points[0]]
    for point, after in itertools.pairwise(points[1:]):
        (x0, y0), (x1, y1), (x2, y2) = bends[-1], point, after
        if abs((x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1)) > 1:
            bends.append(point)
    return [*bends, points[-1]]


def _path(wire: Wire) -> str:
    """Return a line as far as the arrow: a spline, or straight lines with rounded corners."""
    points = wire.points
    path = f"M{_at(*points[0])}"
    if wire.curved:
        return f"{path}C{' '.join(_at(*point) for point in points[1:-1])}"
    for before, corner, after in zip(points, points[1:-1], points[2:], strict=False):
        radius = min(_ROUNDING, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        path += f"L{_at(*_towards(corner, before, radius))}Q{_at(*corner)} {_at(*_towards(corner, after, radius))}"
    return path


def _towards(start: Point, end: Point, distance: float) -> Point:
    share = distance / (math.dist(start, end) or 1.0)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _text(text: str, x: float, y: float, size: float) -> str:
    escaped = esc(text, into="svg", limit=None)
    return f'<text text-anchor="middle" x="{_n(x)}" y="{_n(y + size * 0.35)}" font-size="{size:g}">{escaped}</text>'


def _at(x: float, y: float) -> str:
    return f"{_n(x)},{_n(y)}"
