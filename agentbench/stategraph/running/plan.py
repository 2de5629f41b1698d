"""A compiled state graph as data: its nodes, edges, conditions and joins. Nothing here runs."""

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
    """A node: its place in the order of adding, what it calls, and its limits."""

    name: str
    order: int
    target: Any
    defer: bool = False
    timeout: float | None = None
    retries: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: Where it may go by a `Command`, as `add_node` was told; None if it was not.
    goes_to: tuple[str, ...] | None = None
    #: Where it may go by a `Command`, from `goes_to` or its annotation; None for anywhere.
    goto: tuple[str, ...] | None = ()
    #: Whether it calls `interrupt()`, as `add_node` was told.
    asks: bool | None = None


@dataclass(frozen=True)
class Condition:
    """Conditional edges: the function, what its results stand for, and all targets if they are known.

    `view` makes the state that it gets.
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
        """The join in one text, as its arrivals are stored by it."""
        return f"{' + '.join(self.sources)} -> {self.target}"


@dataclass(frozen=True)
class GraphPlan:
    """All that a compiled graph is made of; edges, conditions and joins by the node that they begin at."""

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
        """Return the fields in shared state, where each is a key of its own."""
        return {name: state[name] for name in self.fields.by_name if name in state}

    def refuse_pause(self) -> GraphError:
        """Return the error for a pause of a graph that saves no threads."""
        message = (
            "This graph cannot pause: it was compiled with checkpointer=False, so nothing could go on. Leave that out."
        )
        return GraphError(message)
