"""Post-processing of the renderers' SVG: first cleaned, then decorated with titles, classes, states and style.

Cleaning keeps a list of harmless elements and attributes and removes everything else: scripts, links, comments with
versions, `style` attributes. It is applied to the SVG of every renderer.
"""

import hashlib
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from agentbench._text.escape import esc
from agentbench.exceptions import RenderFailed
from agentbench.notebook.graph.dot import PAUSE_SIGN
from agentbench.notebook.graph.shape import GraphShape, ShapeEdge, ShapeNode
from agentbench.notebook.look.states import INK, PAUSE, STATES
from agentbench.notebook.look.style import PALETTE, static_style
from agentbench.notebook.look.svg import number, text_width

__all__ = ["clean_svg", "decorate_svg"]

SVG_NAMESPACE = "http://www.w3.org/2000/svg"

_ELEMENTS = {"svg", "g", "title", "desc", "path", "polygon", "polyline", "ellipse", "circle", "rect", "text", "tspan"}
_PLACES = {"d", "points", "cx", "cy", "r", "rx", "ry", "x", "y", "width", "height", "font-size"}
_ATTRIBUTES = {
    *("id", "class", "viewBox", "transform", "fill", "fill-opacity", "stroke", "stroke-width", "opacity"),
    *("stroke-dasharray", "stroke-opacity", "stroke-linecap", "stroke-linejoin", "text-anchor"),
    *("font-family", "font-weight", "font-style", *_PLACES),
}
_PLAIN_PAINT = re.compile(r"#[0-9A-Fa-f]{3,8}|[A-Za-z]+")
_FRACTION = re.compile(r"-?\d+\.\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EDGE_CLASS = {"path": "ab_wire", "polygon": "ab_tip"}
_SHAPES = frozenset(["path", "polygon", "ellipse", "rect"])
# Kinds of nodes with other shapes than boxes.
_OWN_SHAPE = frozenset(["start", "hitl", "subworkflow"])
_ROUNDING = 9.0
_NOTE_MARGIN, _NOTE_LINE = 14, 16
_ICON = {"fill": "none", "stroke": INK["light"], "stroke-width": "1.9", "stroke-linecap": "round"}

Bounds = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def clean_svg(data: bytes, renderer: str) -> bytes:
    """Return an SVG that contains only shapes and text, sized in pixels; `RenderFailed` for other data."""
    if b"<!ENTITY" in data:
        raise RenderFailed(renderer, "its SVG declares entities")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise RenderFailed(renderer, f"no SVG came back ({error})") from error
    if _local(root.tag) != "svg":
        raise RenderFailed(renderer, "no SVG came back")
    _scrub(root)
    for side in ("width", "height"):
        root.set(side, root.get(side, "").removesuffix("pt"))
    root.set("xmlns", SVG_NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode").encode()


def decorate_svg(
    svg: bytes, shape: GraphShape, states: Mapping[str, str] | None, *, theme: str = "auto", text: str = ""
) -> str:
    """Add names, states by element id, a style and a background to the drawing of a shape.

    `states=None` is for a picture that a panel paints: with connections, without a style. `text` is for readers that
    do not see the picture.
    """
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = _local(element.tag)
    root.set("xmlns", SVG_NAMESPACE)
    root.set("font-family", "Helvetica,Arial,sans-serif")
    body = root.find("g")
    if body is None:
        return svg.decode()
    edges = {shape.element_of[edge.source, edge.target]: edge for edge in shape.edges}
    for group in body:
        element_id = group.get("id", "")
        state = (states or {}).get(element_id, "idle")
        kind, _, classes = group.get("class", "").partition(" ")
        group.set("class", classes or kind)
        for each in group.iter("text"):
            each.attrib.pop("font-family", None)
        if element_id in shape.node_of:
            _decorate_node(group, shape.node_of[element_id], None if states is None else state)
        elif element_id in edges:
            _decorate_edge(group, shape, edges[element_id], live=states is None)
        if state != "idle":
            group.set("class", f"{group.get('class')} ab_s_{state}")
    _sort(body, shape)
    if states is None:
        root.set("class", "ab_svg")
    else:
        _add_frame(root, shape, theme, text, with_states=bool(states))
    return ElementTree.tostring(root, encoding="unicode")


def _local(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _scrub(element: Element) -> None:
    """Remove everything except shapes and text; links are replaced by their content."""
    element.tag = _local(element.tag)
    for name, value in list(element.items()):
        harmless = name in _ATTRIBUTES and (name not in ("fill", "stroke") or _PLAIN_PAINT.fullmatch(value))
        if not harmless:
            del element.attrib[name]
        elif name in _PLACES:
            # A tenth of a pixel is precise enough and keeps saved notebooks small.
            element.set(name, _FRACTION.sub(lambda match: number(float(match[0])), value))
    if element.tag not in ("text", "tspan", "title", "desc"):
        element.text = None
    element.tail = None
    allowed: list[Element] = []
    for child in element:
        if _local(child.tag) in (*_ELEMENTS, "a"):
            _scrub(child)
            allowed += [child] if child.tag != "a" else list(child)
    element[:] = allowed


def _decorate_node(group: Element, node: ShapeNode, state: str | None) -> None:
    """Add the name and the signs of a state; without a state, the data that a panel needs to add them."""
    facts = ", ".join(fact for fact in (node.words, node.type_name) if fact)
    members = f": {', '.join(node.members[:20])}{', …' if len(node.members) > 20 else ''}" if node.members else ""
    _set_title(group, f"{node.id}{f' ({facts})' if facts else ''}{members}")
    shapes = [child for child in group if child.tag in _SHAPES]
    for index, drawn in enumerate(shapes):
        drawn.set("class", "ab_shape" if index == 0 else "ab_line")
    if not shapes:
        return
    if not _OWN_SHAPE.intersection(node.kinds) or group.get("class", "").startswith("ab_frame"):
        for drawn in shapes:
            _as_rect(drawn)
    bounds = _bounds(shapes)
    # The largest shape: the outer border of an output, the body below a cylinder's lid.
    outline = next((each for each in shapes if math.dist(_bounds([each]), bounds) < 1), shapes[0])
    _draw_pause(group)
    if state is None:
        group.set("data-name", esc(node.name, into="line"))
        group.set("data-what", node.words)
        group.set("data-box", " ".join(f"{value:g}" for value in bounds))
        outline.set("class", f"{outline.get('class')} ab_outer")
        return
    if STATES[state].icon:
        _add_mark(group, shapes[0], bounds, state)
    if state == "waiting":  # a double border: wider copies below the shape
        for name, width, colour in (("ab_gap", "4", {"stroke": "#FFFFFF"}), ("ab_halo", "6.5", {})):
            ring = {**outline.attrib, "fill": "none", "class": name, **colour, "stroke-width": width}
            group.insert(1, Element(outline.tag, ring))


def _decorate_edge(group: Element, shape: GraphShape, edge: ShapeEdge, *, live: bool) -> None:
    for child in group:
        if child.tag in _EDGE_CLASS:
            child.set("class", _EDGE_CLASS[child.tag])
    for text in group.iter("text"):
        # Graphviz leaves no gap between a line and the text above it.
        text.set("y", f"{float(text.get('y', '0')) - 2.5:g}")
    names = shape.name_of
    label = f" [{edge.label}]" if edge.label else ""
    _set_title(group, f"{names.get(edge.source, edge.source)} -> {names.get(edge.target, edge.target)}{label}")
    if live:
        group.set("data-from", shape.element_of[edge.source])
        group.set("data-to", shape.element_of[edge.target])


def _set_title(group: Element, text: str) -> None:
    for title in group.iter("title"):
        title.text = esc(text, into="line")  # the serializer escapes markup


def _bounds(shapes: Sequence[Element]) -> Bounds:
    """Return the bounds of some shapes. Renderers write only absolute coordinates."""
    xs: list[float] = []
    ys: list[float] = []
    for shape in shapes:
        at = {name: float(shape.get(name, "0")) for name in ("x", "y", "width", "height", "cx", "cy", "rx", "ry")}
        if shape.tag == "ellipse":
            xs += [at["cx"] - at["rx"], at["cx"] + at["rx"]]
            ys += [at["cy"] - at["ry"], at["cy"] + at["ry"]]
        elif shape.tag == "rect":
            xs += [at["x"], at["x"] + at["width"]]
            ys += [at["y"], at["y"] + at["height"]]
        else:
            numbers = [float(each) for each in _NUMBER.findall(shape.get("points", shape.get("d", "")))]
            xs += numbers[::2]
            ys += numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _as_rect(shape: Element) -> None:
    """Convert a rounded box to a `rect`; Graphviz writes it as eight curves."""
    if shape.tag == "path":
        left, top, right, bottom = _bounds([shape])
        shape.tag = "rect"
        del shape.attrib["d"]
        _set_numbers(shape, x=left, y=top, width=right - left, height=bottom - top, rx=_ROUNDING)


def _set_numbers(element: Element, **values: float) -> None:
    for name, value in values.items():
        element.set(name, number(value))


def _add_mark(group: Element, shape: Element, bounds: Bounds, state: str) -> None:
    """Add the sign of a state at the upper right of the shape, with a fill for viewers without styles."""
    style = STATES[state]
    left, top, right, _bottom = bounds
    if style.light is not None and "ab_node" in group.get("class", ""):
        shape.set("fill", style.light)
    inset = 0.0 if shape.tag in ("path", "rect") else 0.12 * (right - left)  # of the corners
    mark = SubElement(group, "g", {"class": "ab_mark", "transform": f"translate({right - inset:g} {top + 1:g})"})
    SubElement(mark, "circle", {"r": "8.5", "fill": style.light or "#FFFFFF", "stroke": "#57606A"})
    SubElement(mark, "path", {"d": style.icon, **_ICON})


def _draw_pause(group: Element) -> None:
    """Draw the pause sign before a name as a shape, because many fonts lack it."""
    text = group.find("text")
    label = "" if text is None else text.text or ""
    if text is None or not label.startswith(PAUSE_SIGN):
        return
    text.text = label[len(PAUSE_SIGN) :].lstrip()
    half = text_width(text.text, float(text.get("font-size", "13"))) / 2
    middle, y = float(text.get("x", "0")), float(text.get("y", "0")) - 4.5
    text.set("x", f"{middle + 6:g}")
    place = {"class": "ab_icon", "transform": f"translate({middle - half - 4:g} {y:g})"}
    SubElement(group, "path", {"d": PAUSE, **place, **_ICON})


def _sort(body: Element, shape: GraphShape) -> None:
    """Sort frames before edges before nodes, and nodes in execution order, for reading and for the Tab key."""
    order = {shape.element_of[node_id]: place for place, node_id in enumerate(shape.levels)}
    body[:] = sorted(body, key=lambda each: ("cen".find(each.get("id", "")[:1]), order.get(each.get("id", ""), 0)))


def _add_frame(root: Element, shape: GraphShape, theme: str, text: str, *, with_states: bool) -> None:
    """Add the parts of a standalone picture: name and description, style, and a background for any page."""
    digest = hashlib.sha256(f"{shape.name}\0{text}".encode("utf-8", "replace")).hexdigest()[:8]
    root.set("role", "img")
    root.set("aria-labelledby", f"ab_{digest}_t ab_{digest}_d")
    root.set("class", f"ab_svg ab_{theme}")
    left, top, width, height = (float(each) for each in root.get("viewBox", "0 0 100 100").split())
    # Lines below the picture report folded and hidden nodes.
    note = textwrap.wrap(esc(shape.note, into="line", limit=400), max(24, int(width / 7)))
    wider = max([0.0, *(text_width(line, 12) * 1.1 + 2 * _NOTE_MARGIN - width for line in note)])
    left, width = left - wider / 2, width + wider
    for index, line in enumerate(note):
        place = {"x": f"{left + _NOTE_MARGIN:g}", "y": f"{top + height + 8 + index * _NOTE_LINE:g}"}
        SubElement(root, "text", {"class": "ab_note", **place, "font-size": "12"}).text = line
    if note:
        height += 8 + len(note) * _NOTE_LINE
        root.set("viewBox", f"{left:g} {top:g} {width:g} {height:g}")
        _set_numbers(root, width=width, height=height)
    colours = PALETTE["light"]
    ground = Element("rect", {"class": "ab_ground", "fill": colours["ground"], "stroke": colours["rim"]})
    _set_numbers(ground, x=left + 0.5, y=top + 0.5, width=width - 1, height=height - 1, rx=8)
    parts = [Element("title", {"id": f"ab_{digest}_t"}), Element("desc", {"id": f"ab_{digest}_d"}), Element("style")]
    texts = (f"Graph of {esc(shape.name, into='line', limit=200)}", text, static_style(theme, states=with_states))
    for part, content in zip(parts, texts, strict=True):
        part.text = content
    root[:0] = [*parts, ground]
