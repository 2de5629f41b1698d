"""A graph's shape as DOT text, by the `graphviz` package; only its `source` is used, nothing is rendered here.

Names in the text are positions (`n0`, `e0`, `c0`), so ids of any spelling are safe; foreign text appears only in labels
and tooltips, through `esc`. States are only in the text of a PDF; elsewhere a new state does not need a new layout.
"""

import functools
from collections.abc import Mapping
from typing import Any, Literal

from agentbench._extras import require
from agentbench._text.escape import LABEL_LIMIT, esc
from agentbench.notebook.graph.shape import GraphShape, ShapeEdge, ShapeNode
from agentbench.notebook.look.states import INK, STATES, StateStyle
from agentbench.notebook.look.style import PALETTE
from agentbench.notebook.look.svg import text_width

__all__ = ["DIRECTIONS", "EDGE_STYLE", "PAUSE_SIGN", "Detail", "Direction", "edge_label", "node_label", "to_dot"]

Direction = Literal["LR", "RL", "TB", "BT"]
Detail = Literal["full", "short"]

DIRECTIONS: tuple[Direction, ...] = ("LR", "RL", "TB", "BT")

SHORT_LIMIT = 18
PAUSE_SIGN = "‖"  # more fonts have it than the pause sign
# Signs before the name, in this order; the first one is drawn as a shape, see `decorate_svg`.
_MARKS = {"hitl": PAUSE_SIGN, "start": "▷", "subworkflow": "▣"}

# The colours are for viewers without style sheets. For a list of fonts, graphviz-pure uses the narrower metrics of
# Times, so that text would touch borders and lines.
_COLOURS = PALETTE["light"]
_TEXT = {"fontname": "Helvetica", "fontcolor": _COLOURS["text"]}
_NODE = {"shape": "box", "style": "rounded,filled", "margin": "0.18,0.08", "height": "0.44", "penwidth": "1.2"}

_DASHED = {"style": "dashed"}
EDGE_STYLE: dict[str, dict[str, str]] = {"conditional": _DASHED, "switch": _DASHED, "loop": {"arrowhead": "vee"}}


@functools.lru_cache(maxsize=16)  # many cells draw the same graph
def to_dot(
    shape: GraphShape,
    *,
    direction: Direction = "LR",
    detail: Detail = "full",
    states: tuple[tuple[str, str], ...] = (),
) -> str:
    """Return DOT text for a shape; `short` shortens labels and omits those of edges. `states` are by element id."""
    graphviz = require("graphviz", extra="notebook", purpose="draw a graph")
    ranksep = f"{max(0.5, min(2, 0.05 * shape.largest_fan)):.2g}"
    gaps = {"nodesep": "0.35" if detail == "full" else "0.22", "ranksep": ranksep}
    whole = {"rankdir": direction, "bgcolor": "transparent", "fontsize": "12", "pad": "0.22", **_TEXT, **gaps}
    compound = {"compound": "true"} if shape.frames else {}
    line = _COLOURS["line"]
    graph = graphviz.Digraph(
        graph_attr={"color": line, **whole, **compound},
        node_attr={"fontsize": "13", "fillcolor": _COLOURS["surface"], "color": line, **_TEXT, **_NODE},
        edge_attr={"fontsize": "12", "color": _COLOURS["edge"], "penwidth": "1.2", "arrowsize": "0.75", **_TEXT},
    )
    _add_level(graph, shape, None, detail, dict(states))
    for edge in shape.edges:
        _add_edge(graph, shape, edge, detail)
    return str(graph.source)


def _add_level(graph: Any, shape: GraphShape, frame_id: str | None, detail: Detail, states: Mapping[str, str]) -> None:
    """Add the nodes and frames directly inside a frame."""
    for node in shape.nodes:
        if node.frame == frame_id:
            element = shape.element_of[node.id]
            graph.node(element, **_node_attributes(shape, node, detail, STATES[states.get(element, "idle")]))
    for frame in shape.frames:
        if frame.frame == frame_id:
            element, label = shape.element_of[frame.id], esc(node_label(frame, detail), into="dot", limit=None)
            with graph.subgraph(name=f"cluster_{element}") as inner:
                look = {"labeljust": "l", "style": "rounded,dashed", "margin": "12"}
                inner.attr(**look, id=element, label=label, **{"class": node_class(frame, "ab_frame")})
                _add_level(inner, shape, frame.id, detail, states)


def _node_attributes(shape: GraphShape, node: ShapeNode, detail: Detail, state: StateStyle) -> dict[str, str]:
    label = f"{node_label(node, detail)} {state.sign}".rstrip()
    attributes = {
        "id": shape.element_of[node.id],
        "class": node_class(node),
        "label": esc(label, into="dot", limit=None),
    }
    if state.light:
        attributes |= {"fillcolor": state.light, "fontcolor": INK["light"]}
    if "hitl" in node.kinds:
        # Graphviz makes hexagons around long names twice as wide as necessary.
        width = f"{(text_width(label, 13) + 46) / 72:.2f}"
        attributes |= {"shape": "hexagon", "style": "filled", "fixedsize": "true", "width": width}
    elif "subworkflow" in node.kinds:
        attributes |= {"shape": "cylinder", "style": "filled", "margin": "0.18,0.1"}
    elif "start" in node.kinds:
        attributes |= {"shape": "ellipse", "style": "filled", "margin": "0.08,0.06"}
    return {**attributes, "peripheries": "2"} if "output" in node.kinds else attributes


def node_label(node: ShapeNode, detail: Detail) -> str:
    """Return the signs of a node's kinds and its name, shortened; not escaped."""
    marks = "".join(mark for kind, mark in _MARKS.items() if kind in node.kinds)
    return esc(f"{marks} {node.name}".lstrip(), into="line", limit=LABEL_LIMIT if detail == "full" else SHORT_LIMIT)


def edge_label(edge: ShapeEdge, detail: Detail) -> str:
    """Return the label of an edge, shortened; not escaped."""
    return esc(edge.label, into="line", limit=LABEL_LIMIT) if detail == "full" else ""


def node_class(node: ShapeNode, first: str = "ab_node") -> str:
    """Return the CSS classes of a node or frame: `first`, and one `ab_k_…` for each kind."""
    return " ".join([first, *(f"ab_k_{kind}" for kind in node.kinds or ("executor",))])


def _add_edge(graph: Any, shape: GraphShape, edge: ShapeEdge, detail: Detail) -> None:
    element = shape.element_of
    attributes = {"id": element[edge.source, edge.target], "class": f"ab_edge ab_e_{edge.kind}"}
    attributes |= EDGE_STYLE.get(edge.kind, {})
    if label := edge_label(edge, detail):
        # Spaces separate the text from the line, because Graphviz leaves no gap.
        attributes["label"] = esc(f"  {label}  ", into="dot")
    ends = [(edge.source, shape.anchor(edge.source, leaving=True)), (edge.target, shape.anchor(edge.target))]
    if edge.kind == "loop" and ends[0][1] != ends[1][1]:
        # Written in reverse, because Graphviz detects loops itself, and with frames it would find different ones.
        attributes |= {"dir": "back", "arrowtail": "vee"}
        ends.reverse()
    for side, (node_id, _) in zip(("ltail", "lhead"), ends, strict=True):
        if element[node_id].startswith("c"):
            attributes[side] = f"cluster_{element[node_id]}"
    graph.edge(*(element[anchor] for _, anchor in ends), **attributes)
