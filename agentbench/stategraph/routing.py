"""Which nodes run next: edges, conditions, joins and `Send`, in an order that does not depend on time."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

from agentbench._display import shortened
from agentbench.exceptions import GraphError
from agentbench.stategraph.command import Send
from agentbench.stategraph.plan import Condition, GraphPlan
from agentbench.stategraph.state import END, AgentState
from agentbench.stategraph.updates import TaskWrites


@dataclass(frozen=True, slots=True)
class Activation:
    """The message that starts a node: its task's id and place in the superstep, and what activated it."""

    task_id: str
    order: int
    via: tuple[str, ...] = ()
    arg: Any = None


@dataclass(slots=True)
class Waiting:
    """What waits for other nodes: the sources that have reached each join, and deferred nodes with their causes."""

    joins: dict[str, list[str]] = field(default_factory=dict)
    deferred: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Routed:
    """The activations of the next superstep, as (node, activation), and what still waits."""

    frontier: list[tuple[str, Activation]]
    waiting: Waiting
    warnings: list[str]


async def route(
    plan: GraphPlan,
    tasks: Sequence[TaskWrites],
    waiting: Waiting,
    state: AgentState,
    config: Mapping[str, Any],
    step: int,
) -> Routed:
    """Return what runs after these tasks, which are in their order.

    Args:
        plan: The graph.
        tasks: The finished tasks.
        waiting: What waits since earlier supersteps.
        state: The state after the superstep, for conditions.
        config: The configuration of the call, for conditions.
        step: Number of the next superstep, for the ids of its tasks.

    Raises:
        GraphError: `GRAPH_ROUTING_001`, a condition failed, or a target is no node.
    """
    # (node, position of the activating task, position among its targets), and what activates it.
    single: dict[str, tuple[int, int]] = {}
    causes: dict[str, list[str]] = {}
    sends: list[tuple[int, int, int, TaskWrites, Send]] = []
    joins = {key: [*sources] for key, sources in waiting.joins.items()}
    deferred = {node: [*via] for node, via in waiting.deferred.items()}

    def activate(node: str, at: tuple[int, int], via: str) -> None:
        single.setdefault(node, at)
        causes.setdefault(node, []).append(via)

    for position, task in enumerate(tasks):
        if task.goto is not None:
            targets: list[str | Send] = [*task.goto]
        else:
            targets = [*plan.edges.get(task.node, ())]
            for condition in plan.conditions.get(task.node, ()):
                targets += await _follow(plan, condition, task.node, state, config)
            for join in plan.joins:
                if task.node not in join.sources:
                    continue
                arrived = joins.setdefault(join.key, [])
                if task.node not in arrived:
                    arrived.append(task.node)
                if len(arrived) == len(join.sources):
                    del joins[join.key]
                    targets.append(join.target)
        for at, target in enumerate(targets):
            if isinstance(target, Send):
                _require_node(plan, target.node, task.node)
                sends.append((plan.nodes[target.node].order, position, at, task, target))
            elif target != END:
                _require_node(plan, target, task.node)
                if plan.nodes[target].defer:
                    deferred.setdefault(target, []).append(task.task_id)
                else:
                    activate(target, (position, at), task.task_id)
    if not single and not sends:
        for at, (node, via) in enumerate(deferred.items()):
            for each in via:
                activate(node, (0, at), each)
        deferred = {}
    if not single:
        for at, join in enumerate(plan.joins):
            if join.active and join.key in joins:
                activate(join.target, (0, at), ", ".join(joins.pop(join.key)))
    ordered: list[tuple[int, int, int, str, tuple[str, ...], Any]] = [
        (plan.nodes[node].order, *at, node, tuple(causes[node]), None) for node, at in single.items()
    ]
    ordered += [(*place, send.node, (task.task_id,), send.arg) for *place, task, send in sends]  # type: ignore[misc]
    ordered.sort(key=lambda each: each[:3])
    counts: dict[str, int] = {}
    frontier = []
    for order, (_, _, _, node, via, arg) in enumerate(ordered):
        counts[node] = counts.get(node, 0) + 1
        frontier.append((node, Activation(f"{step}:{node}:{counts[node]}", order, via, arg)))
    return Routed(frontier, Waiting(joins, deferred), [] if frontier else _unfinished(plan, joins))


async def _follow(
    plan: GraphPlan, condition: Condition, node: str, state: AgentState, config: Mapping[str, Any]
) -> list[str | Send]:
    """Return the targets that a condition chooses."""
    try:
        result = condition.function(state, config) if condition.takes_config else condition.function(state)
        if inspect.isawaitable(result):
            result = await result
    except Exception as error:  # noqa: BLE001 - a condition is code of the user
        _refuse(plan, condition, node, f"raised {type(error).__name__}: {error}", error)
    targets: list[str | Send] = []
    for each in result if isinstance(result, (list, tuple)) else [result]:
        target: Any = each
        if condition.path_map is not None and not isinstance(each, Send):
            try:
                target = condition.path_map[each]
            except (KeyError, TypeError):
                _refuse(plan, condition, node, f"returned {shortened(repr(each))}, which is not in its path_map")
        if isinstance(target, Enum):
            target = target.value
        if not isinstance(target, Send) and target != END and target not in plan.nodes:
            _refuse(plan, condition, node, f"returned {shortened(repr(each))}, which is no node")
        targets.append(target)
    return targets


def _refuse(
    plan: GraphPlan, condition: Condition, node: str, problem: str, cause: BaseException | None = None
) -> NoReturn:
    legal = [*map(repr, condition.path_map)] if condition.path_map is not None else [*plan.nodes, "END"]
    message = f"The condition {condition.name} behind node {node!r} {problem}. Expected one of: {', '.join(legal)}."
    raise GraphError(message, "GRAPH_ROUTING_001", {"condition": condition.name}, node=node) from cause


def _require_node(plan: GraphPlan, target: object, node: str) -> None:
    if target not in plan.nodes:
        message = (
            f"Node {node!r} goes to {target!r}, which is no node. The nodes are: {', '.join(plan.nodes)}, and END."
        )
        raise GraphError(message, "GRAPH_ROUTING_001", {"target": str(target)}, node=node)


def _unfinished(plan: GraphPlan, joins: Mapping[str, Sequence[str]]) -> list[str]:
    by_key = {join.key: join for join in plan.joins}
    return [
        f"The run ended before the join {key} was complete: {', '.join(set(by_key[key].sources) - set(arrived))} did "
        f"not finish, so {by_key[key].target!r} did not run. add_edge([...], ..., when='active') goes on without."
        for key, arrived in joins.items()
    ]
