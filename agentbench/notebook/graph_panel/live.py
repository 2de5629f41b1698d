"""`GraphPanel`: a graph as an anywidget; the picture is sent once, states are sent as small maps."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import anywidget
import traitlets

from agentbench._text.escape import esc
from agentbench.notebook.graph.folding import HOW_TO_OPEN
from agentbench.notebook.graph.view import GraphView, busy_executors, draw
from agentbench.notebook.look.states import STATES
from agentbench.notebook.look.style import live_style, read_script
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import PageWatch
from agentbench.notebook.runtime.listeners import CallbackList, Unsubscribe
from agentbench.notebook.runtime.pacing import TRAIT_LOCK, Pacer
from agentbench.notebook.runtime.stand_in import StandIn
from agentbench.workflows.draw.shape import GraphShape

LOOKS = {name: [style.icon, style.words if name != "idle" else ""] for name, style in STATES.items()}

_BADGE_LIMIT = 24


def panel_note(shape: GraphShape) -> str:
    """Return a line about folded and hidden nodes and how to open them; empty if everything is drawn."""
    here = "To open one, select it, then click it again or press Enter."
    return esc(shape.note.replace(HOW_TO_OPEN, here), into="line")


class GraphPanel(anywidget.AnyWidget):
    """A live graph in a cell: states of a run, selection, breakpoints. Made by `make_graph_panel`; see its example.

    Executors are named by their ids, edges by (source id, target id). Unknown ids and states raise `ValueError`.
    Methods may be called from any thread and for every event: changes are collected, the latest state wins,
    and at most 20 messages per second are sent to the page.

    Example:
        panel = make_graph_panel(workflow)
        panel.update({"review": "running"}, badges={"review": "2 visits"})
        panel.snapshot().save("graph.svg")

    Attributes:
        view: Zoom and position, as last reported by the page. Never stored in a notebook.
    """

    _esm = read_script("svg.js", "graph_panel.js")
    _css = live_style()

    # Keys are elements ("n3") of the picture. The page paints once per `stamp`; both sides set `breakpoints` and
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

    def __init__(
        self, source: object, *, expand: Collection[str] | bool = (), height: int = 420, **options: Any
    ) -> None:
        self._source = source
        self._options = options  # options of `draw`
        self._expand = expand if isinstance(expand, bool) else tuple(expand)
        # By executor id, or by (source id, target id), including folded and hidden elements.
        self._states: dict[Any, str] = {}
        self._badges: dict[str, str] = {}
        self._breakpoints: tuple[str, ...] = ()
        self._selected: str | None = None
        self._sent: dict[str, str] = {}
        self._pacer = Pacer(self._send_changes, interval_s=0.05)
        self._watch = PageWatch()
        self._stand_in = StandIn(self, lambda: self.snapshot()._repr_mimebundle_())
        self._listeners = CallbackList()
        self._drawn = self._draw()  # last, so that the rest can be closed if it raises
        name = esc(self.shape.name, into="line", limit=80)
        label = f"Graph of {name}. Arrow keys move between nodes, Enter selects, b sets a breakpoint."
        super().__init__(height=height, svg=self._drawn.live_svg, label=label, note=panel_note(self.shape))
        self.on_msg(self._from_page)
        self.observe(self._selected_on_page, "selected")
        self.observe(self._breakpoints_on_page, "breakpoints")
        self.observe(self._view_from_python, "view")

    @property
    def shape(self) -> GraphShape:
        """The drawn graph, with groups as currently folded or opened."""
        return self._drawn.shape

    @property
    def states(self) -> dict[Any, str]:
        """States by executor id and by (source id, target id), as last set; a copy."""
        return dict(self._states)

    @property
    def table(self) -> str:
        """All nodes, including folded and hidden ones, one per line with their states."""
        return self.snapshot().table

    @property
    def selected_id(self) -> str | None:
        """Executor id of the selected node, `None` if nothing or an edge is selected."""
        return self._selected

    @property
    def breakpoint_ids(self) -> tuple[str, ...]:
        """Executor ids with a breakpoint, in builder order."""
        return self._breakpoints

    def update(self, states: Mapping[Any, str], badges: Mapping[str, object] | None = None) -> None:
        """Change the states of some elements and the badges of some nodes; others do not change.

        Args:
            states: Keys of `STATES`, by executor id or by (source id, target id).
            badges: Short texts by executor id; `None` or empty removes a badge.

        Raises:
            ValueError: For an unknown state; nothing is changed.
        """
        if unknown := set(states.values()) - STATES.keys():
            msg = f"Unknown state {min(unknown)!r}. Use one of {', '.join(map(repr, STATES))}."
            raise ValueError(msg)
        with TRAIT_LOCK:
            self._states.update(states)
            for executor_id, badge in (badges or {}).items():
                self._badges[executor_id] = "" if badge is None else esc(badge, into="line", limit=_BADGE_LIMIT)
        self._pacer.touch()

    def reset(self) -> None:
        """Reset every element to idle and remove all badges."""
        with TRAIT_LOCK:
            self._states.clear()
            self._badges.clear()
        self._pacer.touch()

    def flush(self) -> None:
        """Send all collected changes immediately."""
        self._pacer.flush()

    def select(self, executor_id: str | None) -> None:
        """Select a node, or nothing; listeners of `on_select` are called.

        Raises:
            ValueError: For an unknown id.
        """
        if executor_id is not None:
            self._in_order([executor_id])
        changed = executor_id != self._selected
        self._selected = executor_id
        if executor_id is not None and self._is_elsewhere():
            self._redraw()
        self._show_marks()
        if changed:
            self._listeners.emit("select", executor_id)

    def set_breakpoints(self, executor_ids: Iterable[str]) -> None:
        """Replace the displayed breakpoints; listeners of `on_breakpoints` are not called.

        Raises:
            ValueError: For an unknown id.
        """
        self._breakpoints = self._in_order(executor_ids)
        self._show_marks()

    def on_select(self, fn: Callable[[str | None], object]) -> Unsubscribe:
        """Call `fn(executor_id or None)` when the selection changes."""
        return self._listeners.add("select", fn)

    def on_breakpoints(self, fn: Callable[[tuple[str, ...]], object]) -> Unsubscribe:
        """Call `fn(executor_ids)` when the person sets or clears a breakpoint in the picture."""
        return self._listeners.add("breakpoints", fn)

    def set_expanded(self, group_ids: Iterable[str]) -> None:
        """Open these groups and sub-workflows and fold all others."""
        self._expand = tuple(group_ids)
        self._redraw()

    def toggle_expanded(self, group_id: str) -> None:
        """Open a folded group or sub-workflow, or fold it again."""
        opened = {frame.id for frame in self.shape.frames} if self._expand is True else set(self._expand or ())
        self.set_expanded(sorted(opened ^ {group_id}))

    def snapshot(self) -> GraphView:
        """Return a static picture with the current states."""
        return draw(self._source, run=self.states, expand=self._expand, **self._options)

    def expect_page(self) -> None:
        """Display advice in the cell if no page loads this panel within five seconds.

        Displaying the panel does this automatically; call it if the panel is inside a box.
        """
        self._watch.start()

    def close(self) -> None:
        """Close the panel and drop its content. May be called twice."""
        if "_stand_in" not in vars(self):
            return  # the constructor refused its arguments
        self._pacer.close()
        self._watch.finish()
        self._stand_in.close()
        if self.comm is not None:
            with self.hold_sync():
                self.svg = self.selected = self.note = self.label = ""
                self.patch, self.badges, self.breakpoints = {}, {}, []
        super().close()

    def __repr__(self) -> str:
        return f"GraphPanel({esc(self.shape.name, into='line', limit=80)}, {len(self.shape.nodes)} nodes)"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if not settings.current().live_graph:
            still = self.snapshot()._repr_mimebundle_()
            return still | {"text/plain": f"{still['text/plain']}\nLive panels are off: configure(live_graph=False)."}
        self.expect_page()
        return self._stand_in.bundle(super()._repr_mimebundle_(**kwargs), kwargs.get("include"))

    # ---- what is drawn

    def _draw(self) -> GraphView:
        """Draw the graph; of a very large one the part around the selection, otherwise around the running executors."""
        focus = self.states if self._selected is None else {self._selected: "running"}
        return draw(self._source, run=focus, expand=self._expand, **self._options)

    def _is_elsewhere(self) -> bool:
        """Whether all activity in a very large graph is outside the drawn part."""
        focus = [self._selected] if self._selected is not None else busy_executors(self._states)
        return bool(self.shape.hidden and focus and not any(each in self.shape.element_of for each in focus))

    def _element_of(self, executor_id: str | None) -> str:
        return self.shape.element_of.get(executor_id or "", "")

    def _breakpoint_elements(self) -> list[str]:
        return [element for each in self._breakpoints if (element := self._element_of(each))]

    def _in_order(self, executor_ids: Iterable[str]) -> tuple[str, ...]:
        """Return these ids, each once, in builder order; `ValueError` for an unknown one."""
        wanted = set(executor_ids)
        order = [node.id for node in (*self._drawn.whole.nodes, *self._drawn.whole.frames, *self.shape.nodes)]
        if unknown := wanted.difference(order):
            msg = f"Unknown executor {min(unknown)!r} in {self.shape.name!r}. Use an id of workflow.executors."
            raise ValueError(msg)
        return tuple(dict.fromkeys(each for each in order if each in wanted))

    # ---- to the page

    def _send_changes(self) -> None:
        self._stand_in.touch()
        with TRAIT_LOCK:
            if self._is_elsewhere():
                self._redraw()
            else:
                self._send_states()

    def _redraw(self) -> None:
        with TRAIT_LOCK:
            self._drawn, self._sent = self._draw(), {}
            with self.hold_sync():
                self.svg, self.note, self.patch = self._drawn.live_svg, panel_note(self.shape), {}
                self._send_states()
            self._show_marks()

    def _send_states(self) -> None:
        """Send the changed states, and the badges; those of members of a folded group are omitted."""
        states = replace(self._drawn, states=self._states).element_states
        patch = {
            element: states.get(element, "idle")
            for element in states | self._sent
            if states.get(element, "idle") != self._sent.get(element, "idle")
        }
        nodes = self.shape.node_of.items()
        # The badge of an open sub-workflow would cover its content.
        badges = {
            element: badge
            for element, node in nodes
            if node not in self.shape.frames and (badge := self._badges.get(node.id))
        }
        self._sent = states
        if patch or badges != self.badges:
            with self.hold_sync():
                self.patch, self.badges = patch, badges
                self.stamp += 1

    def _show_marks(self) -> None:
        """Show the selection and the breakpoints."""
        with TRAIT_LOCK:  # setting a trait to its current value sends nothing
            self.selected = self._element_of(self._selected)
            self.breakpoints = self._breakpoint_elements()

    def _view_from_python(self, change: Any) -> None:
        self.send({"kind": "view", "view": change["new"]})

    # ---- from the page; unknown names are ignored

    def _from_page(self, _widget: object, content: object, _buffers: object) -> None:
        match content:
            case {"kind": "ready"}:
                self._watch.finish()
                self.send({"kind": "full", "states": {key: each for key, each in self._sent.items() if each != "idle"}})
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
        if change["new"] != self._element_of(self._selected):
            node = self.shape.node_of.get(change["new"])
            self.select(None if node is None else node.id)

    def _breakpoints_on_page(self, change: Any) -> None:
        """Apply the breakpoints that the person set; those inside folded groups are kept."""
        if change["new"] == self._breakpoint_elements():
            return
        drawn, before = self.shape.node_of, self._breakpoints
        hidden = set(before) - {node.id for node in drawn.values()}
        nodes = [drawn[element] for element in change["new"] if element in drawn]
        self._breakpoints = self._in_order([*hidden, *(node.id for node in nodes if "group" not in node.kinds)])
        if self._breakpoints != before:
            self._listeners.emit("breakpoints", self._breakpoints)
        self._show_marks()
