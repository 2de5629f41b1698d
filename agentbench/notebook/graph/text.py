"""Graphs as text: the adjacency list that accompanies every picture, and Mermaid source."""

import re
from collections.abc import Mapping

from agentbench._text.escape import LABEL_LIMIT, esc
from agentbench._text.phrases import count_text
from agentbench.notebook.look.states import PRECEDENCE
from agentbench.workflows.draw.shape import KIND_WORDS, TIMES, GraphShape, ShapeEdge, ShapeNode

MAX_LINES = 60

_NAME_LIMIT = 60
_TARGET_LIMIT = 12

# Everything except letters, digits and harmless signs is written as a character number, which Mermaid supports.
_MERMAID_SPECIAL = re.compile(r"[^\w .,:()/+-]")


def shape_text(
    shape: GraphShape, states: Mapping[str, str] | None = None, *, max_lines: int = MAX_LINES, note: str = ""
) -> str:
    """Return a graph as an adjacency list, one node per line: `plan (start) [done] -> search, review [if good]`.

    `states` are by executor id; `note` is an additional remark at the end.
    """
    states = states or {}
    outgoing: dict[str, list[ShapeEdge]] = {}
    for edge in shape.edges:
        outgoing.setdefault(edge.source, []).append(edge)
    names = {node.id: _name(node) for node in shape.node_of.values()}
    name = esc(shape.name, into="line", limit=_NAME_LIMIT)
    lines = [f"{name}: {count_text(len(names), 'node')}, {count_text(len(shape.edges), 'edge')}"]
    listed = shape.outline
    notes = [esc(each, into="line") for each in (shape.note, note) if each]
    room = max_lines - 1 - len(notes)
    if len(listed) > room:
        notes.insert(0, f"… {count_text(len(listed) - room + 1, 'more node')}, not listed here")
        listed = _most_wanted(listed, states, room - 1)
    for node, depth in listed:
        lines.append("  " * depth + _line(node, outgoing.get(node.id, []), names, states.get(node.id, "idle")))
    return "\n".join(lines + notes)


def shape_mermaid(shape: GraphShape, *, direction: str = "LR") -> str:
    """Return Mermaid source for the graph, for pages that render it themselves."""
    element = shape.element_of
    lines = [f"flowchart {direction}"]

    def block(frame_id: str | None, indent: str) -> None:
        inside = (node for node in shape.nodes if node.frame == frame_id)
        lines.extend(f"{indent}{element[node.id]}{_mermaid_shape(node)}" for node in inside)
        for frame in (frame for frame in shape.frames if frame.frame == frame_id):
            lines.append(f'{indent}subgraph {element[frame.id]}["{_mermaid_label(frame.name)}"]')
            block(frame.id, indent + "  ")
            lines.append(f"{indent}end")

    block(None, "  ")
    lines += [f"  {element[edge.source]} {_mermaid_arrow(edge)} {element[edge.target]}" for edge in shape.edges]
    return "\n".join(lines)


def _most_wanted(
    listed: list[tuple[ShapeNode, int]], states: Mapping[str, str], room: int
) -> list[tuple[ShapeNode, int]]:
    """Choose the nodes that need attention, then the first ones, in their original order."""
    least = PRECEDENCE.index("done")
    ranks = [min(PRECEDENCE.index(states.get(node.id, "idle")), least) for node, _ in listed]
    chosen = sorted(sorted(range(len(listed)), key=ranks.__getitem__)[:room])
    return [listed[index] for index in chosen]


def _name(node: ShapeNode) -> str:
    """Return the name for text; a folded group as `worker (x12)`."""
    if not node.members:
        return esc(node.name, into="line", limit=_NAME_LIMIT)
    count = str(len(node.members))
    stem = node.name.removesuffix(count).rstrip(f" {TIMES}")
    return f"{esc(stem, into='line', limit=_NAME_LIMIT)} (x{count})"


def _line(node: ShapeNode, outgoing: list[ShapeEdge], names: Mapping[str, str], state: str) -> str:
    text = names[node.id]
    if words := ", ".join(KIND_WORDS[kind] for kind in node.kinds if kind != "group"):
        text += f" ({words})"
    if state != "idle":
        text += f" [{state}]"
    targets = [_target(edge, names[edge.target]) for edge in outgoing[:_TARGET_LIMIT]]
    if len(outgoing) > _TARGET_LIMIT:
        targets.append(f"… {len(outgoing) - _TARGET_LIMIT} more")
    return f"{text} -> {', '.join(targets)}" if targets else text


def _target(edge: ShapeEdge, name: str) -> str:
    label = esc(edge.label, into="line", limit=_NAME_LIMIT)
    remark = f"loop {label}".rstrip() if edge.kind == "loop" else label
    return f"{name} [{remark}]" if remark else name


def _mermaid_label(text: str) -> str:
    line = esc(text, into="line", limit=LABEL_LIMIT)
    return _MERMAID_SPECIAL.sub(lambda match: f"#{ord(match.group())};", line)


def _mermaid_shape(node: ShapeNode) -> str:
    brackets = {"hitl": ("{{", "}}"), "subworkflow": ("[(", ")]"), "start": ("([", "])")}
    before, behind = next((brackets[kind] for kind in brackets if kind in node.kinds), ("[", "]"))
    return f'{before}"{_mermaid_label(node.name)}"{behind}'


def _mermaid_arrow(edge: ShapeEdge) -> str:
    label = f'|"{_mermaid_label(edge.label)}"|' if edge.label else ""
    return f"{'-.->' if edge.kind in ('conditional', 'switch') else '-->'}{label}"
