"""`WorkflowBuilder`: collects executors and their connections, and builds a workflow."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, Self

from agentbench._clock import runtime_defaults
from agentbench._limits import require_limit
from agentbench._user_code import warn_user
from agentbench.observability.switches import OBSERVABILITY_SETTINGS, is_tracing
from agentbench.workflows.builder.nodes import (
    AgentMode,
    Designation,
    Nodes,
    branch_with_ids,
    each_of,
    resolve_designation,
)
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.options import TypeCheckMode, WorkflowSettings
from agentbench.workflows.graph.edge_groups import (
    EdgeGroup,
    FanInEdgeGroup,
    FanInMode,
    InternalEdgeGroup,
    SingleEdgeGroup,
    with_fan_in_mode,
)
from agentbench.workflows.graph.edges import Case, Default, EdgeCondition
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SelectionFunction, SwitchCaseEdgeGroup
from agentbench.workflows.graph.validation import WorkflowGraphValidator, infer_starts, raise_first
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.graph.boundary import BoundaryHook

logger = logging.getLogger(__name__)


class WorkflowBuilder:
    """Collects executors and edges and builds a `Workflow`.

    There are two equivalent styles, which may be mixed: `add_edge`, `add_fan_out_edges`, ... with settings as keyword
    arguments, or `connect`, `fan_out`, ... with a method for everything; the latter also accept the id of an added
    executor instead of a node. All methods except `build` return the builder. One object is always one node.

    Args:
        max_iterations: Maximum number of supersteps per input. A node in this first position is used as the start
            executor, and a text as the name.
        name: Name of the workflow; it groups its checkpoints. By default `"WorkflowBuilder-<unique id>"`.
        description: Description of the workflow, for people.
        start_executor: The entry node. By default the node that no edge leads to.
        checkpoint_storage: The storage in which runs save their checkpoints by default.
        output_from: `"all"`, or the nodes whose yields are outputs. By default, all yields are outputs.
        intermediate_output_from: `"all_other"`, `"all"`, or the nodes whose yields are intermediate outputs.
        output_executors: Deprecated name of `output_from`.
        strict_context: `False` gives every handler `send_message` and `yield_output`, whether declared or not.
        check_types: How to treat values that do not match the declared types: `"off"`, `"warn"`, `"error"`.
        report_drops: Emit `message_dropped` events in plain runs too.
        copy_messages: Pass each target of a message its own copy.
        strict_checkpoints: Fail the run if a checkpoint cannot be saved.
        save_input: Save a checkpoint before superstep 0, as `RunOptions(save_input=True)` does.
        checkpoint_run_kwargs: Include the keyword arguments of runs in checkpoints; they may contain secrets.
        max_messages: Maximum number of messages that one superstep may queue for the next.
        agent_mode: How agents work as nodes: they `"respond"` to each message, or work in `"turns"`.

    Raises:
        TypeError: Two starts or two names, an object that cannot be a node, or a value of the wrong type.
        ValueError: A negative limit, or an unknown word.

    Example:
        >>> @executor
        ... async def upper(text: str, ctx: WorkflowContext[str]) -> None:
        ...     await ctx.send_message(text.upper())
        >>> @executor
        ... async def show(text: str, ctx: WorkflowContext[Never, str]) -> None:
        ...     await ctx.yield_output(text)
        >>> workflow = WorkflowBuilder(name="two_steps").connect(upper, show).output_from(show).build()
        >>> same_graph = WorkflowBuilder(start_executor=upper, output_from=[show]).add_edge(upper, show).build()
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        max_iterations: Any = 100,
        name: str | None = None,
        description: str | None = None,
        *,
        start_executor: Any = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        output_from: Any = None,
        intermediate_output_from: Any = None,
        output_executors: Any = None,
        strict_context: bool = True,
        check_types: TypeCheckMode = "off",
        report_drops: bool = False,
        copy_messages: bool = False,
        strict_checkpoints: bool = False,
        save_input: bool = False,
        checkpoint_run_kwargs: bool = False,
        max_messages: int = 100_000,
        agent_mode: AgentMode = "respond",
    ) -> None:
        for keyword, word, words in (
            ("check_types", check_types, ("off", "warn", "error")),
            ("agent_mode", agent_mode, ("respond", "turns")),
        ):
            if word not in words:
                msg = f"{keyword} is {word!r}; expected one of {', '.join(map(repr, words))}."
                raise ValueError(msg)
        if output_executors is not None:
            if output_from is not None:
                msg = "output_from and output_executors are two names of one keyword. Pass output_from only."
                raise TypeError(msg)
            warn_user("output_executors is now called output_from.", DeprecationWarning)
            output_from = output_executors
        require_limit("max_messages", max_messages)
        self._nodes = Nodes(agent_mode)
        self._groups: list[EdgeGroup] = []
        self._start: Executor | None = None
        self._limit = 100
        self._name = name
        self._description = description
        self._storage = checkpoint_storage
        self._hook: BoundaryHook | None = None
        self._has_shared_executors = False
        self._outputs = Designation("output_from", ("all",), output_from)
        self._intermediate = Designation("intermediate_output_from", ("all_other", "all"), intermediate_output_from)
        self._settings = WorkflowSettings(
            strict_context=strict_context,
            check_types=check_types,
            report_drops=report_drops,
            copy_messages=copy_messages,
            strict_checkpoints=strict_checkpoints,
            save_input=save_input,
            checkpoint_run_kwargs=checkpoint_run_kwargs,
            max_messages=max_messages,
        )
        self._take_first(max_iterations, start_executor)

    def _take_first(self, first: Any, start_executor: Any) -> None:
        """Use the first positional argument according to its type: as a limit, a name or a start executor."""
        if first is None or isinstance(first, (int, float)) or str(first).isdecimal():
            self.max_iterations(first)  # a text of digits is a limit from the environment, not a name: an error
        elif isinstance(first, str):
            if self._name is not None:
                msg = f"Two names: {first!r} and name={self._name!r}. Pass one of them."
                raise TypeError(msg)
            self._name = first
        elif start_executor is not None:
            msg = f"Two starts: {first!r} and start_executor={start_executor!r}. Pass one of them."
            raise TypeError(msg)
        else:
            start_executor = first
        if start_executor is not None:
            self._start = self._nodes.add(start_executor)

    # ---- nodes -----------------------------------------------------------------------------------

    def add_executor(self, executor: Any) -> Self:
        """Add a node, as edges do implicitly. ValueError: the id is in use. TypeError: it is not an executor."""
        self._nodes.add(executor)
        return self

    def set_start(self, executor: Any) -> Self:
        """Set the entry node, as a node or the id of an added one."""
        self._start = self._nodes.find(executor)
        return self

    # ---- edges -----------------------------------------------------------------------------------

    def add_edge(self, source: Any, target: Any, condition: EdgeCondition | None = None) -> Self:
        """Connect two nodes. With a condition, which may be async, a falsy result drops the message."""
        self._groups.append(SingleEdgeGroup(self._nodes.add(source).id, self._nodes.add(target).id, condition))
        return self

    def connect(self, source: Any, target: Any, condition: EdgeCondition | None = None) -> Self:
        """Connect two nodes, like `add_edge`; also accepts ids of added executors. `add_chain` connects more nodes."""
        return self.add_edge(self._nodes.find(source), self._nodes.find(target), condition)

    def add_chain(self, executors: Sequence[Any]) -> Self:
        """Connect two or more nodes one after the other. Naming a node twice creates a cycle."""
        nodes = each_of("executors", executors, self._nodes.add)
        if len(nodes) < 2:
            msg = f"A chain needs at least two executors; got {nodes!r}. Use add_executor() for one."
            raise ValueError(msg)
        self._groups.extend([SingleEdgeGroup(a.id, b.id) for a, b in pairwise(nodes)])
        return self

    def add_fan_out_edges(self, source: Any, targets: Sequence[Any], *, copy: bool = False) -> Self:
        """Send each message of a node to several others: the same object, or with `copy` a deep copy for each."""
        return self.fan_out(self._nodes.add(source), each_of("targets", targets, self._nodes.add), copy=copy)

    def add_multi_selection_edge_group(
        self, source: Any, targets: Sequence[Any], selection_func: SelectionFunction
    ) -> Self:
        """Send each message of a node to the targets that a function selects; see `fan_out`."""
        return self.fan_out(self._nodes.add(source), each_of("targets", targets, self._nodes.add), selection_func)

    def fan_out(
        self,
        source: Any,
        targets: Sequence[Any],
        selection_func: SelectionFunction | None = None,
        selection_func_name: str | None = None,
        *,
        copy: bool = False,
    ) -> Self:
        """Send each message of a node to several others, or to those that a function selects.

        Args:
            source: The sender: a node, or the id of an added one.
            targets: Two or more nodes or ids, otherwise `ValueError`.
            selection_func: Called with the message data and all ids; returns some of the ids. May be async.
            selection_func_name: The recorded name of the function; by default its own name.
            copy: Each target gets its own deep copy of the message. By default, all targets get the same object, so
                each sees the changes that others make to it.

        """
        source_id = self._nodes.find(source).id
        target_ids = [node.id for node in each_of("targets", targets, self._nodes.find)]
        self._groups.append(
            FanOutEdgeGroup(source_id, target_ids, selection_func, selection_func_name=selection_func_name, copy=copy)
        )
        return self

    def add_fan_in_edges(self, sources: Sequence[Any], target: Any) -> Self:
        """Join nodes in one, which gets a list with one message from each, or single messages if it takes no lists."""
        source_ids = [node.id for node in each_of("sources", sources, self._nodes.add)]
        group = FanInEdgeGroup(source_ids, self._nodes.add(target).id)
        group.prefers_barrier = True
        self._groups.append(group)
        return self

    def fan_in(self, sources: Sequence[Any], target: Any, mode: FanInMode = "auto") -> Self:
        """Join several nodes in one, which gets each message separately.

        Args:
            sources: Two or more nodes, or ids of added ones, otherwise `ValueError`.
            target: The receiver. If it takes only lists, it gets one list when all sources have sent a message.
            mode: `"independent"` or `"barrier"` forces one of the two behaviours.

        """
        source_ids = [node.id for node in each_of("sources", sources, self._nodes.find)]
        self._groups.append(FanInEdgeGroup(source_ids, self._nodes.find(target).id, mode=mode))
        return self

    def add_switch_case_edge_group(self, source: Any, cases: Sequence[Case | Default]) -> Self:
        """Send each message of a node to the first target whose condition holds, or to the default."""
        return self._switch(source, cases, self._nodes.add)

    def switch(self, source: Any, cases: Sequence[Any]) -> Self:
        """Send each message of a node to the first target whose condition holds, or to the default.

        Args:
            source: The sender: a node, or the id of an added one.
            cases: `Case`, `Default` or `(condition, target)`, with exactly one default; else `TypeError` or
                `ValueError`.

        """
        return self._switch(source, cases, self._nodes.find)

    def _switch(self, source: Any, cases: Sequence[Any], node: Callable[[Any], Executor]) -> Self:
        source_id = node(source).id
        branches = each_of("cases", cases, partial(branch_with_ids, node=node))
        self._groups.append(SwitchCaseEdgeGroup(source_id, branches))
        return self

    def add_edge_group(self, group: EdgeGroup) -> Self:
        """Add a group that you created yourself. Its ids must belong to nodes when the workflow is built."""
        if isinstance(group, InternalEdgeGroup):
            msg = f"Every executor already has its internal edge; {group!r} cannot be added."
            raise ValueError(msg)
        self._groups.append(group)
        return self

    # ---- settings --------------------------------------------------------------------------------

    def max_iterations(self, limit: int) -> Self:
        """Set the maximum number of supersteps per input; 0 runs the start executor only."""
        require_limit("max_iterations", limit)
        self._limit = limit
        return self

    def max_messages(self, limit: int) -> Self:
        """Set the maximum number of messages that one superstep may queue for the next."""
        require_limit("max_messages", limit)
        self._settings = replace(self._settings, max_messages=limit)
        return self

    def checkpoint_storage(self, storage: CheckpointStorage | CheckpointManager) -> Self:
        """Set the storage in which runs save their checkpoints by default."""
        self._storage = storage
        return self

    def boundary_hook(self, hook: BoundaryHook) -> Self:
        """Set the hook that decides at each superstep boundary how the run continues."""
        self._hook = hook
        return self

    def output_from(self, *executors: Any) -> Self:
        """Add nodes (or ids of added ones) whose yields are outputs; `"all"` means all that can yield."""
        return self._designate(self._outputs, executors)

    def intermediate_output_from(self, *executors: Any) -> Self:
        """Add nodes (or ids of added ones) whose yields are intermediate; `"all_other"` means all remaining nodes."""
        return self._designate(self._intermediate, executors)

    def _designate(self, designation: Designation, entries: Sequence[Any]) -> Self:
        is_id = [isinstance(entry, str) and entry not in designation.words for entry in entries]
        designation.add([self._nodes.find(e) if found else e for e, found in zip(entries, is_id, strict=True)])
        return self

    # ---- building --------------------------------------------------------------------------------

    def build(self, copy_executors: bool = False) -> Workflow:
        """Check the graph and build a workflow from it.

        A second workflow from the same builder uses the same executor objects, and so shares their fields with the
        first one. A logged warning reports that.

        Args:
            copy_executors: Create deep copies of the executors for this workflow.

        Raises:
            ValueError: The graph has no executor.
            WorkflowValidationError: The graph violates a rule, see `agentbench.workflows.graph.validation`. The error
                is a subclass for the first violation; `all_errors` has all of them.
        """
        if not is_tracing():
            return self._build(copy_executors=copy_executors)
        from agentbench.workflows.engine.tracing import build_with_span  # noqa: PLC0415 - imports OpenTelemetry

        build = partial(self._build, copy_executors=copy_executors)
        definition = OBSERVABILITY_SETTINGS.WORKFLOW_DEFINITION_ENABLED
        workflow: Workflow = build_with_span(self._name, self._description, build, definition=definition)
        return workflow

    def _build(self, on_validated: Callable[[], None] | None = None, *, copy_executors: bool) -> Workflow:
        executors = copy.deepcopy(self._nodes.executors) if copy_executors else dict(self._nodes.executors)
        checks_reachability = self._hook is None or self._hook.reachability
        if self._start is not None:
            starts: tuple[str, ...] = (self._start.id,)
        else:
            starts = infer_starts(executors, self._groups, check_roots=checks_reachability)
        groups = [with_fan_in_mode(group, executors) for group in self._groups]
        designation = resolve_designation(self._outputs, self._intermediate, executors, self._nodes.id_of)
        validator = WorkflowGraphValidator(check_reachability=checks_reachability)
        raise_first(validator.check(groups, executors, starts, designation))
        if on_validated is not None:
            on_validated()
        if not copy_executors:
            if self._has_shared_executors:
                logger.warning(
                    "WorkflowBuilder %r has already built a workflow; both share %d executor objects and the data in "
                    "their fields. Use build(copy_executors=True) to make copies for this workflow.",
                    self._name,
                    len(executors),
                )
            self._has_shared_executors = True
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

    def __getattr__(self, name: str) -> NoReturn:
        hint = f" Build the workflow first: builder.build().{name}" if hasattr(Workflow, name) else ""
        msg = f"A {type(self).__name__} has no {name!r}.{hint}"
        raise AttributeError(msg)

    def __repr__(self) -> str:
        name = "" if self._name is None else f"name={self._name!r}, "
        return f"WorkflowBuilder({name}executors={len(self._nodes.executors)}, edge_groups={len(self._groups)})"
