"""The graph of a workflow as plain values, as DOT text, and as a Mermaid flowchart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NamedTuple

from agentbench._plain_text import plain_text
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase
from agentbench.workflows.graph.graph import find_sub_workflow
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup

NodePath = tuple[str, ...]
"""Ids from the outermost workflow inwards; the last one is the node's own."""

NodeState = Literal["failed", "pending", "executed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverlay:
    """Where a run has been: the ids of executors that a drawing marks, as `"outer/inner"` inside a sub-workflow."""

    executed: Collection[str] = ()
    failed: Collection[str] = ()
    pending: Collection[str] = ()

    @classmethod
    def of(cls, run: Any) -> RunOverlay:
        """Return the overlay for an overlay, a mapping with its three keywords, or the events of a run (its result)."""
        if isinstance(run, RunOverlay):
            return run
        if isinstance(run, Mapping):
            return cls(**run)
        states: dict[str, NodeState] = {}
        requesting: set[str] = set()
        for reported in run:
            event, path = (reported.data, reported.data.path) if reported.type == "sub_workflow" else (reported, ())
            executor_id, state = event.source_id, _STATE_AFTER.get(event.type)
            if executor_id is None or state is None:
                continue
            executor_id = "/".join((*path, executor_id))
            if event.type == "request_info":
                requesting.add(executor_id)
            elif event.type == "executor_invoked":
                requesting.discard(executor_id)
            # One that did not end is pending, and so is one with a request, until it is invoked again.
            waits = state == "executed" and executor_id in requesting
            states[executor_id] = "pending" if waits else state
        names = ("executed", "failed", "pending")
        return cls(**{name: {key for key, state in states.items() if state == name} for name in names})

    @property
    def states(self) -> dict[str, str]:
        """States by executor id, in the words of the notebook layer."""
        words = {"executed": "done", "pending": "waiting", "failed": "failed"}
        return {key: word for name, word in words.items() for key in getattr(self, name)}

    def state_of(self, path: NodePath) -> NodeState | None:
        """Return the state of a node in the run, or `None` if the run did not touch it."""
        key = "/".join(path)
        states: tuple[NodeState, ...] = ("failed", "pending", "executed")
        return next((state for state in states if key in getattr(self, state)), None)


_STATE_AFTER: dict[str, NodeState] = {
    "executor_invoked": "pending",
    "executor_completed": "executed",
    "executor_failed": "failed",
    "request_info": "pending",
}


class DrawnNode(NamedTuple):
    """One node: its position in the graph, its kind, and its state in the run."""

    path: NodePath
    kind: Literal["executor", "start", "fan_in", "internal"]
    state: NodeState | None

    @property
    def text(self) -> str:
        """The label of the node, without markers."""
        return "fan-in" if self.kind == "fan_in" else self.path[-1]


class DrawnEdge(NamedTuple):
    """One arrow. A label means that it is conditional; `kind` `"inside"` leads from a node into its frame."""

    source: NodePath
    target: NodePath
    label: str | None = None
    kind: Literal["edge", "inside"] = "edge"


class DrawnGraph(NamedTuple):
    """One workflow in builder order, with a frame for each sub-workflow; `path` is that of the node that runs it."""

    path: NodePath
    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    frames: list[DrawnGraph]

    def all_nodes(self) -> Iterator[DrawnNode]:
        """Yield the nodes of this graph, then those of its frames."""
        yield from self.nodes
        for frame in self.frames:
            yield from frame.all_nodes()


def draw_graph(
    workflow: Any,
    overlay: RunOverlay,
    *,
    include_internal: bool = False,
    path: NodePath = (),
    within: tuple[Any, ...] = (),
) -> DrawnGraph:
    """Return the nodes, edges and frames of a workflow; `within` are the workflows around it, not drawn again."""
    graph = DrawnGraph(path, [], [], [])
    around = (*within, workflow)
    for executor_id, executor in workflow.executors.items():
        here = (*path, executor_id)
        is_start = executor_id in workflow.start_executor_ids
        graph.nodes.append(DrawnNode(here, "start" if is_start else "executor", overlay.state_of(here)))
        inner = find_sub_workflow(executor)
        if inner is not None and all(inner is not outer for outer in around):
            frame = draw_graph(inner, overlay, include_internal=include_internal, path=here, within=around)
            graph.frames.append(frame)
            entries = inner.start_executor_ids
            graph.edges.extend([DrawnEdge(here, (*here, entry), kind="inside") for entry in entries])
    for group in workflow.edge_groups:
        _add_group(graph, group, include_internal=include_internal)
    return graph


def unique_names(nodes: Iterable[DrawnNode], name_of: Callable[[NodePath], str]) -> dict[NodePath, str]:
    """Give every node a unique name: `name_of(path)`, with a number appended if another node has that name."""
    names: dict[NodePath, str] = {}
    taken: set[str] = set()
    for node in nodes:
        wanted = name = name_of(node.path)
        numbers = count(2)
        while name in taken:
            name = f"{wanted}_{next(numbers)}"
        taken.add(name)
        names[node.path] = name
    return names


def _add_group(graph: DrawnGraph, group: EdgeGroup, *, include_internal: bool) -> None:
    path = graph.path
    if isinstance(group, InternalEdgeGroup):
        if include_internal:
            source = (*path, group.source_executor_ids[0])
            graph.nodes.append(DrawnNode(source, "internal", None))
            graph.edges.append(DrawnEdge(source, (*path, group.executor_id)))
    elif isinstance(group, FanInEdgeGroup):
        # The id is derived from what the group joins, because its own id is random.
        key = "|".join([group.target_id, *sorted(group.source_executor_ids)])
        digits = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:8]
        join = (*path, f"fan_in::{group.target_id}::{digits}")
        graph.nodes.append(DrawnNode(join, "fan_in", None))
        graph.edges.extend([DrawnEdge((*path, source), join) for source in group.source_executor_ids])
        graph.edges.append(DrawnEdge(join, (*path, group.target_id)))
    else:
        labels = _labels(group)
        for edge in group.edges:
            label = labels.get(edge.target_id) or (None if edge.condition_name is None else "conditional")
            graph.edges.append(DrawnEdge((*path, edge.source_id), (*path, edge.target_id), label))


def _labels(group: EdgeGroup) -> dict[str, str]:
    """Return the labels of edges by target: the names of the cases, or that of the selection function."""
    if isinstance(group, SwitchCaseEdgeGroup):
        names: dict[str, list[str]] = {}
        for case in group.cases:
            if isinstance(case, SwitchCaseEdgeGroupCase):
                names.setdefault(case.target_id, []).append(case.condition_name or "<missing>")
        names.setdefault(group.default.target_id, []).append("default")
        return {target: " / ".join(several) for target, several in names.items()}
    if isinstance(group, FanOutEdgeGroup) and group.selection_func_name is not None:
        return dict.fromkeys(group.target_ids, group.selection_func_name)
    return {}


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
