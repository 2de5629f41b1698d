"""Positions by Graphviz: a shape as DOT text, made by the `graphviz` package, and the answer as a `Layout`.

Names in the text are positions (`n0`, `e0`, `c0`), so ids of any spelling are safe; foreign text appears only in
labels, escaped. Nodes have the sizes of our own painter.
"""

import functools
from typing import Any

from agentbench._extras import require
from agentbench._text.escape import esc
from agentbench.notebook.graph.layout import (
    UPRIGHT,
    Box,
    Detail,
    Direction,
    Layout,
    Point,
    Wire,
    edge_label,
    node_label,
    node_size,
)
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode

_POINTS_PER_INCH = 72


@functools.lru_cache(maxsize=16)  # many cells draw the same graph
def to_dot(shape: GraphShape, *, direction: Direction = "LR", detail: Detail = "full") -> str:
    """Return DOT text for a shape; `short` shortens labels and omits those of edges."""
    graphviz = require("graphviz", extra="notebook", purpose="draw a graph")
    gap = max(0.5, min(2, 0.05 * shape.largest_fan)) + (0.35 if shape.frames and direction in UPRIGHT else 0)
    graph = graphviz.Digraph(
        graph_attr={
            "rankdir": direction,
            "nodesep": "0.35" if detail == "full" else "0.22",
            "ranksep": f"{gap:.2g}",
            "fontname": "Helvetica",
            "fontsize": "12",
            **({"compound": "true"} if shape.frames else {}),
        },
        node_attr={"shape": "box", "style": "rounded", "fixedsize": "true", "fontname": "Helvetica", "fontsize": "13"},
        edge_attr={"fontname": "Helvetica", "fontsize": "12", "arrowsize": "0.8"},
    )
    _add_level(graph, shape, None, detail)
    for edge in shape.edges:
        _add_edge(graph, shape, edge, detail)
    return str(graph.source)


def _add_level(graph: Any, shape: GraphShape, frame_id: str | None, detail: Detail) -> None:
    """Add the nodes and frames directly inside a frame."""
    for node in shape.nodes:
        if node.frame == frame_id:
            graph.node(shape.element_of[node.id], **_node_attributes(node, detail))
    for frame in shape.frames:
        if frame.frame == frame_id:
            with graph.subgraph(name=f"cluster_{shape.element_of[frame.id]}") as inner:
                inner.attr(labeljust="l", style="rounded,dashed", margin="14", label=_quoted(node_label(frame, detail)))
                _add_level(inner, shape, frame.id, detail)


def _node_attributes(node: ShapeNode, detail: Detail) -> dict[str, str]:
    label = node_label(node, detail)
    width, height = (f"{points / _POINTS_PER_INCH:.3f}" for points in node_size(node, label))
    attributes = {"label": _quoted(label), "width": width, "height": height}
    # Edges end at the outline of the shape; those of the other kinds are close to boxes.
    if "subworkflow" in node.kinds:
        attributes["shape"] = "cylinder"
    elif "start" in node.kinds and "hitl" not in node.kinds:
        attributes["shape"] = "ellipse"
    return attributes


def _add_edge(graph: Any, shape: GraphShape, edge: ShapeEdge, detail: Detail) -> None:
    element = shape.element_of
    attributes = {"id": element[edge.source, edge.target]}
    if edge.is_dashed:
        attributes["style"] = "dashed"
    if label := edge_label(edge, detail):
        # Spaces separate the text from the line, because Graphviz leaves no gap.
        attributes["label"] = _quoted(f"  {label}  ")
    ends = [(edge.source, shape.anchor(edge.source, leaving=True)), (edge.target, shape.anchor(edge.target))]
    if edge.kind == "loop" and ends[0][1] != ends[1][1]:
        # Written in reverse, because Graphviz detects loops itself, and with frames it would find different ones.
        attributes["dir"] = "back"
        ends.reverse()
    for side, (node_id, _) in zip(("ltail", "lhead"), ends, strict=True):
        if element[node_id].startswith("c"):
            attributes[side] = f"cluster_{element[node_id]}"
    graph.edge(*(element[anchor] for _, anchor in ends), **attributes)


def _quoted(label: str) -> str:
    """Return a label as the string class that the `graphviz` package does not interpret as markup or escapes."""
    graphviz = require("graphviz", extra="notebook", purpose="draw a graph")
    # Graphviz reads entities inside labels: `&lt;` would become `<`.
    quoted: str = graphviz.nohtml(graphviz.escape(esc(label, into="line", limit=None).replace("&", "&amp;")))
    return quoted


def read_positions(answer: Any, shape: GraphShape) -> Layout:
    """Return the layout in Graphviz's JSON, whose y axis points upwards."""
    top = float(answer["bb"].split(",")[3])

    def point(text: str) -> Point:
        x, y = text.split(",")
        return float(x), top - float(y)

    boxes: dict[str, Box] = {}
    for each in answer.get("objects", ()):
        name = each["name"]
        node = shape.node_of[name.removeprefix("cluster_")]
        if name.startswith("cluster_"):
            left, low, right, high = map(float, each["bb"].split(","))
            boxes[node.id] = Box((left + right) / 2, top - (low + high) / 2, right - left, high - low)
        else:
            size = (float(each[side]) * _POINTS_PER_INCH for side in ("width", "height"))
            boxes[node.id] = Box(*point(each["pos"]), *size)
    pairs = {shape.element_of[edge.source, edge.target]: (edge.source, edge.target) for edge in shape.edges}
    wires: dict[tuple[str, str], Wire] = {}
    for each in answer.get("edges", ()):
        *arrows, spline = each["pos"].partition(" ")[::2] if each["pos"][0] in "es" else ("", each["pos"])
        line = [point(text) for text in spline.split()]
        if arrows[0].startswith("s,"):
            line.reverse()
        tip = point(arrows[0][2:]) if arrows[0] else line[-1]
        x, y = point(each["lp"]) if "lp" in each else line[0]
        wires[pairs[each["id"]]] = Wire([*line, tip], (x, y - 3), curved=True)
    names = (node.id for node in shape.node_of.values())
    return Layout({name: boxes[name] for name in names}, {pair: wires[pair] for pair in pairs.values()})
