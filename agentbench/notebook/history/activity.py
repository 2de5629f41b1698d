"""Pure: what each executor and edge of a graph is doing, folded from the events of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbench.notebook.look.states import strongest
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.report import PlannedDelivery

__all__ = ["Activity", "Element", "ElementStates", "course_of"]

#: An executor id, or the (source id, target id) of an edge.
Element = str | tuple[str, str]
#: States of the elements that are not idle.
ElementStates = Mapping[Element, str]

_RAN = ("done", "waiting", "failed")


def course_of(before: Iterable[ElementStates], now: ElementStates) -> dict[Element, str]:
    """Return the current states, with each element that ran in an earlier superstep at least `done`.

    Args:
        before: The states after each earlier superstep of the path.
        now: The current states.
    """
    ran = {element for states in before for element, state in states.items() if state in _RAN}
    return dict(now) | {element: strongest((now.get(element, "idle"), "done")) for element in ran}


class Activity:
    """The states of nodes and edges, and how often each executor was called.

    A superstep is `begin()`, its events through `see()`, then `rest()`. An element has the strongest of the states that
    apply to it: an executor that was called and emitted a request is `waiting`, not `done`.

    Args:
        nodes: Executor ids, in builder order.
        edges: (source id, target id) of each edge.
    """

    def __init__(self, nodes: Sequence[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        self.nodes = tuple(nodes)
        self.edges = tuple(dict.fromkeys(edges))
        self._known: frozenset[Element] = frozenset((*self.nodes, *self.edges))
        self._targets: dict[str, list[str]] = {}
        for source, target in self.edges:
            self._targets.setdefault(source, []).append(target)
        self.visits: Counter[str] = Counter()
        self.reset()

    def reset(self) -> None:
        """Make every element idle again; visits still count."""
        self._running: Counter[str] = Counter()
        self._done: set[Element] = set()
        self._failed: set[str] = set()
        self._waiting: set[str] = set()
        self._queued: set[Element] = set()
        self._not_taken: set[str] = set()

    def begin(self) -> None:
        """Start a superstep: queued edges deliver, and the states of the last superstep are cleared."""
        self._running.clear()
        self._failed.clear()
        self._not_taken.clear()
        self._done = {element for element in self._queued if isinstance(element, tuple)}
        self._queued = {element for element in self._queued if not isinstance(element, tuple)}

    def see(self, event: WorkflowEvent[Any]) -> None:
        """Update the states by one event of the superstep."""
        kind, executor = event.type, event.source_id or ""
        if kind == "executor_invoked":
            self._running[executor] += 1
            self._queued.discard(executor)
            self.visits[executor] += 1
        elif kind in ("executor_completed", "executor_failed", "executor_bypassed"):
            self._running[executor] -= 1
            (self._failed if kind == "executor_failed" else self._done).add(executor)
        elif kind == "request_info":
            self._waiting.add(executor)
        elif kind == "graph_routed" and isinstance(event.data, Mapping):
            # A target that was not chosen may get a message over another edge: it is done then, which is stronger.
            chosen = event.data.get("targets") or ()
            self._not_taken.update(t for t in self._targets.get(event.data.get("from") or "", ()) if t not in chosen)

    def rest(self, planned: Iterable[PlannedDelivery], waiting: Iterable[str]) -> None:
        """End the superstep.

        Args:
            planned: Deliveries of the next superstep.
            waiting: Executors with an open request.
        """
        self._running.clear()
        self._queued = set()
        for delivery in planned:
            self._queued.add(delivery.target)
            self._queued.update((source, delivery.target) for source in delivery.sources)
        self.wait_for(waiting)

    def wait_for(self, executors: Iterable[str]) -> None:
        """Set the executors that have an open request."""
        self._waiting = set(executors)

    @property
    def running(self) -> tuple[str, ...]:
        """Executors at work now, in builder order."""
        return tuple(node for node in self.nodes if self._running.get(node, 0) > 0)

    def states(self) -> dict[Element, str]:
        """Return the states of all elements that are not idle."""
        found: dict[Element, list[str]] = {}
        kinds: tuple[tuple[str, Iterable[Any]], ...] = (
            ("failed", self._failed),
            ("waiting", self._waiting),
            ("queued", self._queued),
            ("done", self._done),
            ("skipped", self._not_taken),
            ("running", (name for name, count in self._running.items() if count > 0)),
        )
        for state, members in kinds:
            for element in members:
                if element in self._known:
                    found.setdefault(element, []).append(state)
        return {element: strongest(states) for element, states in found.items()}

    def whole(self, states: ElementStates) -> dict[Element, str]:
        """Return the states of all elements, the idle ones too, so that a panel can replace the states it displays."""
        elements: tuple[Element, ...] = (*self.nodes, *self.edges)
        return {element: states.get(element, "idle") for element in elements}

    def badges(self) -> dict[str, str]:
        """Return a badge such as `x3` for each executor that was called more than once."""
        return {node: f"x{count}" for node in self.nodes if (count := self.visits.get(node, 0)) > 1}
