"""A compiled state graph as data: its nodes, edges, conditions and joins. This module runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentbench.exceptions import GraphError
from agentbench.stategraph.merging.state_fields import StateFields

Isolation = Literal["deep", "shallow"]
Durability = Literal["step", "task", "exit"]
OnBusy = Literal["raise", "wait", "stop"]
OnGraphChange = Literal["raise", "warn", "allow"]


@dataclass(frozen=True)
class NodeSpec:
    """A node: its position in the order of adding, its function, and its limits."""

    name: str
    order: int
    target: Any
    defer: bool = False
    timeout: float | None = None
    retries: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    goes_to: tuple[str, ...] | None = None
    """The possible targets of its `Command`s, as passed to `add_node`; None if not passed."""
    goto: tuple[str, ...] | None = ()
    """The possible targets of its `Command`s, from `goes_to` or its annotation; None for any target."""
    asks: bool | None = None
    """Whether it calls `interrupt()`, as passed to `add_node`."""


@dataclass(frozen=True)
class Condition:
    """Conditional edges: the function, the targets of its results, and all targets if they are known.

    `view` creates the state for the function.
    """

    function: Callable[..., Any]
    name: str
    takes_config: bool
    view: StateFields
    path_map: Mapping[Any, str] | None = None
    targets: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Join:
    """An edge from several nodes, followed when all of them have finished, or, if `active`, when nothing else runs."""

    sources: tuple[str, ...]
    target: str
    active: bool = False

    @property
    def key(self) -> str:
        """The join as text, the key under which its arrivals are stored."""
        return f"{' + '.join(self.sources)} -> {self.target}"


@dataclass(frozen=True)
class GraphPlan:
    """All parts of a compiled graph; edges, conditions and joins are grouped by their source node."""

    name: str
    fields: StateFields
    template: Any
    nodes: Mapping[str, NodeSpec]
    edges: Mapping[str, tuple[str, ...]]
    conditions: Mapping[str, tuple[Condition, ...]]
    joins: tuple[Join, ...]
    interrupt_before: frozenset[str]
    interrupt_after: frozenset[str]
    last_wins: bool = False
    isolation: Isolation = "deep"
    durability: Durability = "step"
    debug: bool = False
    max_concurrency: int | None = None
    saves: bool = True

    def values_in(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields in shared state, where each field has its own key."""
        return {name: state[name] for name in self.fields.by_name if name in state}

    def refuse_pause(self) -> GraphError:
        """Return the error for a pause of a graph that saves no threads."""
        message = "This graph cannot pause: it was compiled with checkpointer=False. Remove that argument."
        return GraphError(message)
