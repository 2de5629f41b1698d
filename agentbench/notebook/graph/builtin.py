"""The renderer that is always there: DOT to SVG in plain Python, with the structure, ids and classes of Graphviz."""

import math
from xml.sax.saxutils import escape, quoteattr

from agentbench.exceptions import RendererUnavailable
from agentbench.notebook.graph.dot_reader import DotCluster, DotGraph, read_dot
from agentbench.notebook.graph.geometry import UPRIGHT, Box
from agentbench.notebook.graph.layout import TEXT_AT, place
from agentbench.notebook.graph.wires import Wire
from agentbench.notebook.look.svg import text_width

__all__ = ["render_builtin"]

_PAD = 16.0
_ARROW = 8.0
_LINE_HEIGHT = 1.25
_HEXAGON_CUT = 0.6
_DASHES = {"dashed": "5,2", "dotted": "1,5"}


def render_builtin(dot: str, output_format: str) -> bytes:
    """Turn DOT text into SVG.

    Raises:
        RendererUnavailable: For any other format.
        RenderFailed: The text is not DOT.
    """
    if output_format != "svg":
        raise RendererUnavailable("pure", "graphviz-pure")
    return _Picture(read_dot(dot)).svg().encode()


class _Picture:
    def __init__(self, graph: DotGraph) -> None:
        self.graph = graph
        self.labels = {
            name: attributes.get("label", r"\N").replace("\\N", name).split("\n")
            for name, attributes in graph.nodes.items()
        }
        self.sizes = {name: self._size(name) for name in graph.nodes}
        self.direction = graph.attributes.get("rankdir", "TB").upper()
        self.layout = place(graph, self.sizes, self.direction, self._texts(), self._inset)
        self.parts: list[str] = []
        self.left = self.top = math.inf
        self.right = self.bottom = -math.inf

    def svg(self) -> str:
        for index, cluster in enumerate(self.graph.clusters):
            self._cluster(index, cluster)
        for index, wire in enumerate(self.layout.wires):
            self._edge(index, wire)
        for index, (name, box) in enumerate(self.layout.boxes.items()):
            self._node(index, name, box)
        if not self.layout.boxes:
            self._cover(0, 0, 0, 0)
        width, height = self.right - self.left + 2 * _PAD, self.bottom - self.top + 2 * _PAD
        shift = f"translate({_n(_PAD - self.left)} {_n(_PAD - self.top)})"
        return (
            f'<svg width="{_n(width)}pt" height="{_n(height)}pt" viewBox="0 0 {_n(width)} {_n(height)}"'
            f' xmlns="http://www.w3.org/2000/svg"><g id="graph0" class="graph" transform="{shift}">'
            f"{''.join(self.parts)}</g></svg>"
        )

    def _texts(self) -> dict[tuple[str, str], tuple[float, float]]:
        labels = {(edge.source, edge.target): edge.attributes.get("label", "").strip() for edge in self.graph.edges}
        return {ends: (text_width(label, 12) + 10, 16.0) for ends, label in labels.items() if label}

    def _inset(self, name: str, offset: float) -> float:
        """How far the outline lies behind the bounding box where edges leave or enter, `offset` from the middle."""
        width, height = self.sizes[name]
        sideways = self.direction not in UPRIGHT
        half, deep = (height / 2, width / 2) if sideways else (width / 2, height / 2)
        shape = self.graph.nodes[name].get("shape", "ellipse")
        share = min(1.0, abs(offset) / half) if half else 0.0
        if shape in ("ellipse", "oval", "circle", "doublecircle"):
            return deep * (1 - math.sqrt(1 - share * share))
        if shape == "hexagon" and sideways:
            return min(half * _HEXAGON_CUT, deep / 2) * share
        return 0.0

    def _size(self, name: str) -> tuple[float, float]:
        attributes = self.graph.nodes[name]
        size = _number(attributes.get("fontsize"), 14)
        margins = [_number(each, 0.1) * 72 for each in attributes.get("margin", "0.11,0.055").split(",")]
        lines = self.labels[name]
        width = max(text_width(line, size) for line in lines) + 2 * margins[0]
        height = len(lines) * size * _LINE_HEIGHT + 2 * margins[-1]
        if attributes.get("fixedsize") == "true":
            return _number(attributes.get("width"), 0.75) * 72, _number(attributes.get("height"), 0.5) * 72
        shape = attributes.get("shape", "ellipse")
        if shape in ("ellipse", "hexagon"):
            width += 0.9 * height
        if shape == "cylinder":
            height += 12
        outer = 8 if attributes.get("peripheries") == "2" else 0
        wanted = _number(attributes.get("height"), 0.5) * 72
        return max(width, _number(attributes.get("width"), 0.75) * 72) + outer, max(height, wanted) + outer

    def _cover(self, left: float, top: float, right: float, bottom: float) -> None:
        self.left, self.top = min(self.left, left), min(self.top, top)
        self.right, self.bottom = max(self.right, right), max(self.bottom, bottom)

    def _group(self, kind: str, default_id: str, name: str, attributes: dict[str, str], content: str) -> None:
        classes = f"{kind} {attributes['class']}" if attributes.get("class") else kind
        self.parts.append(
            f"<g id={_quote(attributes.get('id', default_id))} class={_quote(classes)}>"
            f"<title>{_text(attributes.get('tooltip', name))}</title>{content}</g>"
        )

    def _node(self, index: int, name: str, box: Box) -> None:
        attributes = self.graph.nodes[name]
        self._cover(box.x - box.width / 2, box.y - box.height / 2, box.x + box.width / 2, box.y + box.height / 2)
        filled = "filled" in attributes.get("style", "")
        fill = attributes.get("fillcolor", "lightgrey") if filled else "none"
        colour, thickness = attributes.get("color", "black"), attributes.get("penwidth", "1")
        paint = f"stroke={_quote(colour)} stroke-width={_quote(thickness)}"
        double = attributes.get("peripheries") == "2"
        inner = Box(box.x, box.y, box.width - 8, box.height - 8) if double else box
        drawn = _outline(attributes, inner, f"fill={_quote(fill)} {paint}")
        if double:
            drawn += _outline(attributes, box, f'fill="none" {paint}', lid=False)
        low = 6.0 if attributes.get("shape") == "cylinder" else 0.0
        drawn += _lines(self.labels[name], box.x, box.y + low / 2, attributes, 14)
        self._group("node", f"node{index + 1}", name, attributes, drawn)

    def _edge(self, index: int, wire: Wire) -> None:
        edge = self.graph.edges[index]
        attributes = edge.attributes
        (x1, y1), (x2, y2) = wire.start, wire.end
        tail = wire.bend or wire.start
        length = math.hypot(x2 - tail[0], y2 - tail[1]) or 1.0
        ux, uy = (x2 - tail[0]) / length, (y2 - tail[1]) / length
        half = _ARROW * 0.4
        x3, y3 = x2 - ux * _ARROW, y2 - uy * _ARROW
        curve = f"L{_n(x3)},{_n(y3)}" if wire.bend is None else f"Q{_at(*wire.bend)} {_at(x3, y3)}"
        colour = _quote(attributes.get("color", "black"))
        dashes = _DASHES.get(attributes.get("style", ""), "")
        drawn = (
            f'<path fill="none" stroke={colour} stroke-width={_quote(attributes.get("penwidth", "1"))}'
            f'{f" stroke-dasharray={_quote(dashes)}" if dashes else ""} d="M{_at(x1, y1)}{curve}"/>'
            f'<polygon fill={colour} stroke={colour} points="{_at(x2, y2)}'
            f' {_at(x3 - uy * half, y3 + ux * half)} {_at(x3 + uy * half, y3 - ux * half)}"/>'
        )
        for x, y in (wire.start, wire.end, wire.at(0.5)):
            self._cover(x, y, x, y)
        label = attributes.get("label", "").strip()
        if label:
            drawn += self._edge_text(label, wire, attributes)
        name = f"{edge.source}->{edge.target}"
        self._group("edge", f"edge{index + 1}", name, attributes, drawn)

    def _edge_text(self, label: str, wire: Wire, attributes: dict[str, str]) -> str:
        """Text beside loops and above lines that lie flat; across all others, on a ground of its own."""
        upright = self.direction in UPRIGHT
        x, y = wire.at(TEXT_AT if upright and wire.bend is None else 0.5)
        half = text_width(label, 12) / 2
        across = ""
        if upright and wire.beside:
            x += wire.beside * (half + 5)
        elif not upright and abs(wire.end[1] - wire.start[1]) <= 0.12 * abs(wire.end[0] - wire.start[0]):
            y -= 9
        else:
            place = f'x="{_n(x - half - 3)}" y="{_n(y - 8)}" width="{_n(2 * half + 6)}" height="16"'
            across = f'<rect fill="#FFFFFF" {place}/>'
        self._cover(x - half, y - 9, x + half, y + 9)
        return across + _lines([label], x, y, attributes, 14)

    def _cluster(self, index: int, cluster: DotCluster) -> None:
        frame = self.layout.clusters[index]
        if frame is None:
            return
        left, top, right, bottom = frame
        self._cover(*frame)
        attributes = cluster.attributes
        drawn = (
            f'<rect fill="none" stroke={_quote(attributes.get("color", "black"))} stroke-dasharray="5,2" rx="8"'
            f' x="{_n(left)}" y="{_n(top)}" width="{_n(right - left)}" height="{_n(bottom - top)}"/>'
        )
        label = attributes.get("label", "")
        size = _number(self.graph.attributes.get("fontsize"), 12)
        drawn += _lines([label], left + 10 + text_width(label, size) / 2, top + 12, {"fontsize": str(size)}, 12)
        self._group("cluster", f"clust{index + 1}", label, attributes, drawn)


def _outline(attributes: dict[str, str], box: Box, paint: str, *, lid: bool = True) -> str:
    shape = attributes.get("shape", "ellipse")
    half_w, half_h = box.width / 2, box.height / 2
    left, right, top, bottom = box.x - half_w, box.x + half_w, box.y - half_h, box.y + half_h
    if shape in ("ellipse", "oval", "circle", "doublecircle"):
        return f'<ellipse {paint} cx="{_n(box.x)}" cy="{_n(box.y)}" rx="{_n(half_w)}" ry="{_n(half_h)}"/>'
    if shape == "hexagon":
        cut = min(half_h * _HEXAGON_CUT, half_w / 2)
        corners = [(left, box.y), (left + cut, top), (right - cut, top)]
        corners += [(right, box.y), (right - cut, bottom), (left + cut, bottom)]
        return f'<polygon {paint} points="{" ".join(_at(*corner) for corner in corners)}"/>'
    if shape == "cylinder":
        return _cylinder(box, paint, lid=lid)
    rounded = ' rx="9"' if "rounded" in attributes.get("style", "") else ""
    return f'<rect {paint}{rounded} x="{_n(left)}" y="{_n(top)}" width="{_n(box.width)}" height="{_n(box.height)}"/>'


def _cylinder(box: Box, paint: str, *, lid: bool) -> str:
    left, right, rim = box.x - box.width / 2, box.x + box.width / 2, 6.0
    top, bottom = box.y - box.height / 2 + rim, box.y + box.height / 2 - rim
    bow = rim * 4 / 3  # of a cubic curve that comes near half an ellipse
    over = f"C{_at(left, top - bow)} {_at(right, top - bow)} {_at(right, top)}"
    under = f"C{_at(right, bottom + bow)} {_at(left, bottom + bow)} {_at(left, bottom)}"
    body = f'<path {paint} d="M{_at(left, top)}{over}L{_at(right, bottom)}{under}Z"/>'
    if not lid:
        return body
    front = f"M{_at(left, top)}C{_at(left, top + bow)} {_at(right, top + bow)} {_at(right, top)}"
    return f'{body}<path fill="none" {paint[paint.index("stroke=") :]} d="{front}"/>'


def _lines(lines: list[str], x: float, y: float, attributes: dict[str, str], default_size: float) -> str:
    size = _number(attributes.get("fontsize"), default_size)
    font = _quote(attributes.get("fontname", "Helvetica,Arial,sans-serif"))
    colour = f" fill={_quote(attributes['fontcolor'])}" if "fontcolor" in attributes else ""
    first = y - (len(lines) - 1) * size * _LINE_HEIGHT / 2 + size * 0.35
    return "".join(
        f'<text text-anchor="middle" x="{_n(x)}" y="{_n(first + index * size * _LINE_HEIGHT)}" font-family={font}'
        f' font-size="{_n(size)}"{colour}>{_text(line)}</text>'
        for index, line in enumerate(lines)
    )


def _number(text: str | None, default: float) -> float:
    try:
        value = float(text) if text is not None else default
    except ValueError:
        return default
    return value if math.isfinite(value) and 0 <= value < 10_000 else default


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _at(x: float, y: float) -> str:
    return f"{_n(x)},{_n(y)}"


def _text(text: str) -> str:
    return escape(text)


def _quote(text: str) -> str:
    return quoteattr(text)
