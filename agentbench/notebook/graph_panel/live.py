"""`GraphPanel`: the graph as an anywidget, whose picture is sent once and whose states follow as small maps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.graph.view import GraphView
from agentbench.notebook.graph_panel.model import PanelModel
from agentbench.notebook.look.states import STATES
from agentbench.notebook.look.style import live_style, read_script
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.listeners import Listeners, Unsubscribe
from agentbench.notebook.runtime.pacing import TRAIT_LOCK, Pacer
from agentbench.notebook.runtime.page_watch import PageWatch
from agentbench.notebook.text.escape import esc

__all__ = ["LOOKS", "GraphPanel"]

LOOKS = {name: [style.icon, style.words if name != "idle" else ""] for name, style in STATES.items()}


class GraphPanel(anywidget.AnyWidget):
    """A live graph in a cell: states of a run, selection, breakpoints. Made by `make_graph_panel`; see its example.

    Executors are named by their ids, edges by (source id, target id). Ids that the workflow does not have, and unknown
    states, raise `ValueError`. Methods may be called from any thread and as often as events come: changes are gathered,
    the latest state of an element wins, and at most 20 messages a second go to the page.

    Example:
        panel = make_graph_panel(workflow)
        panel.update({"review": "running"}, badges={"review": "2 visits"})
        panel.snapshot().save("graph.svg")

    Attributes:
        view: Zoom and place, as last reported by the page. Never part of a saved notebook.
        model: The state of the panel, without the widget.
    """

    _esm = read_script("graph_panel.js")
    _css = live_style()

    # Elements ("n3") of the picture are the keys. The page paints once each `stamp`; both sides set `breakpoints` and
    # `selected`.
    svg = traitlets.Unicode("").tag(sync=True)
    patch = traitlets.Dict().tag(sync=True)
    stamp = traitlets.Int(0).tag(sync=True)
    badges = traitlets.Dict().tag(sync=True)
    breakpoints = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    height = traitlets.Int(420).tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    looks = traitlets.Dict(LOOKS).tag(sync=True)
    view = traitlets.Dict()

    def __init__(self, model: PanelModel, *, height: int = 420) -> None:
        self.model = model
        self._pacer = Pacer(self._send_changes, interval_s=0.05)
        self._watch = PageWatch()
        self._listeners = Listeners()
        name = esc(model.shape.name, into="line", limit=80)
        label = f"Graph of {name}. Arrow keys move between nodes, Enter selects, b sets a breakpoint."
        super().__init__(height=height, svg=model.view.live_svg, label=label, note=model.note)
        self.on_msg(self._from_page)
        self.observe(self._selected_on_page, "selected")
        self.observe(self._breakpoints_on_page, "breakpoints")
        self.observe(self._view_from_python, "view")

    @property
    def shape(self) -> GraphShape:
        """The graph that is drawn, groups folded or opened as they are now."""
        return self.model.shape

    @property
    def states(self) -> dict[Any, str]:
        """States by executor id and by (source id, target id), as last set; a copy."""
        return dict(self.model.states)

    @property
    def text(self) -> str:
        """The graph and its states as text."""
        return self.snapshot().text

    @property
    def table(self) -> str:
        """All nodes, those that are folded or hidden too, one a line with their states."""
        return self.snapshot().table

    @property
    def selected_id(self) -> str | None:
        """Executor id of the selected node, `None` when nothing or an edge is selected."""
        return self.model.selected

    @property
    def breakpoint_ids(self) -> tuple[str, ...]:
        """Executor ids with a breakpoint, in builder order."""
        return self.model.breakpoints

    def update(self, states: Mapping[Any, str], badges: Mapping[str, object] | None = None) -> None:
        """Change the states of some elements and the badges of some nodes; what is not named stays as it is.

        Args:
            states: Keys of `STATES`, by executor id or by (source id, target id).
            badges: Short texts by executor id; `None` or empty takes a badge away.

        Raises:
            ValueError: For a state that does not exist.
        """
        self.model.update(states, badges)
        self._pacer.touch()

    def reset(self) -> None:
        """Put every element back to idle and drop all badges."""
        self.model.reset()
        self._pacer.touch()

    def flush(self) -> None:
        """Send at once what is still being gathered."""
        self._pacer.flush()

    def select(self, executor_id: str | None) -> None:
        """Select a node, or nothing; listeners of `on_select` are called.

        Raises:
            ValueError: For an id that the workflow does not have.
        """
        if executor_id is not None:
            self.model.drawable([executor_id])
        changed = executor_id != self.model.selected
        self.model.selected = executor_id
        if executor_id is not None and self.model.follow():
            self._redraw()
        self._show_marks()
        if changed:
            self._listeners.emit("select", executor_id)

    def set_breakpoints(self, executor_ids: Iterable[str]) -> None:
        """Replace the displayed breakpoints; listeners of `on_breakpoints` are not called.

        Raises:
            ValueError: For an id that the workflow does not have.
        """
        self.model.breakpoints = self.model.drawable(executor_ids)
        self._show_marks()

    def on_select(self, fn: Callable[[str | None], object]) -> Unsubscribe:
        """Call `fn(executor_id or None)` whenever the selection changes."""
        return self._listeners.add("select", fn)

    def on_breakpoints(self, fn: Callable[[tuple[str, ...]], object]) -> Unsubscribe:
        """Call `fn(executor_ids)` when the person sets or clears a breakpoint in the picture."""
        return self._listeners.add("breakpoints", fn)

    def set_expanded(self, group_ids: Sequence[str]) -> None:
        """Open these groups and sub-workflows, fold all others."""
        self.model.set_expanded(group_ids)
        self._redraw()

    def toggle_expanded(self, group_id: str) -> None:
        """Open a folded group or sub-workflow, or fold it again."""
        self.model.toggle_expanded(group_id)
        self._redraw()

    def snapshot(self) -> GraphView:
        """Return a static picture with the states as they are now."""
        return self.model.snapshot()

    def expect_page(self) -> None:
        """Say in the cell what to do, if no page shows this panel within five seconds.

        Displaying the panel does this by itself; call it when the panel is displayed inside a box.
        """
        self._watch.start()

    def close(self) -> None:
        """Take the panel off the page and drop its content; may be called twice."""
        self._pacer.close()
        self._watch.finish()
        if self.comm is not None:
            with self.hold_sync():
                self.svg = self.selected = self.note = self.label = ""
                self.patch, self.badges, self.breakpoints = {}, {}, []
        super().close()

    def __repr__(self) -> str:
        name = esc(self.model.shape.name, into="line", limit=80)
        return f"GraphPanel({name}, {len(self.model.shape.nodes)} nodes)"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if not settings.current().live_graph:
            still = self.snapshot()._repr_mimebundle_()
            return still | {"text/plain": f"{still['text/plain']}\nLive panels are off: configure(live_graph=False)."}
        self.expect_page()
        return super()._repr_mimebundle_(**kwargs)

    # ---- to the page

    def _send_changes(self) -> None:
        with TRAIT_LOCK:
            if self.model.follow():
                self._redraw()
            patch, badges = self.model.take_patch(), self.model.drawn_badges()
            if patch or badges != self.badges:
                with self.hold_sync():
                    self.patch, self.badges = patch, badges
                    self.stamp += 1

    def _redraw(self) -> None:
        with TRAIT_LOCK:
            with self.hold_sync():
                self.svg, self.note = self.model.view.live_svg, self.model.note
                self.patch, self.badges = self.model.drawn_states(), self.model.drawn_badges()
                self.stamp += 1
            self._show_marks()

    def _show_marks(self) -> None:
        """Show the selection and the breakpoints."""
        with TRAIT_LOCK:  # a trait that is set to its own value sends nothing
            self.selected = self.model.element(self.model.selected)
            self.breakpoints = self.model.breakpoint_elements

    def _view_from_python(self, change: Any) -> None:
        self.send({"kind": "view", "view": change["new"]})

    # ---- from the page, which is only believed where it names what is there

    def _from_page(self, _widget: object, content: object, _buffers: object) -> None:
        match content:
            case {"kind": "ready"}:
                self._watch.finish()
                self.send({"kind": "full", "states": self.model.drawn_states()})
                if self.view:
                    self._view_from_python({"new": self.view})
            case {"kind": "open", "element": str(element)}:
                node = self.shape.node_of.get(element)
                if node is not None and {"group", "subworkflow"}.intersection(node.kinds):
                    self.toggle_expanded(node.id)
            case {"kind": "view", "view": dict(view)}:
                numbers = {name: view[name] for name in ("zoom", "x", "y") if isinstance(view.get(name), (int, float))}
                self.unobserve(self._view_from_python, "view")
                self.view = numbers
                self.observe(self._view_from_python, "view")

    def _selected_on_page(self, change: Any) -> None:
        if change["new"] != self.model.element(self.model.selected):
            self.select(self.model.executor_of(change["new"]))

    def _breakpoints_on_page(self, change: Any) -> None:
        if change["new"] == self.model.breakpoint_elements:
            return
        if self.model.take_breakpoints(change["new"]):
            self._listeners.emit("breakpoints", self.model.breakpoints)
        self._show_marks()
