"""The common part of both graph panels: commands and listeners around the model, sent at a bounded rate."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.graph.view import GraphView
from agentbench.notebook.graph_panel.model import PanelModel
from agentbench.notebook.runtime.pacing import TRAIT_LOCK, Pacer
from agentbench.notebook.text.escape import esc

__all__ = ["PanelCommands", "Unsubscribe"]

Unsubscribe = Callable[[], None]


class PanelCommands:
    """Mixed into a widget that has the traits `selected` and `breakpoints` and the methods named below.

    The widget implements `_send_changes()`, which displays the result of `model.take_patch()`, and `_send_layout()`,
    which displays another picture.
    """

    model: PanelModel
    selected: str
    breakpoints: list[str]

    def _connect(self, model: PanelModel, *, interval_s: float) -> None:
        self.model = model
        self._pacer = Pacer(self._send_gathered, interval_s=interval_s)
        self._listeners: dict[str, list[Callable[[Any], object]]] = {"select": [], "breakpoints": []}

    def _send_changes(self) -> None:
        raise NotImplementedError

    def _send_layout(self) -> None:
        raise NotImplementedError

    def _send_gathered(self) -> None:
        with TRAIT_LOCK:
            if self.model.follow():
                self._send_layout()
            self._send_changes()

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
        self._selected_is(executor_id)

    def set_breakpoints(self, executor_ids: Iterable[str]) -> None:
        """Replace the displayed breakpoints; listeners of `on_breakpoints` are not called.

        Raises:
            ValueError: For an id that the workflow does not have.
        """
        self.model.breakpoints = self.model.drawable(executor_ids)
        self._show_breakpoints()

    def on_select(self, fn: Callable[[str | None], object]) -> Unsubscribe:
        """Call `fn(executor_id or None)` whenever the selection changes."""
        return self._listen("select", fn)

    def on_breakpoints(self, fn: Callable[[tuple[str, ...]], object]) -> Unsubscribe:
        """Call `fn(executor_ids)` when the person sets or clears a breakpoint in the picture."""
        return self._listen("breakpoints", fn)

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

    def _listen(self, kind: str, fn: Callable[[Any], object]) -> Unsubscribe:
        listeners = self._listeners[kind]
        listeners.append(fn)

        def stop() -> None:
            if fn in listeners:
                listeners.remove(fn)

        return stop

    def _notify(self, kind: str, value: object) -> None:
        for fn in list(self._listeners[kind]):
            fn(value)

    def _redraw(self) -> None:
        with TRAIT_LOCK:
            self._send_layout()
            self._show_selected()
            self._show_breakpoints()

    def _selected_is(self, executor_id: str | None) -> None:
        """Take over a selection, from Python or from the page, and call the listeners."""
        changed = executor_id != self.model.selected
        self.model.selected = executor_id
        if executor_id is not None and self.model.follow():
            self._redraw()
        self._show_selected()
        if changed:
            self._notify("select", executor_id)

    def _breakpoints_are(self, elements: Iterable[object]) -> None:
        """Take over breakpoints that the person set; those inside folded groups stay."""
        on_page = {element: self.model.executor_of(element) for element in map(str, elements)}
        drawn = {node.id for node in self.shape.node_of.values()}
        hidden = [each for each in self.model.breakpoints if each not in drawn]
        before = self.model.breakpoints
        known = [each for each in on_page.values() if each is not None and self._can_break(each)]
        self.model.breakpoints = self.model.drawable([*hidden, *known])
        self._show_breakpoints()
        if self.model.breakpoints != before:
            self._notify("breakpoints", self.model.breakpoints)

    def _can_break(self, node_id: str) -> bool:
        return not any("group" in node.kinds for node in self.shape.nodes if node.id == node_id)

    def _show_selected(self) -> None:
        element = self.model.element(self.model.selected)
        if self.selected != element:
            with TRAIT_LOCK:
                self.selected = element

    def _show_breakpoints(self) -> None:
        elements = [element for each in self.model.breakpoints if (element := self.model.element(each))]
        if list(self.breakpoints) != elements:
            with TRAIT_LOCK:
                self.breakpoints = elements

    def __repr__(self) -> str:
        name = esc(self.model.shape.name, into="line", limit=80)
        return f"{type(self).__name__}({name}, {len(self.model.shape.nodes)} nodes)"
