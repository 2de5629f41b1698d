"""`GraphPanel`: the graph as an anywidget, whose picture is sent once and whose states follow as small maps."""

from typing import Any

import anywidget
import traitlets

from agentbench.notebook.graph_panel.commands import PanelCommands
from agentbench.notebook.graph_panel.model import PanelModel
from agentbench.notebook.look.states import STATES
from agentbench.notebook.look.style import live_style, read_script
from agentbench.notebook.runtime.page_watch import PageWatch
from agentbench.notebook.text.escape import esc

__all__ = ["GraphPanel"]

_LOOKS = {name: [style.icon, style.words if name != "idle" else ""] for name, style in STATES.items()}


class GraphPanel(PanelCommands, anywidget.AnyWidget):
    """A live graph in a cell: states of a run, selection, breakpoints. Made by `make_graph_panel`; see its example.

    `update` changes states and badges, `on_select` and `on_breakpoints` add listeners, `snapshot` returns a static
    picture. Ids that the workflow does not have, and unknown states, raise `ValueError`.

    Example:
        panel = make_graph_panel(workflow)
        panel.update({"review": "running"}, badges={"review": "2 visits"})
        panel.snapshot().save("graph.svg")

    Attributes:
        svg: The picture; set only when its structure changes.
        patch: States that changed, by element.
        stamp: Raised with each patch, so that the page paints once.
        badges: Short texts by element.
        breakpoints: Elements with a breakpoint; set by both sides.
        selected: Element id of the selected node, or `""`; set by both sides.
        view: Zoom and place, as last reported by the page. Never part of a saved notebook.
        model: The state of the panel, without the widget.
    """

    _esm = read_script("graph_panel.js")
    _css = live_style()

    svg = traitlets.Unicode("").tag(sync=True)
    patch = traitlets.Dict().tag(sync=True)
    stamp = traitlets.Int(0).tag(sync=True)
    badges = traitlets.Dict().tag(sync=True)
    breakpoints = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    height = traitlets.Int(420).tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    looks = traitlets.Dict(_LOOKS).tag(sync=True)
    view = traitlets.Dict()

    def __init__(self, model: PanelModel, *, height: int = 420) -> None:
        self._connect(model, interval_s=0.05)
        self._watch = PageWatch()
        super().__init__(height=height, svg=model.view.live_svg(), label=_label(model), note=model.note)
        self.on_msg(self._from_page)
        self.observe(self._selected_on_page, "selected")
        self.observe(self._breakpoints_on_page, "breakpoints")
        self.observe(self._view_from_python, "view")

    def close(self) -> None:
        """Take the panel off the page and drop its content; may be called twice."""
        self._pacer.close()
        self._watch.finish()
        if self.comm is not None:
            with self.hold_sync():
                self.svg = self.selected = self.note = self.label = ""
                self.patch, self.badges, self.breakpoints = {}, {}, []
        super().close()

    def expect_page(self) -> None:
        """Say in the cell how to switch to the plain view, if no page shows this panel within five seconds.

        Displaying the panel does this by itself; call it when the panel is displayed inside a box.
        """
        self._watch.start()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        self.expect_page()
        return super()._repr_mimebundle_(**kwargs)

    def _send_changes(self) -> None:
        patch, badges = self.model.take_patch(), self.model.drawn_badges()
        if patch or badges != self.badges:
            with self.hold_sync():
                self.patch = patch
                self.badges = badges
                self.stamp += 1

    def _send_layout(self) -> None:
        with self.hold_sync():
            self.svg = self.model.view.live_svg()
            self.note = self.model.note
            self.patch = self.model.drawn_states()
            self.badges = self.model.drawn_badges()
            self.stamp += 1

    def _from_page(self, _widget: object, content: object, _buffers: object) -> None:
        """A message of the page. It is only believed where it names what is there."""
        if not isinstance(content, dict):
            return
        kind = content.get("kind")
        if kind == "ready":
            self._watch.finish()
            self.send({"kind": "full", "states": self.model.drawn_states()})
            if self.view:
                self.send({"kind": "view", "view": self.view})
        elif kind == "open":
            self._open(str(content.get("element")))
        elif kind == "view":
            self._view_on_page(content.get("view"))

    def _open(self, element: str) -> None:
        node = self.model.shape.node_of.get(element)
        if node is not None and {"group", "subworkflow"}.intersection(node.kinds):
            self.toggle_expanded(node.id)

    def _view_on_page(self, view: object) -> None:
        if isinstance(view, dict):
            numbers = {name: view[name] for name in ("zoom", "x", "y") if isinstance(view.get(name), (int, float))}
            self.unobserve(self._view_from_python, "view")
            self.view = numbers
            self.observe(self._view_from_python, "view")

    def _view_from_python(self, change: Any) -> None:
        self.send({"kind": "view", "view": change["new"]})

    def _selected_on_page(self, change: Any) -> None:
        if change["new"] != self.model.element(self.model.selected):
            self._selected_is(self.model.executor_of(change["new"]))

    def _breakpoints_on_page(self, change: Any) -> None:
        if list(change["new"]) != [self.model.element(each) for each in self.model.breakpoints]:
            self._breakpoints_are(change["new"])


def _label(model: PanelModel) -> str:
    name = esc(model.shape.name, into="line", limit=80)
    return f"Graph of {name}. Arrow keys move between nodes, Enter selects, b sets a breakpoint."
