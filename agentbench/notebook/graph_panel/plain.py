"""`HtmlGraphPanel`: the same panel without anywidget: a picture that is drawn anew, and a list of its nodes."""

from typing import Any

import ipywidgets
import traitlets

from agentbench.notebook.graph.folding import HOW_TO_OPEN
from agentbench.notebook.graph_panel.commands import PanelCommands
from agentbench.notebook.graph_panel.model import PanelModel
from agentbench.notebook.look.style import live_style
from agentbench.notebook.runtime.widgets import close_all
from agentbench.notebook.text.escape import esc

__all__ = ["HtmlGraphPanel"]


class HtmlGraphPanel(PanelCommands, ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A live graph without anywidget: states, selection and breakpoints. Made by `make_graph_panel`; see its example.

    Its methods are those of `GraphPanel`. Ids that the workflow does not have raise `ValueError`.

    Example:
        configure(live_graph=False)
        panel = make_graph_panel(workflow)
        panel.update({"review": "running"})

    Attributes:
        selected: Element id of the selected node, or `""`.
        breakpoints: Elements with a breakpoint.
        model: The state of the panel, without the widget.
    """

    selected = traitlets.Unicode("")
    breakpoints = traitlets.List(traitlets.Unicode())

    def __init__(self, model: PanelModel, *, height: int = 420) -> None:
        # Each change sends a whole picture, which takes the page much longer than a small map would.
        self._connect(model, interval_s=0.25)
        # Sent once: what follows are pictures without a style.
        self._style = ipywidgets.HTML(f"<style>{live_style()}</style>", layout={"display": "none"})
        self._picture = ipywidgets.HTML(layout={"overflow": "auto", "max_height": f"{height}px"})
        self._list = ipywidgets.Dropdown(description="Node", layout={"width": "auto", "flex": "1 1 auto"})
        self._stop = ipywidgets.ToggleButton(description="Breakpoint", disabled=True, tooltip="Break before this node")
        self._open = ipywidgets.Button(description="Open or fold", disabled=True, tooltip="Open or fold this group")
        self._row = ipywidgets.HBox((self._list, self._stop, self._open))
        self._quiet = False
        super().__init__(children=(self._style, self._picture, self._row))
        self._send_changes()
        self._list.observe(self._on_pick, "value")
        self._stop.observe(self._on_toggle, "value")
        self._open.on_click(self._on_open)

    def close(self) -> None:
        """Take the panel off the page and drop its content; may be called twice."""
        self._pacer.close()
        self._quiet = True
        if self.comm is not None:
            self._picture.value = ""
            self._list.options = ()
            self.selected, self.breakpoints = "", []
            self.children = ()
            for child in (self._style, self._picture, self._row):
                close_all(child)
        super().close()

    def expect_page(self) -> None:
        """Do nothing: every widget front end can display this panel."""

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}

    def _send_changes(self) -> None:
        self.model.take_patch()
        self._picture.value = self._html()
        chosen = self.selected
        self._quiet = True
        try:
            options = (("(none)", ""), *self.model.names())
            if self._list.options != options:  # a list that is open closes when it gets others
                self._list.options = options
                self._list.value = chosen
        finally:
            self._quiet = False

    def _html(self) -> str:
        name = esc(self.model.shape.name, limit=80)
        label = f"Graph of {name}. The list below it has its nodes and their states."
        note = self.model.shape.note.replace(HOW_TO_OPEN, "select one in the list, then open it")
        note = f'<div class="ab_tools"><span>{esc(note)}</span></div>' if note else ""
        return (
            f'<div class="ab_panel">{note}<div class="ab_port" role="img" aria-label="{label}">'
            f"{self.model.painted_svg()}</div></div>"
        )

    def _send_layout(self) -> None:
        self._send_changes()

    def _on_pick(self, change: Any) -> None:
        if not self._quiet:
            self._selected_is(self.model.executor_of(change["new"]))

    def _show_selected(self) -> None:
        super()._show_selected()
        self._pacer.touch()
        node = self.model.shape.node_of.get(self.selected)
        self._quiet = True
        try:
            self._list.value = self.selected
            self._stop.disabled = node is None or "group" in node.kinds
            self._stop.value = node is not None and node.id in self.model.breakpoints
            self._open.disabled = node is None or not {"group", "subworkflow"}.intersection(node.kinds)
        finally:
            self._quiet = False

    def _show_breakpoints(self) -> None:
        super()._show_breakpoints()
        self._pacer.touch()

    def _on_toggle(self, change: Any) -> None:
        if not self._quiet and self.selected:
            others = [each for each in self.breakpoints if each != self.selected]
            self._breakpoints_are([*others, self.selected] if change["new"] else others)

    def _on_open(self, _button: object) -> None:
        node = self.model.shape.node_of.get(self.selected)
        if node is not None:
            self.toggle_expanded(node.id)
