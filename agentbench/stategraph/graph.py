"""`StateGraph`: build a graph of nodes that read a state and return updates of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, get_args, get_origin, overload

from agentbench._display import shorten
from agentbench._limits import require_limit, require_seconds
from agentbench._signatures import flatten_union
from agentbench.exceptions import GraphCompileError, GraphError, NodeNotFoundError
from agentbench.stategraph.command import Command
from agentbench.stategraph.compiler import compile_graph
from agentbench.stategraph.merging.state_fields import StateFields, is_state_class, state_fields
from agentbench.stategraph.nested import task_function
from agentbench.stategraph.running.executors import NodeFunction, annotations_of, argument_kind
from agentbench.stategraph.running.plan import Condition, Durability, Isolation, Join, NodeSpec
from agentbench.stategraph.running.retrying import RetryPolicy
from agentbench.stategraph.state import END, START, AgentState, StateT

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import BaseModel

    from agentbench.stategraph.compiled import CompiledGraph

AgentStateT = TypeVar("AgentStateT", bound=AgentState)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class StateGraph(Generic[StateT]):
    """A graph of nodes that share a state: each reads it and returns an update, which the fields' reducers merge.

    All methods that add something return the graph, so calls can be chained. `compile` creates a runnable graph, which
    later changes do not affect.

    The class of the state determines the results. With an `AgentState`, results contain messages, and an error of a
    node is raised as a `NodeError`. With any other class, results and snapshots are dictionaries of the fields that
    have a value, and an error of a node is raised unchanged, with a note. A field has a value once something was
    written to it; a field with a reducer begins with the empty value of its type. Nodes get a `TypedDict` state as a
    dictionary and any other state as an instance; a node annotated with a different state class gets that instead.

    Args:
        state: The class of the state: an `AgentState`, another pydantic model, a dataclass or a `TypedDict`. Or an
            instance, whose values are the initial values of new threads. By default `AgentState`.
        context_schema: The class of the `context` of a call, which nodes find in their `Runtime`. A dictionary passed
            as `context` becomes an instance of it.
        input_schema: A class with the fields that an input may write; by default the state's. Not for an `AgentState`.
        output_schema: A class with the fields in results; by default the state's. Not for an `AgentState`.
        name: The name of the graph; a storage finds threads by it. By default the name of the class.

    Raises:
        TypeError: `state` is neither a state class nor an instance of one, or a schema is not a class of this kind.
        GraphError: `GRAPH_008`, a field of the state cannot be used as declared.

    Example:
        >>> class Count(AgentState):
        ...     n: int = 0
        >>> graph = StateGraph(Count).add_node("up", lambda state: {"n": state.n + 1})
        >>> app = graph.set_entry_point("up").compile()
        >>> app.invoke({"n": 1}, {"thread_id": "t"}).state.n
        2

        >>> class Counted(TypedDict):
        ...     n: int
        ...     log: Annotated[list[str], operator.add]
        >>> graph = StateGraph(Counted).add_node("up", lambda state: {"n": state["n"] + 1, "log": ["up"]})
        >>> graph.set_entry_point("up").compile().invoke({"n": 1}, {"thread_id": "t"})
        {'n': 2, 'log': ['up']}
    """

    @overload
    def __init__(
        self: StateGraph[AgentState], state: None = None, context_schema: Any = None, *, name: str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: StateGraph[AgentStateT],
        state: type[AgentStateT] | AgentStateT,
        context_schema: Any = None,
        *,
        name: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: StateGraph[dict[str, Any]],
        state: type[BaseModel | DataclassInstance] | BaseModel | DataclassInstance,
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
        name: str | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        state: type[StateT],
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
        name: str | None = None,
    ) -> None: ...
    def __init__(
        self,
        state: Any = None,
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
        name: str | None = None,
    ) -> None:
        cls: Any = AgentState if state is None else state if isinstance(state, type) else type(state)
        if not is_state_class(cls):
            message = (
                f"state is {state!r}; expected a subclass of AgentState, another pydantic model, a dataclass or a "
                "TypedDict, or an instance of one of these classes."
            )
            raise TypeError(message)
        self.state_class = cls
        self.name = name
        self.template = None if state is None or state is cls else state
        self.fields = state_fields(cls).with_schemas(input_schema, output_schema)
        self.context_schema = context_schema
        self.nodes: dict[str, NodeSpec] = {}
        self.edges: dict[str, list[str]] = {}
        self.conditions: dict[str, list[Condition]] = {}
        self.joins: list[Join] = []

    def __repr__(self) -> str:
        return f"StateGraph({self.state_class.__name__}, nodes: {', '.join(self.nodes) or 'none yet'})"

    def add_node(  # noqa: PLR0913 - the published signature
        self,
        name_or_func: str | Callable[..., Any],
        func: Any = None,
        *,
        defer: bool = False,
        timeout: float | None = None,
        retries: int = 0,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        metadata: Mapping[str, Any] | None = None,
        goes_to: Sequence[str] | None = None,
        destinations: Sequence[str] | Mapping[str, str] | None = None,
        asks: bool | None = None,
        replace: bool = False,
    ) -> Self:
        """Add a node.

        Args:
            name_or_func: The node's name; or a function, whose name it gets.
            func: The node's function if a name came first: a function, sync or async, or a `ToolNode`; an agent, which
                gets the conversation and adds its answer; an executor or a workflow, whose outputs are the update; or
                another compiled graph, which shares the fields that both have.
            defer: Run the node once, after all nodes that are not deferred have finished.
            timeout: Seconds allowed for the node.
            retries: Further attempts if it fails, each at once.
            retry_policy: Instead of `retries`: after which errors to try again, and when. Of several policies, the
                first that covers an error decides.
            metadata: Facts about the node, for views.
            goes_to: The possible targets of its `Command`s. By default those it declares, `-> Command[Literal["a",
                "b"]]`; a function without a return annotation may go anywhere.
            destinations: Another name of `goes_to`.
            asks: Whether it calls `interrupt()`, for drawings. By default, the code of the function and of the
                functions it calls by name is searched.
            replace: Replace an existing node of the same name.

        Raises:
            GraphCompileError: `GRAPH_009`, a node has this name.
            GraphError: `GRAPH_007`, the graph cannot fill one of its parameters.
            ValueError: The name is empty, `START` or `END`.
        """
        given: Any = name_or_func
        if not isinstance(given, str):
            name_or_func, func = getattr(given, "__name__", None) or getattr(given, "name", None) or "", given
        name: str = name_or_func if isinstance(name_or_func, str) else ""
        require_seconds("timeout", timeout, none="that of compile()")
        require_limit("retries", retries)
        func = task_function(func)
        if name in ("", START, END, "<lambda>") or not callable(func):
            message = f"add_node({given!r}, {func!r}): expected a name, and a function: add_node('plan', make_plan)."
            raise ValueError(message)
        if name in self.nodes and not replace:
            message = f"There is a node {name!r}. Use override_node({name!r}, ...) or add_node(..., replace=True)."
            raise GraphCompileError(message, "GRAPH_009", node=name)
        order = self.nodes[name].order if name in self.nodes else len(self.nodes)
        declared = destinations if goes_to is None else goes_to
        declared = [declared] if isinstance(declared, str) else declared
        spec = NodeSpec(
            name, order, func, defer, timeout, retries, metadata or {}, None if declared is None else tuple(declared),
            retry_policies=(retry_policy,) if isinstance(retry_policy, RetryPolicy) else tuple(retry_policy or ()),
            asks=asks,
        )  # fmt: skip
        self.nodes[name], self.fields = with_function(spec, func, self.fields)
        return self

    def add_sequence(self, nodes: Sequence[Callable[..., Any] | tuple[str, Any]]) -> Self:
        """Add nodes that run one after the other.

        Args:
            nodes: Functions, or pairs of a name and a function.

        Raises:
            ValueError: There are no nodes.
            GraphCompileError: `GRAPH_009`, a node has this name.

        Example:
            >>> graph.add_sequence([load, ("check", check_all)]).add_edge(START, "load")
        """
        if not nodes:
            message = "add_sequence() got no nodes. Pass functions, or pairs of a name and a function."
            raise ValueError(message)
        before: str | None = None
        for node in nodes:
            self.add_node(*node) if isinstance(node, tuple) else self.add_node(node)
            name = [*self.nodes][-1]
            if before is not None:
                self.add_edge(before, name)
            before = name
        return self

    def override_node(self, name: str, func: Any) -> Self:
        """Let a node call another function; nothing else changes.

        Args:
            name: The name of the node.
            func: The new function, as in `add_node`.

        Raises:
            NodeNotFoundError: There is no node of this name. It is also a `KeyError`.
            TypeError: `func` cannot be a node.
        """
        self.nodes[name], self.fields = with_other_function(self.nodes, name, func, self.fields)
        return self

    def add_edge(self, from_node: str | Sequence[str], to_node: str, *, when: Literal["all", "active"] = "all") -> Self:
        """Run a node after another one; after a list of nodes, when all of them have finished.

        Args:
            from_node: A node or `START`; or a list of nodes, which makes a join.
            to_node: A node or `END`.
            when: With `"active"`, a join continues with the nodes that have finished when nothing else is left to run.

        Raises:
            GraphError: The edge already exists, and the state is an `AgentState`.
            TypeError: A node is not named by a text.
        """
        is_join = isinstance(cast("object", from_node), Iterable) and not isinstance(from_node, str)
        sources = tuple(from_node) if is_join else (cast("str", from_node),)
        _require_names("from_node", sources)
        _require_names("to_node", [to_node])
        if is_join:
            join = Join(sources, to_node, when == "active")
            if join not in self.joins:
                self.joins.append(join)
            elif self.fields.is_agent_state:
                raise _duplicate_edge(join)
            return self
        targets = self.edges.setdefault(sources[0], [])
        if to_node not in targets:
            targets.append(to_node)
        elif self.fields.is_agent_state:
            raise _duplicate_edge(Join(sources, to_node))
        return self

    def add_conditional_edges(
        self,
        from_node: str,
        condition: Callable[..., Any],
        path_map: Mapping[Any, str] | Sequence[str] | None = None,
    ) -> Self:
        """Let a function choose the next nodes.

        Args:
            from_node: A node or `START`.
            condition: A function of the state; may be async. Further parameters are filled as those of nodes are: the
                configuration, a `Runtime`, and `store`.
                Its result is the name of a node, `END`, a `Send`, or a list of those.
            path_map: The targets by result of the condition; names in a list are targets themselves.

        Raises:
            TypeError: The condition is not a function, or a node is not named by a text.
        """
        _require_names("from_node", [from_node])
        if not callable(cast("object", condition)):
            message = f"condition is {condition!r}; expected a function of the state that returns the next node."
            raise TypeError(message)
        if path_map is not None and not isinstance(path_map, Mapping):
            path_map = {name: name for name in path_map}
        try:
            parameters = [*inspect.signature(condition).parameters.values()]
        except (TypeError, ValueError):  # functions written in C may have none
            parameters = []
        hints = annotations_of(condition)
        further = [each.name for each in parameters[1:] if each.default is each.empty and each.kind in _POSITIONAL]
        view = self.fields.view_of(hints.get(parameters[0].name) if parameters else None)
        self.fields = self.fields.with_view(view)
        name = getattr(condition, "__name__", type(condition).__name__)
        targets = _literal_targets(hints.get("return")) if path_map is None else tuple(path_map.values())
        takes = tuple(argument_kind(name, hints.get(name), self.fields) or "config" for name in further)
        condition_edges = Condition(condition, name, takes, view, path_map, targets)
        self.conditions.setdefault(from_node, []).append(condition_edges)
        return self

    def set_entry_point(self, name: str) -> Self:
        """Begin the graph with a node."""
        return self.add_edge(START, name)

    def set_conditional_entry_point(
        self, condition: Callable[..., Any], path_map: Mapping[Any, str] | Sequence[str] | None = None
    ) -> Self:
        """Let a function choose the first nodes; see `add_conditional_edges`."""
        return self.add_conditional_edges(START, condition, path_map)

    def set_finish_point(self, name: str) -> Self:
        """End the graph after a node."""
        return self.add_edge(name, END)

    def compile(  # noqa: PLR0913 - the published signature
        self,
        checkpointer: Any = None,
        store: Any = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        shutdown_timeout: float = 30.0,
        *,
        name: str | None = None,
        durability: Durability = "step",
        isolation: Isolation = "deep",
        on_conflict: Literal["error", "last"] = "error",
        max_concurrency: int | None = None,
        node_timeout: float | None = None,
        debug: bool = False,
    ) -> CompiledGraph[StateT]:
        """Check the graph and return a runnable graph.

        Args:
            checkpointer: The storage for threads; by default in memory. `False` saves none.
            store: Any object, for nodes with a parameter `store`.
            interrupt_before: Nodes before which the graph pauses, or `"*"`.
            interrupt_after: Nodes after which it pauses, or `"*"`.
            shutdown_timeout: Seconds that `aclose` waits for running calls.
            name: The name of the graph; by default that of `StateGraph`.
            durability: When a thread is saved: after each superstep (`"step"`), also after each node (`"task"`), or
                only at the end, a pause or an error (`"exit"`).
            isolation: Whether nodes get deep copies of values, or share the contents of lists and dictionaries.
            on_conflict: How to treat different writes to a field without reducer: as an error, or the last one wins.
            max_concurrency: Maximum number of nodes that run at the same time.
            node_timeout: Seconds allowed for a node without its own timeout.
            debug: Check more: copy everything, and verify that reducers change nothing.

        Raises:
            GraphCompileError: There is no entry (`GRAPH_002`), a node has no edge (`GRAPH_003`), an edge or interrupt
                names an unknown node (`GRAPH_004`), or a node cannot be reached. Nodes without edges and nodes that
                cannot be reached are errors only with an `AgentState`; otherwise they cause a warning.
        """
        require_seconds("shutdown_timeout", shutdown_timeout, zero=True)
        require_seconds("node_timeout", node_timeout, none="no limit")
        require_limit("max_concurrency", max_concurrency, least=1, none="no limit")
        return compile_graph(
            self, checkpointer=checkpointer, store=store, interrupt_before=interrupt_before,
            interrupt_after=interrupt_after, shutdown_timeout=shutdown_timeout, name=name, durability=durability,
            isolation=isolation, on_conflict=on_conflict, max_concurrency=max_concurrency,
            node_timeout=node_timeout, debug=debug,
        )  # fmt: skip


def with_function(spec: NodeSpec, func: Any, fields: StateFields) -> tuple[NodeSpec, StateFields]:
    """Return a node that calls a function, and the fields with the function's view of the state.

    Raises:
        GraphError: `GRAPH_007`, the function has a parameter that the graph cannot fill.
    """
    func = task_function(func)
    view = NodeFunction(spec.name, func, fields).view
    goto = _command_targets(func) if spec.goes_to is None else spec.goes_to
    return replace(spec, target=func, goto=goto), fields.with_view(view)


def _require_names(argument: str, nodes: Sequence[Any]) -> None:
    for node in nodes:
        if not isinstance(node, str):
            message = f"{argument} is {node!r}; expected the name of a node as text, START or END."
            raise TypeError(message)


def with_other_function(
    nodes: Mapping[str, NodeSpec], name: str, func: Any, fields: StateFields
) -> tuple[NodeSpec, StateFields]:
    """Return `with_function` of the node of this name.

    Raises:
        NodeNotFoundError: There is no node of this name.
        TypeError: It is not a function.
    """
    if name not in nodes:
        message = f"There is no node {name!r}. Nodes: {', '.join(nodes)}."
        raise NodeNotFoundError(message, node=name)
    if not callable(task_function(func)):
        message = f"override_node({name!r}, {shorten(func)}): expected a function, an agent, an executor or a graph."
        raise TypeError(message)
    return with_function(nodes[name], func, fields)


def _duplicate_edge(edge: Join) -> GraphError:
    message = f"Edge {edge.key} already exists. Add it only once."
    return GraphError(message, "GRAPH_001")


def _literal_targets(hint: Any) -> tuple[str, ...] | None:
    """Return the names in `Literal["a", "b"]`; `None` for any other annotation."""
    return tuple(map(str, get_args(hint))) if get_origin(hint) is Literal else None


def _command_targets(function: Any) -> tuple[str, ...] | None:
    """Return the names in a return annotation `Command[Literal["a", "b"]]`; `None` if it allows any target."""
    if hasattr(function, "returns_commands"):
        return None if function.returns_commands else ()
    called = function if inspect.isroutine(function) else getattr(function, "func", function.__call__)
    nodes: list[str] = []
    for hint in flatten_union(annotations_of(called).get("return", Any)):
        origin: Any = get_origin(hint)
        names = _literal_targets(*get_args(hint)[:1]) if origin is Command else ()
        if names is None or hint in (Any, object) or Command in (hint, *get_args(hint)):
            return None
        nodes += names
    return tuple(nodes)
