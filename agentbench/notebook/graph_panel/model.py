"""The model of a graph panel, without any widget: states, badges, selection, breakpoints, by executor and element."""

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentbench.notebook.graph.folding import HOW_TO_OPEN
from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.graph.view import GraphView, busy_executors, draw
from agentbench.notebook.look.states import STATES, strongest
from agentbench.notebook.text.escape import esc

__all__ = ["PanelModel"]

_BADGE_LIMIT = 24


class PanelModel:
    """The state behind a panel, which takes the arguments of `make_graph_panel`. Any thread may call its methods."""

    def __init__(
        self,
        source: object,
        *,
        direction: str = "LR",
        expand: Collection[str] | bool = (),
        max_nodes: int = 300,
    ) -> None:
        self._lock = threading.RLock()
        self._source = source
        self._options: dict[str, Any] = {"direction": direction, "max_nodes": max_nodes}
        self.states: dict[Any, str] = {}
        self.badges: dict[str, str] = {}
        self.breakpoints: tuple[str, ...] = ()
        self.selected: str | None = None
        self.expand: tuple[str, ...] | bool = expand if isinstance(expand, bool) else tuple(expand)
        self._draw()

    def snapshot(self) -> GraphView:
        """Return a picture with the states as they are now."""
        with self._lock:
            return draw(self._source, run=dict(self.states), expand=self.expand, **self._options)

    def _draw(self) -> None:
        """Draw the graph; of a very large one the part around the selection, else around the busy executors."""
        focus = self.states if self.selected is None else {self.selected: "running"}
        view = draw(self._source, run=dict(focus), expand=self.expand, **self._options)
        self.view = replace(view, states={})
        self._keys_of: dict[str, list[Any]] = {}
        self._patch: dict[str, str] = {}
        for key in self.states:
            self._note(key)
        self._sent: dict[str, str] = self.drawn_states()

    def follow(self) -> bool:
        """Draw another part of a very large graph, if all activity is outside the drawn one. True if it did."""
        with self._lock:
            focus = [self.selected] if self.selected is not None else busy_executors(self.states)
            if not self.shape.hidden or not focus or any(each in self.shape.element_of for each in focus):
                return False
            self._draw()
            return True

    @property
    def shape(self) -> GraphShape:
        """The graph as it is drawn now."""
        return self.view.shape

    @property
    def note(self) -> str:
        """A line about folded and hidden nodes, and how to open them; empty when everything is drawn."""
        return esc(
            self.shape.note.replace(HOW_TO_OPEN, "To open one, select it, then click it again or press Enter."),
            into="line",
        )

    def set_expanded(self, group_ids: Collection[str]) -> None:
        """Open these groups and sub-workflows and fold all others; states and the rest stay."""
        with self._lock:
            self.expand = tuple(group_ids)
            self._draw()

    def toggle_expanded(self, group_id: str) -> None:
        """Open what is folded, fold what is open."""
        opened = {frame.id for frame in self.shape.frames} if self.expand is True else set(self.expand or ())
        self.set_expanded(sorted(opened ^ {group_id}))

    def update(self, states: Mapping[Any, str], badges: Mapping[str, object] | None = None) -> None:
        """Take in states and badges. Those of ids that are not drawn are stored until their group is opened.

        Raises:
            ValueError: For a state that does not exist; nothing is changed then.
        """
        unknown = set(states.values()) - STATES.keys()
        if unknown:
            msg = f"There is no state {min(unknown)!r}. Use one of {', '.join(map(repr, STATES))}."
            raise ValueError(msg)
        with self._lock:
            for key, state in states.items():
                self.states[key] = state
                element = self._note(key)
                if element is not None:
                    self._patch[element] = self._state_of(element)
            for executor_id, badge in (badges or {}).items():
                self.badges[executor_id] = "" if badge is None else esc(badge, into="line", limit=_BADGE_LIMIT)

    def reset(self) -> None:
        """Set every element to idle and drop all badges."""
        with self._lock:
            self.update(dict.fromkeys(self.states, "idle"))
            self.states.clear()
            self.badges.clear()
            self._keys_of.clear()

    def take_patch(self) -> dict[str, str]:
        """Return the states that have changed since the last call, by element."""
        with self._lock:
            patch, self._patch = self._patch, {}
            patch = {element: state for element, state in patch.items() if self._sent.get(element, "idle") != state}
            self._sent.update(patch)
            return patch

    def drawn_states(self) -> dict[str, str]:
        """States of all elements that are not idle, gathered changes included."""
        with self._lock:
            found = {element: self._state_of(element) for element in self._keys_of}
        return {element: state for element, state in found.items() if state != "idle"}

    def drawn_badges(self) -> dict[str, str]:
        """Badges by element; those of members of a folded group are left out."""
        with self._lock:
            nodes = self.shape.node_of.items()
            return {element: badge for element, node in nodes if (badge := self.badges.get(node.id))}

    def element(self, executor_id: str | None) -> str:
        """Return the element of an executor, `""` for none."""
        return self.shape.element_of.get(executor_id, "") if executor_id is not None else ""

    def executor_of(self, element: str) -> str | None:
        """Return the id of the node or frame with this element, `None` for edges and unknown ones."""
        node = self.shape.node_of.get(element)
        return None if node is None else node.id

    @property
    def breakpoint_elements(self) -> list[str]:
        """The elements of the breakpoints that are drawn."""
        return [element for each in self.breakpoints if (element := self.element(each))]

    def take_breakpoints(self, elements: Iterable[str]) -> bool:
        """Take over breakpoints that the person set; those inside folded groups stay. True if they are others now."""
        drawn, before = self.shape.node_of, self.breakpoints
        nodes = [drawn[element] for element in elements if element in drawn]
        hidden = set(before) - {node.id for node in drawn.values()}
        self.breakpoints = self.drawable([*hidden, *(node.id for node in nodes if "group" not in node.kinds)])
        return self.breakpoints != before

    def drawable(self, executor_ids: Iterable[str]) -> tuple[str, ...]:
        """Return those ids that can be drawn, each once, in builder order.

        Raises:
            ValueError: For an id that the workflow does not have.
        """
        wanted = set(executor_ids)
        order = [node.id for node in (*self.view.whole.nodes, *self.view.whole.frames, *self.shape.nodes)]
        unknown = wanted.difference(order)
        if unknown:
            msg = f"There is no executor {min(unknown)!r} in {self.shape.name!r}. Use an id of workflow.executors."
            raise ValueError(msg)
        return tuple(dict.fromkeys(each for each in order if each in wanted))

    def _note(self, key: Any) -> str | None:
        """Remember which element a key belongs to; `None` if it is not drawn."""
        element = self.shape.element(key)
        if element is not None:
            keys = self._keys_of.setdefault(element, [])
            if key not in keys:
                keys.append(key)
        return element

    def _state_of(self, element: str) -> str:
        return strongest(self.states[key] for key in self._keys_of.get(element, ()) if key in self.states)
