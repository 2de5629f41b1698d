"""`app.get_graph()`: the nodes and edges of a graph, and drawings of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench._display import call_view
from agentbench.workflows.draw.drawing import mermaid_text
from agentbench.workflows.draw.shape import read_shape

if TYPE_CHECKING:
    from agentbench.stategraph.compiled import CompiledGraph


class GraphNode(NamedTuple):
    """A node of `app.get_graph().nodes`: its id, and its name in drawings."""

    id: str
    name: str


class GraphEdge(NamedTuple):
    """An edge of `app.get_graph().edges`: the names of its nodes, and whether a condition or a node chooses it."""

    source: str
    target: str
    conditional: bool


class DrawnGraph:
    """The nodes and edges of a compiled graph, from `app.get_graph()`, and drawings of them as text or picture.

    Args:
        app: The compiled graph.
        xray: Whether graphs in nodes are drawn as well.

    Example:
        >>> print(app.get_graph().draw_mermaid())
    """

    def __init__(self, app: CompiledGraph[Any], *, xray: bool = False) -> None:
        self._shape = read_shape(app.workflow, expand=xray, joins=True)
        self.nodes = {node.id: GraphNode(node.id, node.name) for node in self._shape.nodes}
        """The nodes, by their ids."""
        self.edges = [GraphEdge(each.source, each.target, each.kind != "direct") for each in self._shape.edges]
        """The edges between nodes, by their ids."""

    def draw_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        return mermaid_text(self._shape, {})

    def draw_mermaid_png(self) -> bytes:
        """Return the graph as a PNG picture, drawn on this machine.

        Raises:
            MissingExtraError: The packages of the notebook layer are not installed.
        """
        picture: bytes = call_view("agentbench.notebook.graph.view:render", self._shape, "png", {})
        return picture

    def draw_ascii(self) -> str:
        """Return the graph as a list of its nodes, each with the nodes that its edges lead to.

        Raises:
            MissingExtraError: The packages of the notebook layer are not installed.
        """
        text: str = call_view("agentbench.notebook.graph.text:shape_text", self._shape)
        return text

    def _repr_png_(self) -> bytes:
        return self.draw_mermaid_png()

    def __repr__(self) -> str:
        return self.draw_mermaid()
