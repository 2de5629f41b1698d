"""`WorkflowViz`: the graph of a workflow as DOT and Mermaid text, and as files."""

from __future__ import annotations

import os
import reprlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbench._display import call_view
from agentbench.workflows.draw.drawn_graph import RunOverlay, dot_text, draw_graph, mermaid_text

if TYPE_CHECKING:
    from agentbench.workflows.run.workflow import Workflow

_READ = ("executors", "edge_groups", "start_executor_ids")
_FORMATS = ("svg", "png", "pdf", "dot")
_SUFFIXES = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot"}


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
        return dot_text(draw_graph(self._workflow, self._overlay, include_internal=include_internal_executors))

    def to_mermaid(self, include_internal_executors: bool = False) -> str:
        """Return the graph as a Mermaid flowchart, which many Markdown viewers can render."""
        return mermaid_text(draw_graph(self._workflow, self._overlay, include_internal=include_internal_executors))

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
        text = self.to_digraph(include_internal_executors)
        data: bytes = text.encode()
        if format != "dot":
            data = call_view(
                "agentbench.notebook.graph.view:render", text, format, self._workflow, self._overlay.states
            )
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

    def __repr__(self) -> str:
        return f"WorkflowViz({self._workflow.name!r})"
