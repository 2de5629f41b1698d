"""The live graph of a workflow, for cells and for boxes of ipywidgets."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from agentbench._limits import require_limit
from agentbench.notebook.runtime.stand_in import needs_widgets

if TYPE_CHECKING:
    from agentbench.notebook.graph_panel.live import GraphPanel


def make_graph_panel(
    source: object,
    *,
    direction: str = "LR",
    expand: Collection[str] | bool = (),
    max_nodes: int = 300,
    height: int = 420,
) -> "GraphPanel":
    """Return a live panel for a graph. With `configure(live_graph=False)` a cell displays a picture and text instead.

    Args:
        source: A workflow, a run of one, or a `GraphShape`.
        direction: Direction of the edges: `LR`, `RL`, `TB`, `BT`.
        expand: Sub-workflows and groups to open initially, by id; `True` opens all sub-workflows.
        max_nodes: Above this number, nodes with equal neighbours are folded into one.
        height: Maximum height of the picture in pixels; larger graphs scroll.

    Raises:
        WidgetsUnavailable: ipywidgets or anywidget is not installed.
        TypeError: `source` has no graph.

    Example:
        panel = make_graph_panel(workflow)
        panel.update({"review": "waiting", ("plan", "review"): "done"}, badges={"review": "2 visits"})
        stop = panel.on_select(print)
        panel  # the last expression of a cell displays it
    """
    with needs_widgets("use draw() for a static picture"):
        from agentbench.notebook.graph_panel.live import GraphPanel
    require_limit("height", height, least=1)
    return GraphPanel(source, direction=direction, expand=expand, max_nodes=max_nodes, height=height)
