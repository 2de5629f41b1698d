"""A drawn graph as a Mermaid flowchart."""

from __future__ import annotations

import re

from agentbench.workflows.draw.drawn_graph import (
    DrawnEdge,
    DrawnGraph,
    DrawnNode,
    NodePath,
    NodeState,
    spelled_out,
    unique_names,
)

__all__ = ["mermaid_text"]

_CLASSES: dict[NodeState, str] = {
    "executed": "fill:#c8e6c9,stroke:#2e7d32,color:#1b1b1b",
    "failed": "fill:#ffcdd2,stroke:#c62828,color:#1b1b1b",
    "pending": "fill:#fff3c4,stroke:#f9a825,color:#1b1b1b",
}

# As ids or bare labels these end the chart, or what stands before them.
_RESERVED = frozenset({
    "call", "class", "classdef", "click", "default", "direction", "end", "flowchart", "graph", "href", "linkstyle",
    "style", "subgraph",
})  # fmt: skip


def mermaid_text(graph: DrawnGraph) -> str:
    """Write a graph as a Mermaid flowchart. Ids are made of word characters; the executors' own are the labels."""
    names = unique_names(graph.all_nodes(), _sanitised)
    lines = ["flowchart TD"]
    _write(graph, names, lines, "  ")
    for state, look in _CLASSES.items():
        marked = [names[node.path] for node in graph.all_nodes() if node.state == state]
        if marked:
            lines += [f"  classDef {state} {look};", f"  class {','.join(marked)} {state};"]
    return "\n".join(lines) + "\n"


def _write(graph: DrawnGraph, names: dict[NodePath, str], lines: list[str], indent: str) -> None:
    frames = {frame.path: frame for frame in graph.frames}
    for node in graph.nodes:
        frame = frames.get(node.path)
        if frame is None:
            lines.append(indent + _node(node, names[node.path]))
            continue
        # A frame has the id of its node, so that edges lead to the frame: the chart knows no node of the same id.
        lines.append(f'{indent}subgraph {names[node.path]}["sub-workflow: {_label(node)}"]')
        _write(frame, names, lines, indent + "  ")
        lines.append(f"{indent}end")
    lines.extend([indent + _edge(edge, names) for edge in graph.edges if edge.kind == "edge"])


def _node(node: DrawnNode, name: str) -> str:
    if node.kind == "fan_in":
        return f"{name}((fan-in))"
    return f'{name}["{_label(node)}"];'


def _label(node: DrawnNode) -> str:
    start = " (Start)" if node.kind == "start" else ""
    state = "" if node.state is None else f" [{node.state}]"
    return f"{_escaped(node.text)}{start}{state}"


def _edge(edge: DrawnEdge, names: dict[NodePath, str]) -> str:
    source, target = names[edge.source], names[edge.target]
    if edge.label is None:
        return f"{source} --> {target};"
    is_plain = edge.label.isidentifier() and edge.label.lower() not in _RESERVED - {"default"}
    label = edge.label if is_plain else f'"{_escaped(edge.label)}"'
    return f"{source} -. {label} .-> {target};"


def _sanitised(path: NodePath) -> str:
    name = "__".join([re.sub(r"\W", "_", part) for part in path])
    return name if name[:1].isalpha() and name.lower() not in _RESERVED else f"n_{name}"


def _escaped(text: str) -> str:
    """Write what would end a quoted label, or be read as markup, as character codes."""
    text = spelled_out(text)
    for character, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        text = text.replace(character, code)
    return " ".join(text.splitlines())
