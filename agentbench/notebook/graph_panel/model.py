"""The model of a graph panel, without any widget: states, badges, selection, breakpoints, by executor and element."""

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agentbench.notebook.graph.folding import HOW_TO_OPEN, fit
from agentbench.notebook.graph.shape import GraphShape, read_shape
from agentbench.notebook.graph.view import GraphView, checked_direction, detail_for, draw
from agentbench.notebook.look.states import STATES, strongest
from agentbench.notebook.text.escape import esc

__all__ = ["PanelModel"]

_BADGE_LIMIT = 24
_BUSY = ("running", "waiting", "failed", "queued")


class PanelModel:
    """The state behind a panel. All methods may be called from any thread.

    Args:
        source: A workflow, a run of one, or a shape.
        direction: Where the edges lead.
        expand: Sub-workflows and groups that are open, by id; `True` opens all sub-workflows.
        max_nodes: Above this number of nodes, look-alikes are folded.
    """

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
        self._direction = direction
        self._max_nodes = max_nodes
        self.states: dict[Any, str] = {}
        self.badges: dict[str, str] = {}
        self.breakpoints: tuple[str, ...] = ()
        self.selected: str | None = None
        self.expand: tuple[str, ...] | bool = expand if isinstance(expand, bool) else tuple(expand)
        self._draw()

    def _draw(self) -> None:
        whole = read_shape(self._source, expand=self.expand)
        opened = () if isinstance(self.expand, bool) else self.expand
        shape = fit(whole, max_nodes=self._max_nodes, expand=opened, focus=self._focus())
        self.view = GraphView(
            shape=shape,
            whole=whole,
            states={},
            direction=checked_direction(self._direction, shape),
            detail=detail_for(shape),
        )
        self._keys_of: dict[str, list[Any]] = {}
        self._patch: dict[str, str] = {}
        for key in self.states:
            self._note(key)
        self._sent: dict[str, str] = self.drawn_states()

    def _focus(self) -> list[str]:
        """The executors around which a part of a very large graph is drawn: the selection, else those that are busy."""
        if self.selected is not None:
            return [self.selected]
        return [key for key, state in self.states.items() if state in _BUSY and isinstance(key, str)]

    def follow(self) -> bool:
        """Draw another part of a very large graph, if all activity is outside the drawn one. True if it did."""
        with self._lock:
            focus = self._focus()
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
        return esc(self.shape.note.replace(HOW_TO_OPEN, "select one, then Enter or a click opens it"), into="line")

    def set_expanded(self, group_ids: Collection[str]) -> None:
        """Open these groups and sub-workflows and fold all others; states and the rest stay."""
        with self._lock:
            self.expand = tuple(group_ids)
            self._draw()

    def toggle_expanded(self, group_id: str) -> None:
        """Open what is folded, fold what is open."""
        opened = [frame.id for frame in self.shape.frames] if self.expand is True else list(self.expand or ())
        self.set_expanded([each for each in opened if each != group_id] if group_id in opened else [*opened, group_id])

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
                text = esc(badge, into="line", limit=_BADGE_LIMIT) if badge is not None else ""
                if text:
                    self.badges[executor_id] = text
                else:
                    self.badges.pop(executor_id, None)

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
            patch = {
                element: state for element, state in self._patch.items() if self._sent.get(element, "idle") != state
            }
            self._sent.update(patch)
            self._patch = {}
            return patch

    def drawn_states(self) -> dict[str, str]:
        """States of all elements that are not idle, gathered changes included."""
        with self._lock:
            found = {element: self._state_of(element) for element in self._keys_of}
        return {element: state for element, state in found.items() if state != "idle"}

    def drawn_badges(self) -> dict[str, str]:
        """Badges by element; those of members of a folded group are left out."""
        with self._lock:
            drawn = {node.id: element for element, node in self.shape.node_of.items()}
            return {drawn[executor_id]: text for executor_id, text in self.badges.items() if executor_id in drawn}

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
        nodes = [node for element in elements if (node := self.shape.node_of.get(element)) is not None]
        drawn = {node.id for node in self.shape.node_of.values()}
        hidden = [each for each in self.breakpoints if each not in drawn]
        before = self.breakpoints
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

    def snapshot(self) -> GraphView:
        """Return a picture with the states as they are now."""
        with self._lock:
            return draw(
                self._source,
                run=dict(self.states),
                direction=self._direction,
                expand=self.expand,
                max_nodes=self._max_nodes,
            )

    def _note(self, key: Any) -> str | None:
        """Remember which element a key belongs to; `None` if it is not drawn."""
        element = self.shape.edge_element(*key) if isinstance(key, tuple) else self.shape.element_of.get(key)
        if element is not None:
            keys = self._keys_of.setdefault(element, [])
            if key not in keys:
                keys.append(key)
        return element

    def _state_of(self, element: str) -> str:
        return strongest(self.states[key] for key in self._keys_of.get(element, ()) if key in self.states)
