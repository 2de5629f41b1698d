"""`draw`: a graph as a standalone picture, with its text, DOT and Mermaid forms."""

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from agentbench._limits import require_limit
from agentbench._text.escape import LABEL_LIMIT, esc
from agentbench.exceptions import AgentFrameworkException, RenderFailed
from agentbench.notebook.graph.dot import to_dot
from agentbench.notebook.graph.folding import fit
from agentbench.notebook.graph.layout import DIRECTIONS, Detail, Direction, Layout
from agentbench.notebook.graph.paint import paint_live, paint_picture
from agentbench.notebook.graph.renderers import arrange
from agentbench.notebook.graph.text import shape_mermaid, shape_text
from agentbench.notebook.history.overlay import read_states
from agentbench.notebook.look.png import png_to_pdf, small_png, svg_to_png
from agentbench.notebook.look.states import strongest
from agentbench.notebook.look.svg import text_width
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.bundles import is_wanted
from agentbench.notebook.runtime.kernel import cell_number
from agentbench.workflows.draw.shape import GraphShape, read_shape

FULL_DETAIL_NODES = 100

WIDE_PX = 1000

# The content of a file by its suffix: an attribute of the view, or None for bytes.
_SUFFIXES = {
    ".svg": "svg", ".png": None, ".pdf": None, ".dot": "dot", ".gv": "dot", ".txt": "text", ".mmd": "mermaid",
    ".mermaid": "mermaid",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GraphView:
    """A picture of a graph, made by `draw`, which documents the arguments. A cell displays it.

    Everything is rendered at first use and then cached. `svg`, `live_svg`, `png` and `save` raise
    `RendererUnavailable` or `RenderFailed`; displaying never raises but shows the text form and the problem instead.

    Attributes:
        shape: The drawn graph, after folding.
        whole: The graph before folding.
        states: States by executor id.
        direction: Direction of the edges.
        detail: `full` or `short`.
        theme: `auto`, `light` or `dark`.
        renderer: Name of the renderer, `None` for the configured or automatic one.
        shown_in: Number of the cell that already displays it; as the last expression there it is not displayed again.

    Example:
        view = draw(workflow, direction="TB")
        print(view.text)
        view.save("graph.svg")
    """

    shape: GraphShape
    whole: GraphShape
    states: Mapping[Any, str]
    direction: Direction = "LR"
    detail: Detail = "full"
    theme: str = "auto"
    renderer: str | None = None
    shown_in: int | None = None

    @cached_property
    def dot(self) -> str:
        """DOT text, with positions as names and without states."""
        return to_dot(self.shape, direction=self.direction, detail=self.detail)

    @cached_property
    def svg(self) -> str:
        """The picture as SVG with its own style, for light and dark pages."""
        layout = self._arranged[0]
        return paint_picture(self.shape, layout, self.detail, self.element_states, theme=self.theme, text=self.text)

    @cached_property
    def text(self) -> str:
        """The graph as an adjacency list of at most 60 lines."""
        nodes, states = self.shape.node_of, self.element_states.items()
        return shape_text(self.shape, {nodes[element].id: state for element, state in states if element in nodes})

    @cached_property
    def table(self) -> str:
        """All nodes before folding, one per line."""
        return shape_text(self.whole, self.states, max_lines=len(self.whole.node_of) + 3)

    @cached_property
    def mermaid(self) -> str:
        """Mermaid source, for pages that render it themselves."""
        return shape_mermaid(self.shape, direction=self.direction)

    @property
    def element_states(self) -> dict[str, str]:
        """States by element id, including edges; a folded group has the strongest state of its members."""
        states: dict[str, str] = {}
        for key, state in self.states.items():
            if element := self.shape.element(key):
                states[element] = strongest([state, states.get(element, "idle")])
        return states

    @property
    def live_svg(self) -> str:
        """The picture for a panel that paints states: with names and connections, without its own style."""
        return paint_live(self.shape, self._arranged[0], self.detail)

    def png(self, scale: float = 2) -> bytes:
        """The picture as PNG on an opaque background; `scale` is the number of pixels per point.

        Raises:
            MissingExtraError: resvg, which comes with the extra `notebook`, is not installed.
            ValueError: The scale is not possible.
        """
        return svg_to_png(self.svg, scale)

    def save(self, path: str | Path) -> Path:
        """Write a file in the format of its suffix: .svg, .png, .pdf, .dot, .gv, .txt, .mmd or .mermaid.

        Raises:
            ValueError: For another suffix.
            FileNotFoundError: The folder does not exist.
            MissingExtraError: PNG and PDF need packages of the extra `notebook`.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES:
            msg = f"{path.name!r} has no known format. Expected one of the suffixes {', '.join(sorted(_SUFFIXES))}."
            raise ValueError(msg)
        if text := _SUFFIXES[suffix]:
            path.write_text(getattr(self, text), encoding="utf-8", newline="\n")
        else:
            path.write_bytes(self.png() if suffix == ".png" else png_to_pdf(self.png(4)))
        return path

    def __repr__(self) -> str:
        n_nodes, n_edges = len(self.shape.nodes), len(self.shape.edges)
        return f"GraphView({esc(self.shape.name, into='line', limit=80)!r}, {n_nodes} nodes, {n_edges} edges)"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Return SVG, PNG if it is small, and text. A failure is reported in the text and never raised."""
        bundle: dict[str, Any] = {}
        try:
            if is_wanted("image/svg+xml", include, exclude):
                bundle["image/svg+xml"] = self.svg
            if is_wanted("image/png", include, exclude) and (png := small_png(self.svg)):
                bundle["image/png"] = png
            remark = str(self.__dict__.get("_arranged", (None, None))[1] or "")
        except Exception as error:  # noqa: BLE001 - a cell must show the text even if the picture fails
            expected = isinstance(error, (AgentFrameworkException, ValueError))
            remark = f"No picture: {error}" if expected else f"No picture: {type(error).__name__}: {error}"
        if is_wanted("text/plain", include, exclude):
            bundle["text/plain"] = f"{self.text}\n{esc(remark, into='line')}" if remark else self.text
        return bundle

    def _ipython_display_(self) -> None:
        """Display the views of the bundle, except in the cell that already displays the picture."""
        if self.shown_in is None or self.shown_in != cell_number():
            raise NotImplementedError

    @cached_property
    def _arranged(self) -> tuple[Layout, RenderFailed | None]:
        return arrange(self.shape, self.direction, self.detail, self.renderer)


def draw(  # noqa: PLR0913 - published signature
    source: object,
    *,
    run: object = None,
    direction: str = "LR",
    detail: str = "auto",
    expand: Collection[str] | bool = (),
    max_nodes: int = 300,
    theme: str = "auto",
    renderer: str | None = None,
) -> GraphView:
    """Draw the graph of a workflow.

    Args:
        source: A workflow, a compiled graph, a run of one, or a `GraphShape`.
        run: A run, a result, a list of events, or states by executor id: the picture shows the states. By
            default that of `source`, if it is a run.
        direction: Direction of the edges: `LR`, `RL`, `TB` (or `TD`), `BT`; `auto` is `LR`, or `TB` for long
            chains, which would be too small to read.
        detail: `full`, `short` (shortened names, no edge labels), or `auto`: `full` up to 100 nodes.
        expand: Sub-workflows and folded groups to open, by id; `True` opens all sub-workflows.
        max_nodes: Above this number, nodes with equal neighbours are folded into one.
        theme: `light`, `dark`, or `auto`, which follows `configure(theme=)`, otherwise the reader's browser.
        renderer: `pure`, `dot` or `builtin`; by default the configured one or the first installed one.

    Raises:
        TypeError: `source` has no graph, or `run` has no executor states.
        ValueError: For an unknown direction, detail or theme.

    Example:
        draw(workflow)
        draw(workflow, run=run, direction="TB").save("run.png")
    """
    _require("detail", detail, ("auto", *get_args(Detail)))
    _require("theme", theme, get_args(settings.Theme))
    _require("direction", direction.upper(), ("AUTO", *DIRECTIONS, "TD"))
    whole = read_shape(source, expand=expand)
    states = read_states(run if run is not None else source)
    opened = () if isinstance(expand, bool) else expand
    require_limit("max_nodes", max_nodes, least=1)
    shape = fit(whole, max_nodes=max_nodes, expand=opened, focus=busy_executors(states))
    upright = _is_long(shape) if direction.upper() == "AUTO" else direction.upper() == "TD"
    short = detail == "short" or (detail == "auto" and len(shape.nodes) > FULL_DETAIL_NODES)
    return GraphView(
        shape=shape,
        whole=whole,
        states=states,
        direction="TB" if upright else next((each for each in DIRECTIONS if each == direction.upper()), "LR"),
        detail="short" if short else "full",
        theme=settings.current().theme if theme == "auto" else theme,
        renderer=renderer,
    )


def busy_executors(states: Mapping[Any, str]) -> list[str]:
    """Return the executors in the centre of a partial picture of a very large graph."""
    busy = ("running", "waiting", "failed", "queued")
    return [key for key, state in states.items() if state in busy and isinstance(key, str)]


def render(shape: GraphShape, format: str, states: Mapping[str, str]) -> bytes:  # noqa: A002 - of the engine
    """Return the picture of a whole graph as `svg`, `png` or `pdf`; warns if the chosen renderer failed."""
    view = GraphView(shape=shape, whole=shape, states=states, direction="TB", theme=settings.current().theme)
    problem = view._arranged[1]  # noqa: SLF001 - of this module
    if problem is not None:
        warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
    return view.svg.encode() if format == "svg" else view.png() if format == "png" else png_to_pdf(view.png(4))


def _require(what: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        msg = f"{what}={value!r} is not possible. Expected one of {', '.join(map(repr, known))}."
        raise ValueError(msg)


def _is_long(shape: GraphShape) -> bool:
    """Whether the graph is too wide for a cell from left to right, but not from top to bottom."""
    widths: dict[int, list[float]] = {}
    for node in shape.nodes:
        widths.setdefault(shape.levels[node.id], []).append(text_width(node.name[:LABEL_LIMIT], 13) + 60)
    return WIDE_PX < sum(map(max, widths.values())) > max(map(sum, widths.values()), default=0)
