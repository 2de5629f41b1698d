"""Which nodes run next: edges, conditions, joins and `Send`, in an order that does not depend on time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError

from agentbench._copying import register_frozen
from agentbench._display import shorten
from agentbench.exceptions import GraphError, StateValidationError
from agentbench.stategraph.command import Send
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import TaskWrites, read_return, without_new_answers
from agentbench.stategraph.running.plan import Condition, GraphPlan
from agentbench.stategraph.state import END, START, AgentState


@dataclass(frozen=True, slots=True)
class Activation:
    """The message that starts a node: its task's id and position in the superstep, and its causes."""

    task_id: str
    order: int
    via: tuple[str, ...] = ()
    arg: Any = None

    def __repr__(self) -> str:
        return f"task {self.task_id} after {', '.join(self.via)}" + (f" with {self.arg}" if self.arg else "")


register_frozen(Activation)

StateMaker = Callable[[StateFields], Any]
Argument = Callable[[str], Any]


@dataclass(slots=True)
class Waiting:
    """Nodes that wait for others: the sources that have reached each join, and deferred nodes with their causes."""

    joins: dict[str, list[str]] = field(default_factory=dict)
    deferred: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Routed:
    """The activations of the next superstep, as (node, activation), and the nodes that still wait."""

    frontier: list[tuple[str, Activation]]
    waiting: Waiting
    warnings: list[str]


async def route(
    plan: GraphPlan,
    tasks: Sequence[TaskWrites],
    waiting: Waiting,
    state_for: StateMaker,
    argument: Argument,
    step: int,
    values: Mapping[str, Any],
) -> Routed:
    """Return the activations after these tasks, which must be in order.

    Args:
        plan: The graph.
        tasks: The finished tasks.
        waiting: The nodes that wait since earlier supersteps.
        state_for: Returns the state after the superstep, for a condition.
        argument: Returns a further argument of a condition, by its kind.
        step: The number of the next superstep, for the ids of its tasks.
        values: The state after the superstep. A `Send` may contain only the approvals that are in it.

    Raises:
        GraphError: `GRAPH_ROUTING_001`, a condition failed, or a target is not a node.
    """
    arrived = {key: [*sources] for key, sources in waiting.joins.items()}
    targets_of = [await _targets(plan, task, arrived, state_for, argument) for task in tasks]
    if len(tasks) == 1 and not arrived and not waiting.deferred:
        routed = _route_to_one(plan, tasks[0], targets_of[0], waiting, step)
        if routed is not None:
            return routed
    return _route_all(plan, tasks, targets_of, Waiting(arrived, waiting.deferred), step, values)


def _route_all(
    plan: GraphPlan,
    tasks: Sequence[TaskWrites],
    targets_of: Sequence[Sequence[str | Send]],
    waiting: Waiting,
    step: int,
    values: Mapping[str, Any],
) -> Routed:
    """Return the activations for the targets of each task, and for nodes that no longer have to wait."""
    arrived, deferred = waiting.joins, {node: [*via] for node, via in waiting.deferred.items()}
    due: list[_Due] = []
    for position, (task, targets) in enumerate(zip(tasks, targets_of, strict=True)):
        for place, target in enumerate(targets):
            if target == END:
                continue
            send = _with_fields(plan, target, task.node, values) if isinstance(target, Send) else None
            node = plan.nodes.get(target if send is None else send.node)  # type: ignore[arg-type]
            if node is None:
                _refuse_target(plan, target, task.node)
            elif node.defer and send is None:
                deferred.setdefault(node.name, []).append(task.task_id)
            else:
                due.append(_Due.of(plan, node.name, task.task_id, send, (position, place)))
    if not due:
        due = [_Due.of(plan, node, source, None) for node, via in deferred.items() for source in via]
        deferred = {}
    if not due:
        for join in plan.joins:
            if join.active and join.key in arrived:
                via = ", ".join(arrived.pop(join.key))
                due.append(_Due.of(plan, join.target, via, None))
    frontier = _activations(due, step)
    return Routed(frontier, Waiting(arrived, deferred), [] if frontier else _join_warnings(plan, arrived))


def _route_to_one(
    plan: GraphPlan, task: TaskWrites, targets: Sequence[str | Send], waiting: Waiting, step: int
) -> Routed | None:
    """Return the activation after one task with one target, as in most supersteps; None if there is more to decide."""
    if len(targets) != 1 or targets[0].__class__ is not str:
        return None
    target: Any = targets[0]
    if target == END:
        return Routed([], waiting, [])
    node = plan.nodes.get(target)
    if node is None or node.defer:
        return None
    return Routed([(target, Activation(f"{step}:{target}:1", 0, (task.task_id,)))], waiting, [])


def _with_fields(plan: GraphPlan, send: Send, sender: str, values: Mapping[str, Any]) -> Send:
    """Return a `Send` with validated fields of an `AgentState`; with other classes its task gets `arg` unchanged."""
    arg, takes_fields = send.arg, plan.fields.is_agent_state
    if takes_fields and isinstance(arg, AgentState):
        arg = plan.fields.values_of(arg)
    given = arg if isinstance(arg, Mapping) else {"": arg}
    passed = {name: without_new_answers(value, values.values(), sender) for name, value in given.items()}
    if any(passed[name] is not value for name, value in given.items()):
        arg = passed if given is arg else passed[""]
        send = Send(send.node, arg)
    if not takes_fields:
        return send
    writes = read_return(arg or {}, plan.fields, sender).writes
    try:
        return Send(send.node, {name: plan.fields.validate(name, value, {}) for name, value in writes})
    except ValidationError as error:
        field, problem = error.errors()[0]["loc"][0], error.errors()[0]["msg"]
        message = f"Node {sender!r} sends {send.node!r} a value that does not fit {str(field)!r}: {problem}."
        raise StateValidationError(message, node=sender, field=str(field)) from error


class _Due(NamedTuple):
    """A pending activation, sorted by the order of nodes, then of the tasks that caused it, then of targets."""

    order: Any
    position: int
    place: int
    node: str
    via: str
    send: Send | None

    @classmethod
    def of(cls, plan: GraphPlan, node: str, via: str, send: Send | None, at: tuple[int, int] = (0, 0)) -> _Due:
        """Return an activation of a node; without an `AgentState`, nodes are in the order of names, then of `Send`."""
        by_name = (send is not None, "" if send is not None else node)
        return cls(plan.nodes[node].order if plan.fields.is_agent_state else by_name, *at, node, via, send)


def _activations(due: list[_Due], step: int) -> list[tuple[str, Activation]]:
    """Return the activations in order: one per `Send`, and one for all other causes of a node."""
    frontier: list[tuple[str, Activation]] = []
    plain: dict[str, int] = {}
    counts: dict[str, int] = {}
    for cause in sorted(due, key=lambda cause: cause[:3]):
        if cause.send is None and cause.node in plain:
            at = plain[cause.node]
            first = frontier[at][1]
            frontier[at] = (cause.node, replace(first, via=(*first.via, cause.via)))
            continue
        if cause.send is None:
            plain[cause.node] = len(frontier)
        counts[cause.node] = counts.get(cause.node, 0) + 1
        arg = None if cause.send is None else cause.send.arg
        activation = Activation(f"{step}:{cause.node}:{counts[cause.node]}", len(frontier), (cause.via,), arg)
        frontier.append((cause.node, activation))
    return frontier


async def _targets(
    plan: GraphPlan, task: TaskWrites, arrived: dict[str, list[str]], state_for: StateMaker, argument: Argument
) -> list[str | Send]:
    """Return the targets of a task: its own, or those of the node's edges, whose joins it has then reached.

    Without an `AgentState`, a node's own targets are in addition to those of its edges.
    """
    node = task.node
    if task.goto is not None and (plan.fields.is_agent_state or node == START):
        return [*task.goto]
    targets: list[str | Send] = [*(task.goto or ()), *plan.edges.get(node, ())]
    for condition in plan.conditions.get(node, ()):
        targets += await _follow(plan, condition, node, state_for(condition.view), argument)
    for join in plan.joins:
        if node in join.sources:
            reached = arrived.setdefault(join.key, [])
            if node not in reached:
                reached.append(node)
            if len(reached) == len(join.sources):
                del arrived[join.key]
                targets.append(join.target)
    return targets


async def _follow(plan: GraphPlan, condition: Condition, node: str, state: Any, argument: Argument) -> list[str | Send]:
    """Return the targets that a condition chooses."""
    try:
        result = condition.function(state, *map(argument, condition.takes))
        if result.__class__ is not str and inspect.isawaitable(result):
            result = await result
    except Exception as error:  # noqa: BLE001 - a condition is code of the user
        _refuse(plan, condition, node, f"raised {type(error).__name__}: {error}", error)
    targets: list[str | Send] = []
    for chosen in result if isinstance(result, (list, tuple)) else [result]:
        target: Any = chosen
        if condition.path_map is not None and not isinstance(chosen, Send):
            try:
                target = condition.path_map[chosen]
            except (KeyError, TypeError):
                _refuse(plan, condition, node, f"returned {shorten(chosen)}, which is not in its path_map")
        if isinstance(target, Enum):
            target = target.value
        if not isinstance(target, Send) and target != END and target not in plan.nodes:
            _refuse(plan, condition, node, f"returned {shorten(chosen)}, which is not a node")
        targets.append(target)
    return targets


def _refuse(
    plan: GraphPlan, condition: Condition, node: str, problem: str, cause: BaseException | None = None
) -> NoReturn:
    legal = [*map(repr, condition.path_map)] if condition.path_map is not None else [*plan.nodes, "END"]
    message = f"The condition {condition.name} after node {node!r} {problem}. Expected one of: {', '.join(legal)}."
    raise GraphError(message, "GRAPH_ROUTING_001", {"condition": condition.name}, node=node) from cause


def _refuse_target(plan: GraphPlan, target: object, node: str) -> NoReturn:
    message = f"Node {node!r} goes to {target!r}, which is not a node. Nodes: {', '.join(plan.nodes)}, and END."
    raise GraphError(message, "GRAPH_ROUTING_001", {"target": str(target)}, node=node)


def _join_warnings(plan: GraphPlan, joins: Mapping[str, Sequence[str]]) -> list[str]:
    by_key = {join.key: join for join in plan.joins}
    return [
        f"The run ended before the join {key} was complete: {', '.join(set(by_key[key].sources) - set(arrived))} did "
        f"not finish, so {by_key[key].target!r} did not run. Without waiting: add_edge(..., when='active')."
        for key, arrived in joins.items()
    ]
