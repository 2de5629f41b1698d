"""Writes a graph as DOT text and as a Mermaid flowchart, for other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain, count
from typing import Literal

from agentbench._plain_text import plain_text
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode, short_digest

NodeState = Literal["failed", "pending", "executed"]

_FILLS: dict[NodeState, str] = {"executed": "#c8e6c9", "failed": "#ffcdd2", "pending": "#fff3c4"}
_STROKES: dict[NodeState, str] = {"executed": "#2e7d32", "failed": "#c62828", "pending": "#f9a825"}


def dot_text(shape: GraphShape, states: Mapping[str, NodeState]) -> str:
    """Write a graph as DOT. Node ids are the executors' ids; inside a frame they are prefixed by its id and a slash."""
    names = _unique({node.id: _dot_escaped(node.id) for node, _ in shape.outline})
    lines = [
        "digraph Workflow {",
        "  rankdir=TD;",
        "  node [shape=box, style=filled, fillcolor=lightblue];",
        "  edge [color=black, arrowhead=vee];",
    ]

    def write(frame: str | None, indent: str) -> None:
        nodes, frames, edges = _inside(shape, frame)
        lines.extend(f'{indent}"{names[node.id]}" [{_dot_attributes(node, states.get(node.id))}];' for node in nodes)
        for each in frames:
            lines.append(f"{indent}subgraph cluster_{short_digest(each.id)} {{")
            lines.append(f'{indent}  label="{_dot_escaped(f"sub-workflow: {each.name}")}";')
            lines.append(f"{indent}  style=dashed;")
            write(each.id, indent + "  ")
            lines.append(f"{indent}}}")
        # After the frames: the first mention of a node decides in which frame it lies.
        for each in frames:
            entries = [node for node in _inside(shape, each.id)[0] if "start" in node.kinds]
            inner = (f'"{names[each.id]}" -> "{names[entry.id]}"' for entry in entries)
            lines.extend(f"{indent}{ends} [style=dotted, arrowhead=none];" for ends in inner)
        for edge in edges:
            label = f' [style=dashed, label="{_dot_escaped(edge.plain_label)}"]' if edge.plain_label else ""
            lines.append(f'{indent}"{names[edge.source]}" -> "{names[edge.target]}"{label};')

    write(None, "  ")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _inside(shape: GraphShape, frame: str | None) -> tuple[list[ShapeNode], list[ShapeNode], list[ShapeEdge]]:
    """Return the nodes (frames included), the frames and the edges directly inside a frame."""
    nodes = [node for node, _ in shape.outline if node.frame == frame]
    ids = {node.id for node in nodes}
    return nodes, [node for node in nodes if node in shape.frames], [edge for edge in shape.edges if edge.source in ids]


def _unique(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the wanted names by node id, with a number appended to those that another node has."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for node_id, name in wanted.items():
        numbered = (f"{name}_{number}" for number in count(2))
        names[node_id] = next(each for each in chain([name], numbered) if each not in taken)
        taken.add(names[node_id])
    return names


def _dot_attributes(node: ShapeNode, state: NodeState | None) -> str:
    marks = [*(["(Start)"] if "start" in node.kinds else []), *([f"[{state}]"] if state else [])]
    text = "\\n".join(map(_dot_escaped, [node.name, *marks]))
    label = f'label="{text}"'
    if "fan_in" in node.kinds:
        return f"shape=ellipse, fillcolor=lightgoldenrod, {label}"
    if "internal" in node.kinds:
        return f'style="filled,dashed", fillcolor=whitesmoke, {label}'
    if state is not None:
        return f'fillcolor="{_FILLS[state]}", class={state}, {label}'
    return f"fillcolor=lightgreen, {label}" if "start" in node.kinds else label


def _dot_escaped(text: str) -> str:
    """Escape characters that would end a quoted DOT text or start an escape sequence in a label."""
    text = plain_text(text, None).replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("\n", "\\n")


# As ids or bare labels, these words end the chart or the current part of it.
_RESERVED = frozenset({
    "call", "class", "classdef", "click", "default", "direction", "end", "flowchart", "graph", "href", "linkstyle",
    "style", "subgraph",
})  # fmt: skip


def mermaid_text(shape: GraphShape, states: Mapping[str, NodeState]) -> str:
    """Write a graph as a Mermaid flowchart. Ids consist of word characters; the executors' ids are the labels."""
    paths: dict[str, str] = {}
    for node, _ in shape.outline:
        around = "" if node.frame is None else f"{paths[node.frame]}__"
        own_id = node.id if node.frame is None else node.id[len(node.frame) + 1 :]
        paths[node.id] = around + re.sub(r"\W", "_", own_id)
    names = _unique({node_id: _mermaid_id(path) for node_id, path in paths.items()})
    lines = ["flowchart TD"]

    def write(frame: str | None, indent: str) -> None:
        nodes, frames, edges = _inside(shape, frame)
        for node in nodes:
            name, state = names[node.id], states.get(node.id)
            start = " (Start)" if "start" in node.kinds else ""
            label = f"{_escape_mermaid(node.name)}{start}{f' [{state}]' if state else ''}"
            if node in frames:
                # A frame has the id of its node, so that edges lead to the frame; no node has the same id.
                lines.append(f'{indent}subgraph {name}["sub-workflow: {label}"]')
                write(node.id, indent + "  ")
                lines.append(f"{indent}end")
            else:
                lines.append(f"{indent}{name}((fan-in))" if "fan_in" in node.kinds else f'{indent}{name}["{label}"];')
        lines.extend(f"{indent}{names[e.source]} {_mermaid_arrow(e)} {names[e.target]};" for e in edges)

    write(None, "  ")
    for state, stroke in _STROKES.items():
        marked = [names[node.id] for node, _ in shape.outline if states.get(node.id) == state]
        if marked:
            lines.append(f"  classDef {state} fill:{_FILLS[state]},stroke:{stroke},color:#1b1b1b;")
            lines.append(f"  class {','.join(marked)} {state};")
    return "\n".join(lines) + "\n"


def _mermaid_id(path: str) -> str:
    return path if path[:1].isalpha() and path.lower() not in _RESERVED else f"n_{path}"


def _mermaid_arrow(edge: ShapeEdge) -> str:
    label = edge.plain_label
    if not label:
        return "-->"
    is_plain = label.isidentifier() and label.lower() not in _RESERVED - {"default"}
    return f"-. {label} .->" if is_plain else f'-. "{_escape_mermaid(label)}" .->'


def _escape_mermaid(text: str) -> str:
    """Write characters that would end a quoted label, or be read as markup, as character codes."""
    text = plain_text(text, None)
    for character, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        text = text.replace(character, code)
    return " ".join(text.splitlines())
