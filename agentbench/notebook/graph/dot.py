"""A graph's shape as DOT text, by the `graphviz` package; only its `source` is used, nothing is rendered here.

Names in the text are positions (`n0`, `e0`, `c0`), so ids of any spelling are safe; what people wrote appears in labels
and tooltips alone, through `esc`. State is not in the text: a change of state never needs a new layout.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

from agentbench._extras import require
from agentbench.notebook.graph.shape import GraphShape, ShapeEdge, ShapeNode
from agentbench.notebook.look.states import INK, STATES, Scheme
from agentbench.notebook.look.svg import text_width
from agentbench.notebook.text.escape import LABEL_LIMIT, esc

__all__ = ["DIRECTIONS", "FONT", "PAUSE_SIGN", "Detail", "Direction", "to_dot"]

Direction = Literal["LR", "RL", "TB", "BT"]
Detail = Literal["full", "short"]

DIRECTIONS: tuple[Direction, ...] = ("LR", "RL", "TB", "BT")
FONT = "Helvetica,Arial,sans-serif"
"""Fonts of the finished picture."""

# For a list of names graphviz-pure takes the narrower metrics of Times, and text then touches borders and lines.
_MEASURED_FONT = "Helvetica"

SHORT_LIMIT = 18
PAUSE_SIGN = "⏸"
# In this order before the name: the first is drawn as a shape, see `decorate_svg`.
_DRAWN_MARKS = {"hitl": PAUSE_SIGN, "start": "▷", "subworkflow": "▣"}

# Fixed colours for viewers that read no style sheet; the SVG's own style and the page's override them.
PAPER: dict[Scheme, dict[str, str]] = {
    "light": {"surface": "#FFFFFF", "line": "#57606A", "text": "#1F2328", "edge": "#6E7781", "paper": "#FBFBFC"},
    "dark": {"surface": "#2B2D31", "line": "#A0A6AD", "text": "#F0F0F0", "edge": "#A0A6AD", "paper": "#1E1F22"},
}

EDGE_STYLE: dict[str, dict[str, str]] = {
    "conditional": {"style": "dashed"},
    "switch": {"style": "dashed"},
    "loop": {"arrowhead": "vee"},
}


@functools.lru_cache(maxsize=16)  # the same graph is drawn in many cells
def to_dot(
    shape: GraphShape,
    *,
    direction: Direction = "LR",
    detail: Detail = "full",
    states: tuple[tuple[str, str], ...] | None = None,
    scheme: Scheme = "light",
) -> str:
    """Return DOT text for a shape.

    Args:
        shape: The graph.
        direction: Where the edges lead: left to right, right to left, top to bottom, bottom to top.
        detail: `short` cuts labels and leaves out those of edges.
        states: States to paint in, each behind its executor id, on an opaque ground: for formats without a style
            sheet, such as PNG.
        scheme: Colours of such a picture.
    """
    graphviz = require("graphviz", extra="notebook", purpose="draw a graph")
    paper = PAPER[scheme]
    text = {"fontname": _MEASURED_FONT, "fontcolor": paper["text"]}
    gaps = {"nodesep": "0.35", "ranksep": "0.5"} if detail == "full" else {"nodesep": "0.22", "ranksep": "0.45"}
    compound = {"compound": "true"} if shape.frames else {}
    box = {"shape": "box", "style": "rounded,filled", "margin": "0.18,0.08", "height": "0.44", "penwidth": "1.2"}
    ground = "transparent" if states is None else paper["paper"]
    graph = graphviz.Digraph(
        graph_attr={
            "color": paper["line"],
            "rankdir": direction,
            "bgcolor": ground,
            "fontsize": "12",
            "pad": "0.22",
            **text,
            **gaps,
            **compound,
        },
        node_attr={"fontsize": "13", "fillcolor": paper["surface"], "color": paper["line"], **text, **box},
        edge_attr={"fontsize": "12", "color": paper["edge"], "penwidth": "1.2", "arrowsize": "0.75", **text},
    )
    write = functools.partial(_node, shape, detail, None if states is None else dict(states), scheme)
    _add_level(graph, shape, None, write)
    for edge in shape.edges:
        _add_edge(graph, shape, edge, detail)
    source: str = graph.source
    return source


def _node(
    shape: GraphShape, detail: Detail, states: Mapping[str, str] | None, scheme: Scheme, node: ShapeNode
) -> dict[str, str]:
    """Attributes of a node. Fonts of pictures made of pixels lack the signs: a second line has kind or state there."""
    label = esc(node_label(node, detail), into="dot", limit=None)
    state = "idle" if states is None else states.get(node.id, "idle")
    if states is not None:
        label = esc(node.name, into="dot", limit=_limit(detail))
        words = node.words if state == "idle" else state
        # Words of ours behind an escaped label leave it escaped, but no longer marked as such: mark it anew.
        label = type(label)(f"{label}\\n{words}") if words else label
    found = {"id": shape.element_of[node.id], "class": node_class(node), "label": label}
    if "hitl" in node.kinds:
        # Graphviz makes hexagons around long names twice as wide as they need to be.
        lines = label.split("\\n")
        width = (max(text_width(line, 13) for line in lines) + (46 if len(lines) == 1 else 72)) / 72
        size = {"width": f"{width:.2f}", "height": "0.44" if len(lines) == 1 else "0.62"}
        found |= {"shape": "hexagon", "style": "filled", "fixedsize": "true", **size}
    elif "subworkflow" in node.kinds:
        found |= {"shape": "cylinder", "style": "filled", "margin": "0.18,0.1"}
    elif "start" in node.kinds:
        found |= {"shape": "ellipse", "style": "filled", "margin": "0.08,0.06"}
    if "output" in node.kinds:
        found["peripheries"] = "2"
    fill = STATES[state].light if scheme == "light" else STATES[state].dark
    return found if fill is None else {**found, "fillcolor": fill, "fontcolor": INK[scheme]}


def node_label(node: ShapeNode, detail: Detail) -> str:
    """Return the name of a node behind the signs of its kinds, cut; not escaped."""
    marks = "".join(mark for kind, mark in _DRAWN_MARKS.items() if kind in node.kinds)
    return esc(f"{marks} {node.name}".lstrip(), into="line", limit=_limit(detail))


def edge_label(edge: ShapeEdge, detail: Detail) -> str:
    """Return what is written on an edge, cut; not escaped."""
    return esc(edge.label, into="line", limit=LABEL_LIMIT) if detail == "full" else ""


def _limit(detail: Detail) -> int:
    return LABEL_LIMIT if detail == "full" else SHORT_LIMIT


def node_class(node: ShapeNode) -> str:
    """Return the CSS classes of a node: `ab_node`, and one `ab_k_…` for each kind."""
    return " ".join(["ab_node", *(f"ab_k_{kind}" for kind in node.kinds or ("executor",))])


def node_title(node: ShapeNode) -> str:
    """Return the full name of a node with what it is, for tooltips; not escaped."""
    facts = ", ".join(fact for fact in (node.words, node.type_name) if fact)
    members = f": {', '.join(node.members[:20])}{', …' if len(node.members) > 20 else ''}" if node.members else ""
    return f"{node.id}{f' ({facts})' if facts else ''}{members}"


def _add_level(
    graph: Any, shape: GraphShape, frame_id: str | None, write: Callable[[ShapeNode], dict[str, str]]
) -> None:
    for node in shape.nodes:
        if node.frame == frame_id:
            graph.node(shape.element_of[node.id], **write(node))
    for frame in shape.frames:
        if frame.frame == frame_id:
            facts = write(frame)
            look = {"id": facts["id"], "label": facts["label"], "class": facts["class"].replace("ab_node", "ab_frame")}
            with graph.subgraph(name=f"cluster_{facts['id']}") as inner:
                inner.attr(labeljust="l", style="rounded,dashed", margin="12", **look)
                _add_level(inner, shape, frame.id, write)


def _add_edge(graph: Any, shape: GraphShape, edge: ShapeEdge, detail: Detail) -> None:
    attributes = {
        "id": shape.element_of[edge.source, edge.target],
        "class": f"ab_edge ab_e_{edge.kind}",
        **EDGE_STYLE.get(edge.kind, {}),
    }
    if label := edge_label(edge, detail):
        # Spaces keep the text off the line, which Graphviz leaves no gap to.
        attributes["label"] = esc(f"  {label}  ", into="dot")
    source, target = shape.anchor(edge.source, leaving=True), shape.anchor(edge.target, leaving=False)
    ends = [(edge.source, source), (edge.target, target)]
    if edge.kind == "loop" and source != target:
        # Written the other way round: Graphviz looks for loops by itself, and where frames are in play finds others.
        attributes |= {"dir": "back", "arrowtail": "vee"}
        ends.reverse()
    for side, (node_id, _) in zip(("ltail", "lhead"), ends, strict=True):
        if shape.element_of[node_id].startswith("c"):
            attributes[side] = f"cluster_{shape.element_of[node_id]}"
    names = [shape.element_of[node_id] for _, node_id in ends]
    graph.edge(*names, **attributes)
