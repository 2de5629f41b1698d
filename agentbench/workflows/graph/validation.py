"""The rules that a graph must satisfy before it can run.

The rules, in the order of the checks:

1. every start, and every end of every edge, is an executor of the graph; workflows are nested at most 40 deep;
2. two executors are connected by at most one edge, over all groups;
3. along each edge at least one sent type fits an accepted one (for a barrier: a list of it);
4. every executor can be reached from a start;
5. designated outputs can be produced.

The first violation is raised; its `all_errors` also contains all the others. Executors with an edge to themselves,
without outgoing edges or without declared types are legal and only logged. An edge that starts at an executor that
declares that it sends nothing (`WorkflowContext[Never, ...]`) is legal too, and reported as a `WorkflowWarning`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentbench._signatures import describe_redefinition, warn_of_redefinition
from agentbench._user_code import warn_user
from agentbench.exceptions import (
    EdgeDuplicationError,
    GraphConnectivityError,
    TypeCompatibilityError,
    ValidationTypeEnum,
    WorkflowValidationError,
    WorkflowWarning,
)
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import (
    EdgeGroup,
    FanInEdgeGroup,
    InternalEdgeGroup,
    as_list_types,
    resolve_fan_in_mode,
    types_fit,
)
from agentbench.workflows.graph.edges import Edge
from agentbench.workflows.graph.graph import find_sub_workflow
from agentbench.workflows.graph.selection import SwitchCaseEdgeGroup

logger = logging.getLogger(__name__)

MAX_NESTED_WORKFLOWS = 40


class OutputDesignation(NamedTuple):
    """Ids of executors by kind of their yields; both `None` if every yield is an output."""

    outputs: tuple[str, ...] | None
    intermediate: tuple[str, ...] | None
    is_empty: bool = False
    """Whether there is only an empty list, so that no yield would ever leave the workflow."""


EVERY_YIELD_IS_OUTPUT = OutputDesignation(None, None)


class WorkflowGraphValidator:
    """The rules of a graph as an object, for code that replaces one of them by overriding `check`.

    Example:
        >>> class Lenient(WorkflowGraphValidator):
        ...     def check(self, edge_groups, executors, start_executor_ids, designation):
        ...         errors = super().check(edge_groups, executors, start_executor_ids, designation)
        ...         return [e for e in errors if e.validation_type.value != "GRAPH_CONNECTIVITY"]
        >>> Lenient().validate_workflow(groups, {"a": a, "b": b}, "a")
    """

    def __init__(self, *, check_reachability: bool = True) -> None:
        self._check_reachability = check_reachability

    def validate_workflow(
        self,
        edge_groups: Iterable[EdgeGroup],
        executors: Mapping[str, Executor],
        start_executor: Executor | str | Sequence[Executor | str],
        output_executors: Sequence[Executor | str] | None = None,
        intermediate_executors: Sequence[Executor | str] | None = None,
    ) -> None:
        """Check the parts of a graph that was built without a builder; builders check theirs.

        Args:
            edge_groups: All groups; internal ones are skipped.
            executors: Executors by id.
            start_executor: The entry node, or several of them; executors or ids.
            output_executors: Executors designated for outputs; `None` or empty means no designation.
            intermediate_executors: Executors designated for intermediate outputs.

        Raises:
            WorkflowValidationError: The first violation of a rule, as a subclass; `all_errors` has all of them.

        Example:
            >>> validate_workflow_graph([SingleEdgeGroup("a", "b")], {"a": a, "b": b}, "a")
        """

        def ids(nodes: Iterable[Executor | str]) -> tuple[str, ...]:
            return tuple([node if isinstance(node, str) else node.id for node in nodes])

        starts = [start_executor] if isinstance(start_executor, (Executor, str)) else start_executor
        designation = EVERY_YIELD_IS_OUTPUT
        if output_executors or intermediate_executors:
            designation = OutputDesignation(ids(output_executors or ()), ids(intermediate_executors or ()))
        raise_first(self.check(list(edge_groups), executors, ids(starts), designation))

    def check(
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: Mapping[str, Executor],
        start_executor_ids: Sequence[str],
        designation: OutputDesignation,
    ) -> list[WorkflowValidationError]:
        """Return every violation of a rule, in the order of the rules, and log what is legal but unusual."""
        groups = [group for group in edge_groups if group.__class__ is not InternalEdgeGroup]
        edges = [edge for group in groups for edge in group.edges]
        errors = _missing_executors(edges, executors, start_executor_ids) + _too_deeply_nested(executors)
        ends_are_known = not errors
        pairs = [(edge.source_id, edge.target_id) for edge in edges]
        if len(set(pairs)) < len(pairs):
            errors += [EdgeDuplicationError(f"{a}->{b}") for (a, b), count in Counter(pairs).items() if count > 1]
        errors += _incompatible_types(groups, edges, executors)
        if self._check_reachability and ends_are_known:
            unreachable = sorted(executors.keys() - _reachable(start_executor_ids, edges))
            if unreachable:
                message = (
                    f"Executors {unreachable} cannot be reached from {list(start_executor_ids)}. Connect each of them "
                    "to an executor that can be reached, or leave them out."
                )
                errors.append(GraphConnectivityError(message))
        _log_oddities(edges, executors)
        if not errors:
            _warn_of_unused_edges(edges, executors)
            _warn_of_joined_alternatives(groups, edges, start_executor_ids)
        if designation is not EVERY_YIELD_IS_OUTPUT:
            errors += designation_errors(executors, designation)
        return errors


validate_workflow_graph = WorkflowGraphValidator().validate_workflow


def raise_first(errors: Sequence[WorkflowValidationError]) -> None:
    """Raise the first of the errors, if any, with the others attached."""
    if errors:
        first = errors[0]
        first.further_errors = tuple(errors[1:])
        raise first


def _missing_executors(
    edges: Iterable[Edge], executors: Mapping[str, Executor], start_executor_ids: Sequence[str]
) -> list[WorkflowValidationError]:
    """Rule 1: find starts and ends of edges that are not in the graph."""
    messages = [
        f"The start executor {start!r} is not part of the workflow, which has {sorted(executors)}. Add it, or use one "
        "of those as the start."
        for start in start_executor_ids
        if start not in executors
    ]
    for edge in [e for e in edges if e.source_id not in executors or e.target_id not in executors]:
        absent = [end for end in dict.fromkeys((edge.source_id, edge.target_id)) if end not in executors]
        messages.append(
            f"Edge {edge.id!r} names {absent}, which is not in the workflow; it has {sorted(executors)}. Add the "
            "executor with add_executor(), or correct the id."
        )
    return [GraphConnectivityError(message) for message in messages]


def _too_deeply_nested(executors: Mapping[str, Executor]) -> list[WorkflowValidationError]:
    """Reject nesting that would exceed Python's recursion limit when it runs."""
    level, depth = [*executors.values()], 0
    while inner := {id(workflow): workflow for workflow in map(find_sub_workflow, level) if workflow is not None}:
        level, depth = [each for workflow in inner.values() for each in workflow.executors.values()], depth + 1
        if depth > MAX_NESTED_WORKFLOWS:
            message = (
                f"More than {MAX_NESTED_WORKFLOWS} workflows are nested in each other, but Python's stack is too small "
                "to run them. Connect some of them one after another instead."
            )
            return [WorkflowValidationError(message, ValidationTypeEnum.GRAPH_CONNECTIVITY)]
    return []


def _incompatible_types(
    groups: Iterable[EdgeGroup], edges: Sequence[Edge], executors: Mapping[str, Executor]
) -> list[WorkflowValidationError]:
    """Rule 3: find edges whose target takes none of the types that the source sends."""
    outputs = {i: tuple(executors[i].output_types) for i in dict.fromkeys(e.source_id for e in edges) if i in executors}
    inputs = {i: tuple(executors[i].input_types) for i in dict.fromkeys(e.target_id for e in edges) if i in executors}
    _log_undeclared_types(outputs, inputs, executors)
    errors: list[WorkflowValidationError] = []
    for group in groups:
        mode = "independent"
        if isinstance(group, FanInEdgeGroup):
            decided = resolve_fan_in_mode(group, executors)
            if decided is None:
                continue  # the first message decides and is checked then
            mode = decided
        for edge in group.edges:
            sent, taken = outputs.get(edge.source_id), inputs.get(edge.target_id)
            if not sent or not taken:
                continue
            delivered = as_list_types(sent) if mode == "barrier" else sent
            ends = repr(edge.source_id), repr(edge.target_id)
            if not types_fit(delivered, taken):
                redefined = describe_redefinition(delivered, taken, *ends)
                errors.append(TypeCompatibilityError(edge.source_id, edge.target_id, delivered, taken, redefined))
            elif delivered != taken:
                warn_of_redefinition(delivered, taken, *ends)
    return errors


def _log_undeclared_types(
    outputs: Mapping[str, Sequence[Any]], inputs: Mapping[str, Sequence[Any]], executors: Mapping[str, Executor]
) -> None:
    """Log ends of edges that declare no types; one that declares `Never` is reported by a warning instead."""
    undeclared = [
        (key, "has outgoing edges, but declares no type that it sends. Annotate its context: WorkflowContext[Sent]")
        for key, types in outputs.items()
        if not types and not executors[key]._ab_sends_never  # noqa: SLF001 - users may use any public name
    ]
    undeclared += [
        (key, "declares no type that it takes. Annotate the message parameter of its handlers")
        for key, types in inputs.items()
        if not types
    ]
    for executor_id, problem in undeclared:
        logger.warning("Executor %r %s. These edges are not checked.", executor_id, problem)


def _reachable(starts: Iterable[str], edges: Iterable[Edge], *, both_ways: bool = False) -> set[str]:
    """Return the starts and all ids reachable from them by edges, or connected with them in either direction."""
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.source_id, []).append(edge.target_id)
        if both_ways:
            neighbours.setdefault(edge.target_id, []).append(edge.source_id)
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for neighbour in neighbours.get(waiting.pop(), ()):
            if neighbour not in reached:
                reached.add(neighbour)
                waiting.append(neighbour)
    return reached


def _warn_of_unused_edges(edges: Iterable[Edge], executors: Mapping[str, Executor]) -> None:
    """Warn about edges along which no message can travel, because their source declares that it sends nothing."""
    for edge in edges:
        source = executors[edge.source_id]
        if source._ab_sends_never and not source.output_types:  # noqa: SLF001 - as above
            text = (
                f"No message can travel along the edge {edge.id!r}: {edge.source_id!r} declares with "
                "WorkflowContext[Never, ...] that it sends nothing. Declare the type that it sends, such as "
                "WorkflowContext[str], and call ctx.send_message(), or remove the edge."
            )
            warn_user(text, WorkflowWarning)


def _warn_of_joined_alternatives(groups: Sequence[EdgeGroup], edges: Sequence[Edge], starts: Sequence[str]) -> None:
    """Warn about barriers that wait for several branches of one switch, of which a message takes only one."""
    for switch in groups:
        if not isinstance(switch, SwitchCaseEdgeGroup):
            continue
        edge_ids = {id(edge) for edge in switch.edges}
        others = [edge for edge in edges if id(edge) not in edge_ids]
        anyway = _reachable(starts, others)
        branches = {edge.target_id: _reachable([edge.target_id], others) for edge in switch.edges}
        if any(switch.source_executor_ids[0] in reached for reached in branches.values()):
            continue  # in a loop the switch may choose another branch next time
        for group in groups:
            if not isinstance(group, FanInEdgeGroup) or group.resolved_mode != "barrier":
                continue
            only = {each: _only_branch(each, branches) for each in group.source_executor_ids if each not in anyway}
            taken = {branch for branch in only.values() if branch is not None}
            if len(taken) > 1:
                names = " and ".join(map(repr, sorted(only)))
                text = (
                    f"The fan-in of {group.target_executor_ids[0]!r} can never fire: it waits for {names}, and the "
                    f"switch of {switch.source_executor_ids[0]!r} chooses one of them. Connect them by single edges, "
                    "or pass mode='independent'."
                )
                warn_user(text, WorkflowWarning)


def _only_branch(source: str, branches: Mapping[str, set[str]]) -> str | None:
    leading = [target for target, reached in branches.items() if source in reached]
    return leading[0] if len(leading) == 1 else None


def _log_oddities(edges: Iterable[Edge], executors: Mapping[str, Executor]) -> None:
    """Log legal constructs that are often mistakes: an edge to its own source, executors without outgoing edges."""
    sources = set()
    for edge in edges:
        sources.add(edge.source_id)
        if edge.source_id == edge.target_id and edge.condition is None:
            logger.warning(
                "Executor %r has an edge to itself. Add a condition to the edge that ends the loop at some point.",
                edge.source_id,
            )
    if logger.isEnabledFor(logging.INFO):
        for executor_id in executors:
            if executor_id not in sources:
                logger.info("Executor %r has no outgoing edge; its messages end there.", executor_id)


def designation_errors(
    executors: Mapping[str, Executor], designation: OutputDesignation
) -> list[WorkflowValidationError]:
    """Rule 5: find designated executors that are missing, cannot yield, or are named twice."""
    messages: list[str] = []
    outputs, intermediate = designation.outputs or (), designation.intermediate or ()
    if designation.is_empty:
        messages.append(
            "output_from and intermediate_output_from name no executors, so no output would ever leave the workflow. "
            "Name the executors whose yields are outputs, or leave both out to output all yields."
        )
    for keyword, ids in (("output_from", outputs), ("intermediate_output_from", intermediate)):
        twice = sorted({executor_id for executor_id in ids if ids.count(executor_id) > 1})
        if twice:
            messages.append(f"{keyword} names {twice} more than once. Name each executor once.")
    both = sorted(set(outputs) & set(intermediate))
    if both:
        messages.append(
            f"Executors {both} are designated both as outputs and as intermediate outputs. An executor's yields are "
            "one or the other: remove each from one of the lists."
        )
    for executor_id in dict.fromkeys([*outputs, *intermediate]):
        executor = executors.get(executor_id)
        if executor is None:
            messages.append(
                f"Executor {executor_id!r} is designated for outputs, but is not part of the workflow, which has "
                f"{sorted(executors)}. Connect it, or remove it from the list."
            )
        elif not executor.workflow_output_types:
            messages.append(
                f"Executor {executor_id!r} is designated for outputs, but declares none. Annotate a handler's context "
                "with the yielded type, WorkflowContext[Sent, Yielded], or pass workflow_output=."
            )
    return [WorkflowValidationError(message, ValidationTypeEnum.OUTPUT_VALIDATION) for message in messages]


def infer_starts(
    executors: Mapping[str, Executor], edge_groups: Sequence[EdgeGroup], *, check_roots: bool = True
) -> tuple[str, ...]:
    """Find the entry nodes: the executors to which no other one leads.

    A single root is the start. Without any root (everything lies on cycles), the executor that was added first is the
    start. With several roots, the first is *the* start; the others get the input too if each feeds a fan-in and is
    connected with the start. `check_roots=False` ignores the others. Edges from an executor to itself do not count.
    """
    if not executors:
        msg = "The workflow has no executors. Add one with add_executor(), connect() or start_executor=."
        raise ValueError(msg)
    edges = [edge for group in edge_groups for edge in group.edges]
    reached = {edge.target_id for edge in edges if edge.source_id != edge.target_id}
    roots = [executor_id for executor_id in executors if executor_id not in reached]
    if len(roots) < 2:
        return (roots[0] if roots else next(iter(executors)),)
    gathered = {
        source for group in edge_groups if isinstance(group, FanInEdgeGroup) for source in group.source_executor_ids
    }
    connected = _reachable([roots[0]], edges, both_ways=True)
    legal = [root for root in roots[1:] if root in gathered and root in connected]
    if check_roots and len(legal) + 1 < len(roots):
        offenders = sorted(set(roots[1:]) - set(legal))
        msg = (
            f"No start executor was named. {roots[0]!r} was chosen, because no edge leads to it, but no edge leads to "
            f"{offenders} either. Name the start with start_executor= or set_start(), and connect every other executor "
            "to it. Several executors get the input together only if each of them feeds a fan-in."
        )
        raise GraphConnectivityError(msg)
    return (roots[0], *legal)
