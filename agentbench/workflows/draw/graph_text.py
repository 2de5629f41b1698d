"""Writes a graph as DOT text, for Graphviz and the notebook layer's renderers, and as a Mermaid flowchart."""

from __future__ import annotations

import hashlib
import re

from agentbench._plain_text import plain_text
from agentbench.workflows.draw.drawn_graph import (
    DrawnEdge,
    DrawnGraph,
    DrawnNode,
    NodePath,
    NodeState,
    unique_names,
)

_FILLS: dict[NodeState, str] = {"executed": "#c8e6c9", "failed": "#ffcdd2", "pending": "#fff3c4"}
_STROKES: dict[NodeState, str] = {"executed": "#2e7d32", "failed": "#c62828", "pending": "#f9a825"}


def dot_text(graph: DrawnGraph) -> str:
    """Write a graph as DOT. Node ids are the executors' ids; inside a frame they are prefixed by its id and a slash."""
    names = unique_names(graph.all_nodes(), lambda path: _dot_escaped("/".join(path)))
    lines = [
        "digraph Workflow {",
        "  rankdir=TD;",
        "  node [shape=box, style=filled, fillcolor=lightblue];",
        "  edge [color=black, arrowhead=vee];",
    ]
    _write_dot(graph, names, lines, "  ")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _write_dot(graph: DrawnGraph, names: dict[NodePath, str], lines: list[str], indent: str) -> None:
    lines.extend([f'{indent}"{names[node.path]}" [{_dot_attributes(node)}];' for node in graph.nodes])
    for frame in graph.frames:
        digits = hashlib.sha256("/".join(frame.path).encode(errors="surrogatepass")).hexdigest()[:8]
        lines.append(f"{indent}subgraph cluster_{digits} {{")
        lines.append(f'{indent}  label="{_dot_escaped(f"sub-workflow: {frame.path[-1]}")}";')
        lines.append(f"{indent}  style=dashed;")
        _write_dot(frame, names, lines, indent + "  ")
        lines.append(f"{indent}}}")
    # After the frames: the first mention of a node decides in which frame it lies.
    for edge in graph.edges:
        ends = f'"{names[edge.source]}" -> "{names[edge.target]}"'
        if edge.kind == "inside":
            ends += " [style=dotted, arrowhead=none]"
        elif edge.label is not None:
            ends += f' [style=dashed, label="{_dot_escaped(edge.label)}"]'
        lines.append(f"{indent}{ends};")


def _dot_attributes(node: DrawnNode) -> str:
    lines = [node.text]
    if node.kind == "start":
        lines.append("(Start)")
    if node.state is not None:
        lines.append(f"[{node.state}]")
    text = "\\n".join(map(_dot_escaped, lines))
    label = f'label="{text}"'
    if node.kind == "fan_in":
        return f"shape=ellipse, fillcolor=lightgoldenrod, {label}"
    if node.kind == "internal":
        return f'style="filled,dashed", fillcolor=whitesmoke, {label}'
    if node.state is not None:
        return f'fillcolor="{_FILLS[node.state]}", class={node.state}, {label}'
    return f"fillcolor=lightgreen, {label}" if node.kind == "start" else label


def _dot_escaped(text: str) -> str:
    """Escape characters that would end a quoted DOT text or start an escape sequence in a label."""
    text = plain_text(text, None).replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("\n", "\\n")


# As ids or bare labels, these words end the chart or the current part of it.
_RESERVED = frozenset({
    "call", "class", "classdef", "click", "default", "direction", "end", "flowchart", "graph", "href", "linkstyle",
    "style", "subgraph",
})  # fmt: skip


def mermaid_text(graph: DrawnGraph) -> str:
    """Write a graph as a Mermaid flowchart. Ids consist of word characters; the executors' ids are the labels."""
    names = unique_names(graph.all_nodes(), _mermaid_id)
    lines = ["flowchart TD"]
    _write_mermaid(graph, names, lines, "  ")
    for state, stroke in _STROKES.items():
        marked = [names[node.path] for node in graph.all_nodes() if node.state == state]
        if marked:
            lines.append(f"  classDef {state} fill:{_FILLS[state]},stroke:{stroke},color:#1b1b1b;")
            lines.append(f"  class {','.join(marked)} {state};")
    return "\n".join(lines) + "\n"


def _write_mermaid(graph: DrawnGraph, names: dict[NodePath, str], lines: list[str], indent: str) -> None:
    frames = {frame.path: frame for frame in graph.frames}
    for node in graph.nodes:
        name, frame = names[node.path], frames.get(node.path)
        start = " (Start)" if node.kind == "start" else ""
        state = "" if node.state is None else f" [{node.state}]"
        label = f"{_escape_mermaid(node.text)}{start}{state}"
        if frame is not None:
            # A frame has the id of its node, so that edges lead to the frame; the chart has no node with the same id.
            lines.append(f'{indent}subgraph {name}["sub-workflow: {label}"]')
            _write_mermaid(frame, names, lines, indent + "  ")
            lines.append(f"{indent}end")
        else:
            lines.append(f"{indent}{name}((fan-in))" if node.kind == "fan_in" else f'{indent}{name}["{label}"];')
    edges = [edge for edge in graph.edges if edge.kind == "edge"]
    lines.extend([f"{indent}{names[e.source]} {_mermaid_arrow(e)} {names[e.target]};" for e in edges])


def _mermaid_arrow(edge: DrawnEdge) -> str:
    if edge.label is None:
        return "-->"
    is_plain = edge.label.isidentifier() and edge.label.lower() not in _RESERVED - {"default"}
    label = edge.label if is_plain else f'"{_escape_mermaid(edge.label)}"'
    return f"-. {label} .->"


def _mermaid_id(path: NodePath) -> str:
    name = "__".join([re.sub(r"\W", "_", part) for part in path])
    return name if name[:1].isalpha() and name.lower() not in _RESERVED else f"n_{name}"


def _escape_mermaid(text: str) -> str:
    """Write characters that would end a quoted label, or be read as markup, as character codes."""
    text = plain_text(text, None)
    for character, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        text = text.replace(character, code)
    return " ".join(text.splitlines())
