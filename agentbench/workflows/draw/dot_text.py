"""A drawn graph as DOT text, for Graphviz and for the renderers of the notebook layer."""

from __future__ import annotations

import hashlib

from agentbench.workflows.draw.drawn_graph import (
    DrawnEdge,
    DrawnGraph,
    DrawnNode,
    NodePath,
    NodeState,
    spelled_out,
    unique_names,
)

__all__ = ["dot_text"]

_START_FILL = "lightgreen"
_FILLS: dict[NodeState, str] = {"executed": "#c8e6c9", "failed": "#ffcdd2", "pending": "#fff3c4"}


def dot_text(graph: DrawnGraph) -> str:
    """Write a graph as DOT. Node ids are the executors' own; inside a frame they follow its id and a slash."""
    names = unique_names(graph.all_nodes(), lambda path: _escaped("/".join(path)))
    lines = [
        "digraph Workflow {",
        "  rankdir=TD;",
        "  node [shape=box, style=filled, fillcolor=lightblue];",
        "  edge [color=black, arrowhead=vee];",
    ]
    _write(graph, names, lines, "  ")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _write(graph: DrawnGraph, names: dict[NodePath, str], lines: list[str], indent: str) -> None:
    lines.extend([f'{indent}"{names[node.path]}" [{_node_attributes(node)}];' for node in graph.nodes])
    for frame in graph.frames:
        digits = hashlib.sha256("/".join(frame.path).encode(errors="surrogatepass")).hexdigest()[:8]
        lines.append(f"{indent}subgraph cluster_{digits} {{")
        lines.append(f"{indent}  label={_quoted(f'sub-workflow: {frame.path[-1]}')};")
        lines.append(f"{indent}  style=dashed;")
        _write(frame, names, lines, indent + "  ")
        lines.append(f"{indent}}}")
    # Behind the frames: the first mention of a node decides in which frame it lies.
    lines.extend([indent + _edge(edge, names) for edge in graph.edges])


def _node_attributes(node: DrawnNode) -> str:
    lines = [node.text]
    if node.kind == "start":
        lines.append("(Start)")
    if node.state is not None:
        lines.append(f"[{node.state}]")
    text = "\\n".join(map(_escaped, lines))
    label = f'label="{text}"'
    if node.kind == "fan_in":
        return f"shape=ellipse, fillcolor=lightgoldenrod, {label}"
    if node.kind == "internal":
        return f'style="filled,dashed", fillcolor=whitesmoke, {label}'
    if node.state is not None:
        return f'fillcolor="{_FILLS[node.state]}", class={node.state}, {label}'
    return f"fillcolor={_START_FILL}, {label}" if node.kind == "start" else label


def _edge(edge: DrawnEdge, names: dict[NodePath, str]) -> str:
    ends = f'"{names[edge.source]}" -> "{names[edge.target]}"'
    if edge.kind == "inside":
        return f"{ends} [style=dotted, arrowhead=none];"
    return f"{ends};" if edge.label is None else f"{ends} [style=dashed, label={_quoted(edge.label)}];"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Escape what ends a quoted DOT text, and what a label would take for an escape of its own."""
    text = spelled_out(text).replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("\r\n", "\\n").replace("\r", "\\n").replace("\n", "\\n")
