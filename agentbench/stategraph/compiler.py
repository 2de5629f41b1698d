"""Compiles a `StateGraph`: the checks, the plan, and the workflow of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

from agentbench._user_code import warn_user
from agentbench.checkpoints.manager import require_storage
from agentbench.exceptions import GraphCompileError
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.running.boundary import GraphHook, node_names
from agentbench.stategraph.running.executors import InputExecutor, Marker, node_executor
from agentbench.stategraph.running.plan import Durability, GraphPlan, Isolation, NodeSpec
from agentbench.stategraph.state import END, START
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, SingleEdgeGroup
from agentbench.workflows.run.workflow import Workflow


def compile_graph(  # noqa: PLR0913 - the settings of `compile`, by name
    graph: Any,
    *,
    name: str | None,
    interrupt_before: Sequence[str] | str | None,
    interrupt_after: Sequence[str] | str | None,
    on_conflict: str,
    isolation: Any,
    durability: Any,
    debug: bool,
    node_timeout: float | None,
    max_concurrency: int | None,
    checkpointer: Any,
    **services: Any,
) -> CompiledGraph[Any]:
    """Check a `StateGraph` and return its compiled graph; see `StateGraph.compile`."""
    for setting, value, choices in (
        ("durability", durability, get_args(Durability)),
        ("isolation", isolation, get_args(Isolation)),
        ("on_conflict", on_conflict, ("error", "last")),
    ):
        if value not in choices:
            message = f"{setting} is {value!r}; expected one of {', '.join(map(repr, choices))}."
            raise ValueError(message)
    if checkpointer not in (None, False):
        checkpointer = require_storage(checkpointer, "checkpointer")
    plan = GraphPlan(
        name=name or graph.name or graph.state_class.__name__,
        fields=graph.fields,
        template=graph.template,
        context_schema=graph.context_schema,
        nodes={key: replace(node, timeout=node.timeout or node_timeout) for key, node in graph.nodes.items()},
        edges={source: tuple(targets) for source, targets in graph.edges.items()},
        conditions={source: tuple(conditions) for source, conditions in graph.conditions.items()},
        joins=tuple(graph.joins),
        interrupt_before=node_names(interrupt_before),
        interrupt_after=node_names(interrupt_after),
        last_wins=on_conflict == "last",
        isolation=isolation,
        durability=durability,
        debug=debug,
        max_concurrency=max_concurrency,
        saves=checkpointer is not False,
    )
    return CompiledGraph(plan, _check_and_build, checkpointer=checkpointer, **services)


def _check_and_build(plan: GraphPlan) -> Workflow:
    _check(plan)
    if not plan.saves and (plan.interrupt_before or plan.interrupt_after):
        raise plan.refuse_pause()
    return _workflow(plan)


def _check(plan: GraphPlan) -> None:
    following = _following(plan)
    if not following.get(START) and START not in plan.conditions:
        _refuse("The graph has no entry. Write: graph.add_edge(START, 'first node').", "GRAPH_002")
    if END in following or any(START in targets for targets in following.values()):
        _refuse("An edge leads from END or to START. Edges can only begin at START and end at END.", "GRAPH_004")
    named = {*following, *(target for targets in following.values() for target in targets)}
    for name in sorted((named | plan.interrupt_before | plan.interrupt_after) - {START, END, "*"}):
        if name not in plan.nodes:
            _refuse(f"There is no node {name!r}. Nodes: {', '.join(plan.nodes)}.", "GRAPH_004", name)
    reached = {START}
    new = [START]
    while new:
        new = [target for source in new for target in following.get(source, ()) if target not in reached]
        reached.update(new)
    unreached = [name for name in plan.nodes if name not in reached]
    anywhere = [name for name, node in plan.nodes.items() if name in reached and node.goto is None]
    free_conditions = [
        condition.name
        for source, conditions in plan.conditions.items()
        for condition in conditions
        if source in reached and condition.targets is None
    ]
    anywhere += free_conditions
    if unreached and not anywhere:
        name = unreached[0]
        what = "cannot be reached from START" if name in named else "has no edge"
        message = f"Node {name!r} {what}, so it never runs. Connect it with add_edge()."
        if plan.fields.is_agent_state:
            _refuse(message, "GRAPH_003", name)
        warn_user(message, UserWarning)
    elif unreached and (plan.fields.is_agent_state or not free_conditions):
        message = (
            f"No edge leads to {_list_names(unreached)}. A node without an edge runs only if a condition or a Command "
            f"names it, and {_list_names(anywhere)} may go to any node. Declare the targets: "
            "add_conditional_edges(..., path_map=[...]), add_node(..., goes_to=[...]) or "
            "-> Command[Literal[...]]. Or connect the nodes with add_edge()."
        )
        warn_user(message, UserWarning)
    _warn_of_second_runs(plan)


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _following(plan: GraphPlan) -> dict[str, set[str]]:
    """Return the possible successors of each node, as far as they are declared."""
    chosen = {name: {*(node.goto or ()), *_handoffs_of(node)} for name, node in plan.nodes.items()}
    following: dict[str, set[str]] = {name: targets for name, targets in chosen.items() if targets}
    for source, targets in plan.edges.items():
        following.setdefault(source, set()).update(targets)
    for source, conditions in plan.conditions.items():
        following.setdefault(source, set()).update(*(condition.targets or () for condition in conditions))
    for join in plan.joins:
        for source in join.sources:
            following.setdefault(source, set()).add(join.target)
    return following


def _handoffs_of(node: NodeSpec) -> Sequence[str]:
    """Return the nodes to which the tools of a `ToolNode` hand over."""
    return getattr(node.target, "handoffs", ())


def _warn_of_second_runs(plan: GraphPlan) -> None:
    """Warn about nodes that are reached by paths of different length, so that they run once for each."""
    depths: dict[str, set[int]] = {}
    ways: list[tuple[str, ...]] = [(START,)]
    while ways:
        way = ways.pop()
        lengths = depths.setdefault(way[-1], set())
        if len(way) in lengths:
            continue
        lengths.add(len(way))
        ways += [(*way, target) for target in plan.edges.get(way[-1], ()) if target not in way and target != END]
    for name, lengths in depths.items():
        sources = [source for source, targets in plan.edges.items() if name in targets]
        if (
            len(lengths) > 1
            and len({min(depths.get(source, {0})) for source in sources}) > 1
            and not plan.nodes[name].defer
        ):
            message = (
                f"Node {name!r} will run more than once: paths of different length lead to it, over "
                f"{' and '.join(map(repr, sources))}. A join, add_edge([...], {name!r}), or defer=True makes it wait."
            )
            warn_user(message, UserWarning)


def _refuse(message: str, code: str, node: str | None = None) -> None:
    raise GraphCompileError(message, code, node=node)


def _workflow(plan: GraphPlan) -> Workflow:
    """Return the workflow of the engine. Its edges are for drawings and the signature; the hook does the routing."""
    executors: dict[str, Executor] = {START: InputExecutor(START, plan.fields)}
    executors.update({name: node_executor(node, plan) for name, node in plan.nodes.items()})
    executors[END] = Marker(END)
    groups: list[EdgeGroup] = []
    drawn: set[tuple[str, str]] = set()  # one edge per pair, even if two conditions connect it
    for join in plan.joins:
        new = [source for source in join.sources if (source, join.target) not in drawn]
        if new:
            fan_in = len(new) > 1
            groups.append(FanInEdgeGroup(new, join.target) if fan_in else SingleEdgeGroup(new[0], join.target))
            drawn.update((source, join.target) for source in new)
    for source, target, label in _edges(plan):
        if target not in executors:  # a condition that may go anywhere: add no edge
            executors[target] = Marker(target)
        if (source, target) not in drawn:
            groups.append(SingleEdgeGroup(source, target, condition_name=label))
            drawn.add((source, target))
    builder = WorkflowBuilder(start_executor=executors[START], name=plan.name, output_from=[executors[END]])
    for executor in executors.values():
        builder.add_executor(executor)
    for group in groups:
        builder.add_edge_group(group)
    return builder.boundary_hook(GraphHook(plan)).build()


def _edges(plan: GraphPlan) -> Iterator[tuple[str, str, str | None]]:
    """Yield source, target and label of the edges, and of the possible choices of tools and conditions."""
    joined = {source for join in plan.joins for source in join.sources}
    for name in plan.nodes:
        if not plan.edges.get(name) and name not in plan.conditions and name not in joined:
            yield name, END, None
    for source, targets in plan.edges.items():
        for target in targets:
            yield source, target, None
    for name, node in plan.nodes.items():
        for target in _handoffs_of(node):
            yield name, target, "handoff"
    yield from _choices(plan)


def _choices(plan: GraphPlan) -> Iterator[tuple[str, str, str]]:
    for source, conditions in plan.conditions.items():
        for condition in conditions:
            if condition.targets is None:
                yield source, f"dynamic: {condition.name}", condition.name
            results: dict[str, list[str]] = {}
            for result, target in (condition.path_map or {name: name for name in condition.targets or ()}).items():
                results.setdefault(target, []).append(str(result))
            for target, names in results.items():
                yield source, target, " or ".join(names)
