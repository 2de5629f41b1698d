"""A compiled state graph as data: its nodes, edges, conditions and joins. This module runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict, is_typeddict

from agentbench.exceptions import GraphError
from agentbench.messages.message import Message
from agentbench.stategraph.command import Command
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.running.retrying import RetryPolicy
from agentbench.workflows.executors.options import RunOptions

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
    retry_policies: tuple[RetryPolicy, ...] = ()
    """When it runs again, instead of `retries`."""
    asks: bool | None = None
    """Whether it calls `interrupt()`, as passed to `add_node`."""


@dataclass(frozen=True)
class Condition:
    """Conditional edges: the function, the targets of its results, and all targets if they are known.

    `view` creates the state for the function; `takes` names the kinds of its further arguments.
    """

    function: Callable[..., Any]
    name: str
    takes: tuple[str, ...]
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


@dataclass(frozen=True, kw_only=True)
class GraphPlan:
    """All parts of a compiled graph; edges, conditions and joins are grouped by their source node."""

    name: str
    fields: StateFields
    template: Any
    context_schema: Any
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
        by_name = self.fields.by_name
        try:
            return {name: state[name] for name in by_name}
        except KeyError:
            return {name: state[name] for name in by_name if name in state}

    @property
    def recursion_limit(self) -> int:
        """The number of supersteps that a call may take by default."""
        return 25 if self.fields.is_agent_state else 10_000

    def context_of(self, given: Any) -> Any:
        """Return the context of a call; a dictionary becomes an instance of the schema's class."""
        schema = self.context_schema
        if not isinstance(given, Mapping) or schema is None or is_typeddict(schema):
            return given
        return schema(**given)

    def refuse_pause(self) -> GraphError:
        """Return the error for a pause of a graph that saves no threads."""
        message = "This graph cannot pause: it was compiled with checkpointer=False. Remove that argument."
        return GraphError(message)


@dataclass(slots=True)
class CallRecord:
    """The results of a call up to now: the state, the changed fields with their writers, messages and warnings.

    `is_watched` if the call streams, and `shows_called` if its stream shows the graphs that nodes call.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tasks: list[tuple[int, int, str, str, list[str]]] = field(default_factory=list)
    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Results of unfinished tasks, by task id."""
    parent_goto: list[Command] = field(default_factory=list)
    """The commands of a graph in a node for the outer graph."""
    is_watched: bool = False
    shows_called: bool = False
    n_supersteps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions(RunOptions):
    """The options of a run of a graph: those of every run, the configuration of the call, and its record.

    `is_nested` if another graph or a workflow runs it; unless `is_named`, it is saved only if it does not
    complete.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    context: Any = None
    store: Any = None
    call_record: CallRecord = field(default_factory=CallRecord)
    is_nested: bool = False
    is_named: bool = True


def graph_options(options: RunOptions) -> GraphOptions:
    """Return the options of a run as those of a graph; the defaults if the run was started as a plain workflow."""
    return options if isinstance(options, GraphOptions) else GraphOptions()


class RunnableConfig(TypedDict, total=False):
    """The configuration of a call, as nodes get it: settings are found both directly and under `configurable`.

    Example:
        >>> def greet(state: State, config: RunnableConfig) -> dict:
        ...     return {"greeting": f"Hello, {config['configurable']['user']}"}
    """

    configurable: dict[str, Any]
    thread_id: str | int
    run_id: str
    recursion_limit: int
    tags: Sequence[str]
    metadata: Mapping[str, Any]


def node_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a call in the form for nodes and conditions."""
    return {**config, "configurable": {**config}}


class StateChanges(dict[str, Any]):
    """The changes of a superstep, the data of `state_updated`: old and new values and writers by field.

    Attributes:
        values_after: All fields afterwards.
        meta: The fields of `execution_meta` afterwards.
        messages: The messages added to the conversation.
        updates: Each task's node and update, which is None if it returned nothing.
    """

    values_after: Mapping[str, Any]
    meta: Mapping[str, Any]
    messages: list[Message]
    updates: Sequence[tuple[str, Any]]
