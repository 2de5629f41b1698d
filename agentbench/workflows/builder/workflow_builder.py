"""`WorkflowBuilder`: says which executors there are and how they are connected, and makes a workflow of it.

Two dialects, one class: `add_edge`, `add_fan_out_edges`, ... with keywords at construction, or `connect`, `fan_out`,
... with everything as a method. They may be mixed.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agentbench._clock import runtime_defaults
from agentbench.observability import OBSERVABILITY_SETTINGS, is_tracing
from agentbench.workflows.builder.designation import OMITTED, Designation, resolve_designation
from agentbench.workflows.builder.nodes import AgentMode, Nodes
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.options import TypeCheckMode, WorkflowSettings
from agentbench.workflows.graph.cases import branch_with_id
from agentbench.workflows.graph.edges import (
    Case,
    Default,
    EdgeCondition,
    EdgeGroup,
    FanInEdgeGroup,
    FanInMode,
    FanOutEdgeGroup,
    InternalEdgeGroup,
    SelectionFunction,
    SingleEdgeGroup,
    SwitchCaseEdgeGroup,
)
from agentbench.workflows.graph.type_fit import resolve_fan_in_mode
from agentbench.workflows.graph.validation import check_graph, infer_starts, raise_first
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.boundary import BoundaryHook

__all__ = ["WorkflowBuilder"]

logger = logging.getLogger(__name__)


class WorkflowBuilder:
    """Collects executors and edges and builds a `Workflow`.

    Wherever a node is expected, an `Executor` is taken, or whatever the layers above have an adapter for (agents,
    workflows). One object is one node, however often it is named.

    Args:
        max_iterations: Limit of supersteps per input. In this first place a node is taken as the start, too, and a
            text as the name.
        name: Of the workflow; groups its checkpoints. By default `"WorkflowBuilder-<unique id>"`.
        description: Of the workflow.
        start_executor: The entry node. By default the node that nothing leads to.
        checkpoint_storage: Where runs save their checkpoints unless they are told otherwise.
        output_from: `"all"`, or nodes whose yields are outputs. By default every yield is.
        intermediate_output_from: `"all_other"`, `"all"`, or nodes whose yields are intermediate outputs.
        output_executors: Deprecated name of `output_from`.
        strict_context: `False` gives every handler `send_message` and `yield_output`, declared or not.
        check_types: What to do with a value that the declared types do not admit: `"off"`, `"warn"`, `"error"`.
        report_drops: Emit `message_dropped` events in plain runs, too.
        copy_messages: Give each target of a message its own copy.
        strict_checkpoints: A checkpoint that cannot be saved fails the run.
        checkpoint_run_kwargs: Write keyword arguments of runs, which may hold secrets, into checkpoints.
        agent_mode: How agents work as nodes: `"respond"` to each message, or in `"turns"`.

    Raises:
        TypeError: A start, a name or a limit was given twice, or something has the wrong type.
        ValueError: A negative limit, or an unknown word.

    Example:
        ```python
        workflow = WorkflowBuilder(name="two_steps").connect(upper, show).output_from(show).build()
        ```
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        max_iterations: Any = 100,
        name: str | None = None,
        description: str | None = None,
        *,
        start_executor: Any = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        output_from: Any = OMITTED,
        intermediate_output_from: Any = OMITTED,
        output_executors: Any = OMITTED,
        strict_context: bool = True,
        check_types: TypeCheckMode = "off",
        report_drops: bool = False,
        copy_messages: bool = False,
        strict_checkpoints: bool = False,
        checkpoint_run_kwargs: bool = False,
        agent_mode: AgentMode = "respond",
    ) -> None:
        _require_word("check_types", check_types, ("off", "warn", "error"))
        _require_word("agent_mode", agent_mode, ("respond", "turns"))
        self._nodes = Nodes(agent_mode)
        self._groups: list[EdgeGroup] = []
        self._start: Executor | None = None
        self._limit = 100
        self._name = name
        self._description = description
        self._storage = checkpoint_storage
        self._hook: BoundaryHook | None = None
        self._has_shared_executors = False
        self._outputs = Designation("output_from", ("all",), _either(output_from, output_executors))
        self._intermediate = Designation("intermediate_output_from", ("all_other", "all"), intermediate_output_from)
        self._settings = WorkflowSettings(
            strict_context=strict_context,
            check_types=check_types,
            report_drops=report_drops,
            copy_messages=copy_messages,
            strict_checkpoints=strict_checkpoints,
            checkpoint_run_kwargs=checkpoint_run_kwargs,
        )
        self._take_first(max_iterations, start_executor)

    def _take_first(self, first: Any, start_executor: Any) -> None:
        """Take the first positional argument for what its type says: a limit, a name or a start."""
        if isinstance(first, int):
            self.max_iterations(first)
        elif isinstance(first, str):
            if self._name is not None:
                msg = f"Two names were given: {first!r} and name={self._name!r}. Keep one of them."
                raise TypeError(msg)
            self._name = first
        elif start_executor is not None:
            msg = f"Two starts were given: {first!r} and start_executor={start_executor!r}. Keep one of them."
            raise TypeError(msg)
        else:
            start_executor = first
        if start_executor is not None:
            self._start = self._nodes.add(start_executor)

    # ---- nodes -----------------------------------------------------------------------------------

    def add_executor(self, executor: Any) -> Self:
        """Add a node. Naming it in an edge does the same; adding it again changes nothing.

        Raises:
            ValueError: Another node has its id.
            TypeError: It is no executor, and there is no adapter for it.
        """
        self._nodes.add(executor)
        return self

    def set_start(self, executor: Any) -> Self:
        """Name the entry node: a node, or the id of an added one."""
        self._start = self._nodes.find(executor)
        return self

    # ---- edges -----------------------------------------------------------------------------------

    def add_edge(self, source: Any, target: Any, condition: EdgeCondition | None = None) -> Self:
        """Connect two nodes.

        Args:
            source: Sends.
            target: Receives.
            condition: Called with the message data, may be async; a falsy result drops the message.
        """
        self._groups.append(SingleEdgeGroup(self._nodes.add(source).id, self._nodes.add(target).id, condition))
        return self

    def connect(self, source: Any, target: Any, condition: EdgeCondition | None = None) -> Self:
        """Connect two nodes, like `add_edge`; ids of added executors are taken, too."""
        return self.add_edge(self._nodes.find(source), self._nodes.find(target), condition)

    def add_chain(self, executors: Sequence[Any]) -> Self:
        """Connect nodes one after the other. Naming one twice closes a cycle.

        Raises:
            ValueError: Fewer than two nodes.
        """
        if len(executors) < 2:
            msg = f"A chain needs at least two executors; got {list(executors)!r}. Use add_executor() for one."
            raise ValueError(msg)
        nodes = [self._nodes.add(executor).id for executor in executors]
        self._groups.extend([SingleEdgeGroup(a, b) for a, b in pairwise(nodes)])
        return self

    def add_fan_out_edges(self, source: Any, targets: Sequence[Any]) -> Self:
        """Send each message of a node to several others at once."""
        return self._fan_out(source, targets, None, None, self._nodes.add)

    def add_multi_selection_edge_group(
        self, source: Any, targets: Sequence[Any], selection_func: SelectionFunction
    ) -> Self:
        """Send each message of a node to those of several others that a function picks."""
        return self._fan_out(source, targets, selection_func, None, self._nodes.add)

    def fan_out(
        self,
        source: Any,
        targets: Sequence[Any],
        selection_func: SelectionFunction | None = None,
        selection_func_name: str | None = None,
    ) -> Self:
        """Send each message of a node to several others at once, or to those that a function picks.

        Args:
            source: Sends. A node, or the id of an added one; likewise the targets.
            targets: Two or more.
            selection_func: Called with the message data and the ids of the targets; returns the ids to use.
            selection_func_name: Recorded name of the function; by default its own.
        """
        return self._fan_out(source, targets, selection_func, selection_func_name, self._nodes.find)

    def _fan_out(
        self,
        source: Any,
        targets: Sequence[Any],
        selection_func: SelectionFunction | None,
        selection_func_name: str | None,
        node: Callable[[Any], Executor],
    ) -> Self:
        source_id, target_ids = node(source).id, [node(target).id for target in targets]
        self._groups.append(
            FanOutEdgeGroup(source_id, target_ids, selection_func, selection_func_name=selection_func_name)
        )
        return self

    def add_fan_in_edges(self, sources: Sequence[Any], target: Any) -> Self:
        """Join several nodes in one, which gets a list with the messages of all of them.

        A target that takes only single messages gets each by itself.
        """
        group = FanInEdgeGroup([self._nodes.add(source).id for source in sources], self._nodes.add(target).id)
        group.prefers_barrier = True
        self._groups.append(group)
        return self

    def fan_in(self, sources: Sequence[Any], target: Any, mode: FanInMode = "auto") -> Self:
        """Join several nodes in one, which gets each message by itself.

        Args:
            sources: Two or more nodes, or ids of added ones.
            target: Receives. If it takes only lists, it gets one list when all sources have sent.
            mode: `"independent"` or `"barrier"` forces one of the two.
        """
        source_ids = [self._nodes.find(source).id for source in sources]
        self._groups.append(FanInEdgeGroup(source_ids, self._nodes.find(target).id, mode=mode))
        return self

    def add_switch_case_edge_group(self, source: Any, cases: Sequence[Case | Default]) -> Self:
        """Send each message of a node to the first of several others whose condition holds, or to the default."""
        return self._switch(source, cases, self._nodes.add)

    def switch(self, source: Any, cases: Sequence[Any]) -> Self:
        """Send each message of a node to the first of several others whose condition holds, or to the default.

        Args:
            source: Sends. A node, or the id of an added one.
            cases: `Case` and `Default`, `(condition, target)` pairs, or descriptors with ids; exactly one default.
        """
        return self._switch(source, cases, self._nodes.find)

    def _switch(self, source: Any, cases: Sequence[Any], node: Callable[[Any], Executor]) -> Self:
        source_id = node(source).id
        self._groups.append(SwitchCaseEdgeGroup(source_id, [branch_with_id(case, node) for case in cases]))
        return self

    def add_edge_group(self, group: EdgeGroup) -> Self:
        """Add a group that was made by hand. Its ids must belong to nodes when the workflow is built."""
        if isinstance(group, InternalEdgeGroup):
            msg = f"Every executor has its internal edge already; {group!r} cannot be added."
            raise ValueError(msg)
        self._groups.append(group)
        return self

    # ---- settings --------------------------------------------------------------------------------

    def max_iterations(self, limit: int) -> Self:
        """Set how many supersteps one input may take; 0 runs the start executor only."""
        if limit < 0:
            msg = f"max_iterations is {limit}; expected 0 or more supersteps."
            raise ValueError(msg)
        self._limit = limit
        return self

    def checkpoint_storage(self, storage: CheckpointStorage | CheckpointManager) -> Self:
        """Set where runs save their checkpoints unless they are told otherwise."""
        self._storage = storage
        return self

    def boundary_hook(self, hook: BoundaryHook) -> Self:
        """Let a hook decide at each superstep boundary what happens next."""
        self._hook = hook
        return self

    def output_from(self, *executors: Any) -> Self:
        """Add nodes (or ids of added ones) whose yields are outputs; `"all"` names all that can yield."""
        self._outputs.add([self._listed(executor, self._outputs) for executor in executors])
        return self

    def intermediate_output_from(self, *executors: Any) -> Self:
        """Add nodes (or ids of added ones) whose yields are intermediate; `"all_other"` names all that are left."""
        self._intermediate.add([self._listed(executor, self._intermediate) for executor in executors])
        return self

    def _listed(self, entry: Any, designation: Designation) -> Any:
        if isinstance(entry, str) and entry not in designation.words:
            return self._nodes.find(entry)
        return entry

    # ---- building --------------------------------------------------------------------------------

    def build(self, copy_executors: bool = False) -> Workflow:
        """Check the graph and make a workflow of it.

        A second workflow of the same builder has the same executor objects, and thus shares their fields with the
        first; a warning says so.

        Args:
            copy_executors: Give this workflow deep copies of the executors.

        Raises:
            ValueError: There is no executor.
            TypeError: Something that is no node is designated for outputs.
            WorkflowValidationError: The graph breaks a rule, see `agentbench.workflows.graph.validation`. One of its
                subclasses for the first breach; all of them in its `all_errors`.
        """
        if not is_tracing():
            return self._build(validated=_nothing, copy_executors=copy_executors)
        from agentbench.workflows.engine.tracing import build_span  # noqa: PLC0415 - imports OpenTelemetry

        with build_span(
            self._name, self._description, definition=OBSERVABILITY_SETTINGS.WORKFLOW_DEFINITION_ENABLED
        ) as span:
            workflow = self._build(validated=span.validated, copy_executors=copy_executors)
            span.completed(workflow)
            return workflow

    def _build(self, *, validated: Callable[[], None], copy_executors: bool) -> Workflow:
        executors = copy.deepcopy(self._nodes.executors) if copy_executors else dict(self._nodes.executors)
        checks_reachability = self._hook is None or self._hook.reachability
        starts = self._starts(executors, check_roots=checks_reachability)
        groups = [_settled(group, executors) for group in self._groups]
        designation = resolve_designation(self._outputs, self._intermediate, executors, self._nodes.id_of)
        raise_first(check_graph(groups, executors, starts, designation, check_reachability=checks_reachability))
        validated()
        if not copy_executors:
            self._warn_if_shared()
        groups.extend([InternalEdgeGroup(executor_id) for executor_id in executors])
        if self._name is None:
            self._name = f"WorkflowBuilder-{runtime_defaults().ids.new_id('workflow')}"
        return Workflow(
            groups,
            executors,
            executors[starts[0]],
            name=self._name,
            description=self._description,
            max_iterations=self._limit,
            output_from=designation.outputs,
            intermediate_output_from=designation.intermediate,
            settings=self._settings,
            start_executors=starts,
            boundary_hook=self._hook,
            checkpoint_storage=self._storage,
        )

    def _starts(self, executors: dict[str, Executor], *, check_roots: bool) -> tuple[str, ...]:
        if self._start is not None:
            return (self._start.id,)
        return infer_starts(executors, self._groups, check_roots=check_roots)

    def _warn_if_shared(self) -> None:
        if self._has_shared_executors:
            logger.warning(
                "WorkflowBuilder %r was built before; both workflows share %d executor objects and what those keep in "
                "their fields. Use build(copy_executors=True) to give this workflow its own.",
                self._name,
                len(self._nodes.executors),
            )
        self._has_shared_executors = True

    def __repr__(self) -> str:
        name = "" if self._name is None else f"name={self._name!r}, "
        return f"WorkflowBuilder({name}executors={len(self._nodes.executors)}, edge_groups={len(self._groups)})"


def _nothing() -> None:
    """Nobody watches this build."""


def _settled(group: EdgeGroup, executors: dict[str, Executor]) -> EdgeGroup:
    """Return a group that knows its fan-in mode, if that can be known. The given one is left as it is."""
    if not isinstance(group, FanInEdgeGroup) or group.resolved_mode is not None:
        return group
    mode = resolve_fan_in_mode(group, executors)
    if mode is None:
        return group
    settled = group.clone(deep=False)
    settled.resolved_mode = mode
    return settled


def _either(output_from: Any, output_executors: Any) -> Any:
    """Return the designation that was given, under its name or under the old one."""
    if output_executors is OMITTED:
        return output_from
    if output_from is not OMITTED:
        msg = "output_from and output_executors are two names for one thing. Give output_from only."
        raise TypeError(msg)
    warnings.warn("output_executors is now called output_from.", DeprecationWarning, stacklevel=3)
    return output_executors


def _require_word(keyword: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        msg = f"{keyword} is {word!r}; expected one of {', '.join(map(repr, words))}."
        raise ValueError(msg)
