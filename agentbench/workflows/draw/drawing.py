"""`WorkflowViz`: the graph of a workflow as DOT and Mermaid text, and as files."""

from __future__ import annotations

import os
import re
import reprlib
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentbench._display import call_view
from agentbench._plain_text import plain_text
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode, read_shape, short_digest

if TYPE_CHECKING:
    from agentbench.workflows.run.workflow import Workflow

NodeState = Literal["failed", "pending", "executed"]

_FILLS: dict[NodeState, str] = {"executed": "#c8e6c9", "failed": "#ffcdd2", "pending": "#fff3c4"}
_STROKES: dict[NodeState, str] = {"executed": "#2e7d32", "failed": "#c62828", "pending": "#f9a825"}
_READ = ("executors", "edge_groups", "start_executor_ids")
_FORMATS = ("svg", "png", "pdf", "dot")
_SUFFIXES = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot"}
# In the words of the notebook layer.
_WORDS: dict[NodeState, str] = {"executed": "done", "pending": "waiting", "failed": "failed"}


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
    def states(self) -> dict[str, NodeState]:
        """States by executor id; of an id in several sets the most urgent one."""
        order: tuple[NodeState, ...] = ("executed", "pending", "failed")
        return {executor_id: state for state in order for executor_id in getattr(self, state)}


_STATE_AFTER: dict[str, NodeState] = {
    "executor_invoked": "pending",
    "executor_completed": "executed",
    "executor_failed": "failed",
    "request_info": "pending",
}


class WorkflowViz:
    """Draws a workflow as DOT or Mermaid text, or to a file. It never runs or changes the workflow.

    Args:
        workflow: The workflow, drawn with its sub-workflows.
        overlay: A run to mark in the drawing: its result, its events, a `RunOverlay`, or a mapping with some of the
            keys `executed`, `failed` and `pending`, each a set of executor ids.

    Raises:
        TypeError: The object is not a workflow.

    Example:
        >>> print(WorkflowViz(workflow).to_mermaid())
        >>> result = await workflow.run("hello")
        >>> WorkflowViz(workflow, overlay=result).save_svg("run.svg")
    """

    def __init__(self, workflow: Workflow, *, overlay: Any = None) -> None:
        if isinstance(workflow, type) or not all(hasattr(workflow, name) for name in _READ):
            got = f"{reprlib.repr(workflow)} of type {type(workflow).__name__}"
            msg = f"WorkflowViz draws a workflow, but got {got}. Pass the Workflow that build() returns."
            raise TypeError(msg)
        self._workflow = workflow
        self._overlay = RunOverlay.of({} if overlay is None else overlay)

    def to_digraph(self, include_internal_executors: bool = False) -> str:
        """Return the graph as DOT text, optionally with the internal edges that carry responses."""
        return dot_text(self._shape(include_internal_executors), self._overlay.states)

    def to_mermaid(self, include_internal_executors: bool = False) -> str:
        """Return the graph as a Mermaid flowchart, which many Markdown viewers can render."""
        return mermaid_text(self._shape(include_internal_executors), self._overlay.states)

    def export(
        self,
        format: str = "svg",  # noqa: A002 - published name
        filename: str | os.PathLike[str] | None = None,
        include_internal_executors: bool = False,
    ) -> str:
        """Write the graph to a file and return its path.

        Args:
            format: `"svg"`, `"png"`, `"pdf"`, or `"dot"`, which needs no renderer.
            filename: The target file; without an extension it gets that of the format. By default a new temporary file.
            include_internal_executors: Also draw the internal edges that carry responses.

        Raises:
            ValueError: The format is unknown, or the file's extension contradicts it.
            FileNotFoundError: The target folder does not exist.
            MissingExtraError: The format needs rendering, and the packages of the notebook layer are not installed.
        """
        if format not in _FORMATS:
            msg = f"Unknown format {format!r}. Use one of {', '.join(map(repr, _FORMATS))}."
            raise ValueError(msg)
        path = None
        if filename is not None:
            path = Path(filename)
            named = _SUFFIXES.get(path.suffix.lower())
            if named is None:
                path = path.with_name(f"{path.name}.{format}")
            elif named != format:
                msg = (
                    f"The file name {str(path)!r} means {named!r}, but the format is {format!r}. "
                    "Change one of them, or leave the extension out."
                )
                raise ValueError(msg)
        if format == "dot":
            data = self.to_digraph(include_internal_executors).encode()
        else:
            shape = read_shape(self._workflow, expand=True, internal=include_internal_executors)
            states = {executor_id: _WORDS[state] for executor_id, state in self._overlay.states.items()}
            data = call_view("agentbench.notebook.graph.view:render", shape, format, states)
        if path is None:
            handle, name = tempfile.mkstemp(prefix="workflow-", suffix=f".{format}")
            os.close(handle)
            path = Path(name)
        path.write_bytes(data)
        return str(path)

    def save_svg(self, filename: str | os.PathLike[str], include_internal_executors: bool = False) -> str:
        """Write the graph to an SVG file and return its path; see `export`."""
        return self.export("svg", filename, include_internal_executors)

    def save_png(self, filename: str | os.PathLike[str], include_internal_executors: bool = False) -> str:
        """Write the graph to a PNG file and return its path; see `export`."""
        return self.export("png", filename, include_internal_executors)

    def save_pdf(self, filename: str | os.PathLike[str], include_internal_executors: bool = False) -> str:
        """Write the graph to a PDF file and return its path; see `export`."""
        return self.export("pdf", filename, include_internal_executors)

    def _shape(self, include_internal: bool) -> GraphShape:
        return read_shape(self._workflow, expand=True, joins=True, internal=include_internal)

    def __repr__(self) -> str:
        return f"WorkflowViz({self._workflow.name!r})"


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
