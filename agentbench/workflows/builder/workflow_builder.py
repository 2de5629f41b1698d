"""`WorkflowBuilder`: collects executors and their connections, and makes a workflow of them."""

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
from agentbench.workflows.builder.designation import Designation, resolve_designation
from agentbench.workflows.builder.nodes import AgentMode, Nodes, branch_with_ids, each_of
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.options import TypeCheckMode, WorkflowSettings
from agentbench.workflows.graph.edge_groups import (
    EdgeGroup,
    FanInEdgeGroup,
    FanInMode,
    InternalEdgeGroup,
    SingleEdgeGroup,
)
from agentbench.workflows.graph.edges import Case, Default, EdgeCondition
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SelectionFunction, SwitchCaseEdgeGroup
from agentbench.workflows.graph.type_fit import with_fan_in_mode
from agentbench.workflows.graph.validation import WorkflowGraphValidator, infer_starts, raise_first
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.graph.boundary import BoundaryHook

logger = logging.getLogger(__name__)


class WorkflowBuilder:
    """Collects executors and edges and builds a `Workflow`.

    Two dialects, which may be mixed: `add_edge`, `add_fan_out_edges`, ... with settings as keywords, or `connect`,
    `fan_out`, ... with everything as a method; the latter also take the id of an added executor in place of a node. All
    methods but `build` return the builder. One object is one node, however often it is named.

    Args:
        max_iterations: Limit of supersteps per input. In this first place a node is taken as the start, too, and a
            text as the name.
        name: Of the workflow; groups its checkpoints. By default `"WorkflowBuilder-<unique id>"`.
        description: Of the workflow, for people.
        start_executor: The entry node. By default the node that no edge leads to.
        checkpoint_storage: Where runs save their checkpoints by default.
        output_from: `"all"`, or nodes whose yields are outputs. By default every yield is.
        intermediate_output_from: `"all_other"`, `"all"`, or nodes whose yields are intermediate outputs.
        output_executors: Deprecated name of `output_from`.
        strict_context: `False` gives every handler `send_message` and `yield_output`, declared or not.
        check_types: What to do with a value that the declared types do not admit: `"off"`, `"warn"`, `"error"`.
        report_drops: Emit `message_dropped` events in plain runs, too.
        copy_messages: Pass each target of a message its own copy.
        strict_checkpoints: A checkpoint that cannot be saved fails the run.
        checkpoint_run_kwargs: Write keyword arguments of runs, which may hold secrets, into checkpoints.
        max_messages: Limit of messages that one superstep may queue for the next.
        agent_mode: How agents work as nodes: `"respond"` to each message, or in `"turns"`.

    Raises:
        TypeError: Two starts or two names, something that is no node, or a value of the wrong type.
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
            checkpoint_run_kwargs=checkpoint_run_kwargs,
            max_messages=max_messages,
        )
        self._take_first(max_iterations, start_executor)

    def _take_first(self, first: Any, start_executor: Any) -> None:
        """Take the first positional argument by its type: as a limit, a name or a start."""
        if first is None or isinstance(first, (int, float)) or str(first).isdecimal():
            self.max_iterations(first)  # a text of digits is no name, but a limit from the environment: an error
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
        """Add a node, as naming it in an edge does. ValueError: its id is another's. TypeError: it is no executor."""
        self._nodes.add(executor)
        return self

    def set_start(self, executor: Any) -> Self:
        """Set the entry node: a node, or the id of an added one."""
        self._start = self._nodes.find(executor)
        return self

    # ---- edges -----------------------------------------------------------------------------------

    def add_edge(self, source: Any, target: Any, condition: EdgeCondition | None = None) -> Self:
        """Connect two nodes. With a condition, which may be async, a falsy result drops the message."""
        self._groups.append(SingleEdgeGroup(self._nodes.add(source).id, self._nodes.add(target).id, condition))
        return self

    def connect(self, source: Any, target: Any, condition: EdgeCondition | None = None) -> Self:
        """Connect two nodes, like `add_edge`; ids of added executors are taken, too."""
        return self.add_edge(self._nodes.find(source), self._nodes.find(target), condition)

    def add_chain(self, executors: Sequence[Any]) -> Self:
        """Connect two or more nodes one after the other. Naming one twice closes a cycle."""
        nodes = each_of("executors", executors, self._nodes.add)
        if len(nodes) < 2:
            msg = f"A chain needs at least two executors; got {nodes!r}. Use add_executor() for one."
            raise ValueError(msg)
        self._groups.extend([SingleEdgeGroup(a.id, b.id) for a, b in pairwise(nodes)])
        return self

    def add_fan_out_edges(self, source: Any, targets: Sequence[Any], *, copy: bool = False) -> Self:
        """Send each message of a node to several others at once: one object, or with `copy` a deep copy for each."""
        return self.fan_out(self._nodes.add(source), each_of("targets", targets, self._nodes.add), copy=copy)

    def add_multi_selection_edge_group(
        self, source: Any, targets: Sequence[Any], selection_func: SelectionFunction
    ) -> Self:
        """Send each message of a node to those of several others that a function picks; see `fan_out`."""
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
        """Send each message of a node to several others at once, or to those that a function picks.

        Args:
            source: Sends. A node, or the id of an added one.
            targets: Two or more nodes or ids, else `ValueError`.
            selection_func: Called with the message data and all ids, may be async; returns some of them.
            selection_func_name: Recorded name of the function; by default its own.
            copy: Each target gets its own deep copy of the message. By default all get the same object, so that what
                one changes in it, the others see.

        """
        source_id = self._nodes.find(source).id
        target_ids = [node.id for node in each_of("targets", targets, self._nodes.find)]
        self._groups.append(
            FanOutEdgeGroup(source_id, target_ids, selection_func, selection_func_name=selection_func_name, copy=copy)
        )
        return self

    def add_fan_in_edges(self, sources: Sequence[Any], target: Any) -> Self:
        """Join nodes in one, which gets a list with a message of each; each by itself if it takes no lists."""
        source_ids = [node.id for node in each_of("sources", sources, self._nodes.add)]
        group = FanInEdgeGroup(source_ids, self._nodes.add(target).id)
        group.prefers_barrier = True
        self._groups.append(group)
        return self

    def fan_in(self, sources: Sequence[Any], target: Any, mode: FanInMode = "auto") -> Self:
        """Join several nodes in one, which gets each message by itself.

        Args:
            sources: Two or more nodes, or ids of added ones, else `ValueError`.
            target: Receives. If it takes only lists, it gets one list when all sources have sent.
            mode: `"independent"` or `"barrier"` forces one of the two.

        """
        source_ids = [node.id for node in each_of("sources", sources, self._nodes.find)]
        self._groups.append(FanInEdgeGroup(source_ids, self._nodes.find(target).id, mode=mode))
        return self

    def add_switch_case_edge_group(self, source: Any, cases: Sequence[Case | Default]) -> Self:
        """Send each message of a node to the first of several others whose condition holds, or to the default."""
        return self._switch(source, cases, self._nodes.add)

    def switch(self, source: Any, cases: Sequence[Any]) -> Self:
        """Send each message of a node to the first of several others whose condition holds, or to the default.

        Args:
            source: Sends. A node, or the id of an added one.
            cases: `Case`, `Default` or `(condition, target)`, exactly one default: else `TypeError` or `ValueError`.

        """
        return self._switch(source, cases, self._nodes.find)

    def _switch(self, source: Any, cases: Sequence[Any], node: Callable[[Any], Executor]) -> Self:
        source_id = node(source).id
        branches = each_of("cases", cases, partial(branch_with_ids, node=node))
        self._groups.append(SwitchCaseEdgeGroup(source_id, branches))
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
        require_limit("max_iterations", limit)
        self._limit = limit
        return self

    def max_messages(self, limit: int) -> Self:
        """Set how many messages one superstep may queue for the next."""
        require_limit("max_messages", limit)
        self._settings = replace(self._settings, max_messages=limit)
        return self

    def checkpoint_storage(self, storage: CheckpointStorage | CheckpointManager) -> Self:
        """Set where runs save their checkpoints by default."""
        self._storage = storage
        return self

    def boundary_hook(self, hook: BoundaryHook) -> Self:
        """Set the hook that decides at each superstep boundary what happens next."""
        self._hook = hook
        return self

    def output_from(self, *executors: Any) -> Self:
        """Add nodes (or ids of added ones) whose yields are outputs; `"all"` names all that can yield."""
        return self._designate(self._outputs, executors)

    def intermediate_output_from(self, *executors: Any) -> Self:
        """Add nodes (or ids of added ones) whose yields are intermediate; `"all_other"` names all that are left."""
        return self._designate(self._intermediate, executors)

    def _designate(self, designation: Designation, entries: Sequence[Any]) -> Self:
        is_id = [isinstance(entry, str) and entry not in designation.words for entry in entries]
        designation.add([self._nodes.find(e) if found else e for e, found in zip(entries, is_id, strict=True)])
        return self

    # ---- building --------------------------------------------------------------------------------

    def build(self, copy_executors: bool = False) -> Workflow:
        """Check the graph and make a workflow of it.

        A second workflow of the same builder has the same executor objects, and thus shares their fields with the
        first; a logged warning says so.

        Args:
            copy_executors: Make deep copies of the executors for this workflow.

        Raises:
            ValueError: There is no executor.
            WorkflowValidationError: The graph breaks a rule, see `agentbench.workflows.graph.validation`. One of its
                subclasses for the first breach; all of them in its `all_errors`.
        """
        if not is_tracing():
            return self._build(copy_executors=copy_executors)
        from agentbench.workflows.engine.tracing import traced_build  # noqa: PLC0415 - imports OpenTelemetry

        build = partial(self._build, copy_executors=copy_executors)
        definition = OBSERVABILITY_SETTINGS.WORKFLOW_DEFINITION_ENABLED
        workflow: Workflow = traced_build(self._name, self._description, build, definition=definition)
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
                    "WorkflowBuilder %r was built before; both workflows share %d executor objects and the data in "
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
