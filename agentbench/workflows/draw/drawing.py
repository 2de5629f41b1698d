"""`WorkflowViz`: the graph of a workflow as DOT and Mermaid text, and as files."""

from __future__ import annotations

import os
import reprlib
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbench._display import call_view
from agentbench.workflows.draw.graph_text import NodeState, dot_text, mermaid_text
from agentbench.workflows.draw.shape import GraphShape, read_shape

if TYPE_CHECKING:
    from agentbench.workflows.run.workflow import Workflow

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
