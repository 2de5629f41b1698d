"""The live graph as one interface with two implementations, and the choice between them.

`GraphPanel` (in `live`) is an anywidget; `HtmlGraphPanel` (in `plain`) needs only ipywidgets and draws anew. Both are
ipywidgets (put them into boxes) and behave the same from Python:

    panel = make_graph_panel(source, direction="LR", expand=(), height=420)   # source: Workflow or GraphShape
    panel.update({"review": "waiting", ("plan", "review"): "done"}, badges={"review": "2 visits"})
    stop = panel.on_select(lambda executor_id: ...)                           # executor id, or None; call stop() to end

- Executors are named by their ids, edges by (source id, target id); states by the keys of `states.STATES`:
  idle, queued, running, done, waiting, failed, skipped. Ids that are not drawn (inside a folded group) are skipped.
- `update` may be called from any thread and as often as events come: changes are gathered, the latest state of an
  element wins, and at most 20 messages a second go to the page. `flush()` sends what is still waiting.
- The traits `selected` (str) and `breakpoints` (list) hold element ids ("n3") of the picture, because they travel to
  the page. Python code uses `selected_id` / `select(id)` and `breakpoint_ids` / `set_breakpoints(ids)`.
- In the picture, arrows, Home, Enter, `b`, `+`, `-` and `0` are taken; all other keys go on to what is around it.
- Text that comes from users or models goes through `escape.esc(value, into="html")` before it meets HTML, SVG or DOT,
  payloads through `redact.preview(value)` first.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.graph_panel.commands import Unsubscribe
from agentbench.notebook.graph_panel.model import PanelModel
from agentbench.notebook.runtime import settings

if TYPE_CHECKING:
    from agentbench.notebook.graph.shape import GraphShape
    from agentbench.notebook.graph.view import GraphView

__all__ = ["Panel", "Unsubscribe", "make_graph_panel"]


class Panel(Protocol):
    """The common interface of `GraphPanel` and `HtmlGraphPanel`."""

    selected: str
    breakpoints: list[str]

    @property
    def shape(self) -> "GraphShape":
        """The graph that is drawn, groups folded or opened as they are now."""

    @property
    def states(self) -> dict[Any, str]:
        """States by executor id and by (source id, target id), as last set; a copy."""

    @property
    def text(self) -> str:
        """The graph and its states as text."""

    @property
    def table(self) -> str:
        """All nodes, those that are folded or hidden too, one a line with their states."""

    @property
    def selected_id(self) -> str | None:
        """Executor id of the selected node, `None` when nothing or an edge is selected."""

    @property
    def breakpoint_ids(self) -> tuple[str, ...]:
        """Executor ids with a breakpoint, in builder order."""

    def update(self, states: Mapping[Any, str], badges: Mapping[str, object] | None = None) -> None:
        """Change the states of some elements and the badges of some nodes; what is not named stays as it is."""

    def reset(self) -> None:
        """Put every element back to idle and drop all badges."""

    def flush(self) -> None:
        """Send at once what is still being gathered."""

    def select(self, executor_id: str | None) -> None:
        """Select a node, or nothing; listeners of `on_select` are called."""

    def set_breakpoints(self, executor_ids: Iterable[str]) -> None:
        """Replace the displayed breakpoints."""

    def on_select(self, fn: Callable[[str | None], object]) -> Unsubscribe:
        """Call `fn(executor_id or None)` whenever the selection changes."""

    def on_breakpoints(self, fn: Callable[[tuple[str, ...]], object]) -> Unsubscribe:
        """Call `fn(executor_ids)` when the person sets or clears a breakpoint in the picture."""

    def set_expanded(self, group_ids: Sequence[str]) -> None:
        """Open these groups and sub-workflows, fold all others."""

    def expect_page(self) -> None:
        """Call when the panel is displayed inside a box: if no page shows it in 5 s, a line says what to do."""

    def snapshot(self) -> "GraphView":
        """Return a static picture with the states as they are now."""

    def close(self) -> None:
        """Take the panel off the page and drop its content; may be called twice."""


def make_graph_panel(
    source: object,
    *,
    direction: str = "LR",
    expand: Collection[str] | bool = (),
    max_nodes: int = 300,
    height: int = 420,
) -> Panel:
    """Return a live panel for a graph: a `GraphPanel` if anywidget is installed, else an `HtmlGraphPanel`.

    `configure(live_graph=False)` chooses the latter, too.

    Args:
        source: A workflow, a run of one, or a `GraphShape`.
        direction: Where the edges lead: `LR`, `RL`, `TB`, `BT`.
        expand: Sub-workflows and groups to open at first, by id; `True` opens all sub-workflows.
        max_nodes: Above this number, nodes with equal neighbours are folded into one.
        height: Greatest height of the picture in pixels; larger graphs scroll.

    Raises:
        WidgetsUnavailable: ipywidgets is not installed.
        TypeError: `source` holds no graph.

    Example:
        panel = make_graph_panel(workflow)
        panel.update({"review": "waiting", ("plan", "review"): "done"}, badges={"review": "2 visits"})
        stop = panel.on_select(print)
        panel  # the last expression of a cell displays it
    """
    model = PanelModel(source, direction=direction, expand=expand, max_nodes=max_nodes)
    try:
        panel_class = _panel_class()
    except ModuleNotFoundError as error:
        if error.name != "ipywidgets":
            raise
        instead = "draw() shows a picture"
        raise WidgetsUnavailable(instead) from error
    panel: Panel = panel_class(model, height=height)
    return panel


def _panel_class() -> Any:
    if settings.current().live_graph:
        try:
            from agentbench.notebook.graph_panel.live import GraphPanel
        except ModuleNotFoundError as error:
            if error.name != "anywidget":
                raise
        else:
            return GraphPanel
    from agentbench.notebook.graph_panel.plain import HtmlGraphPanel

    return HtmlGraphPanel
