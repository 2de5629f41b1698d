"""Which executors get the input of a run when nobody said so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentbench.exceptions import GraphConnectivityError
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edges import Edge, EdgeGroup, FanInEdgeGroup

__all__ = ["infer_starts"]


def infer_starts(
    executors: Mapping[str, Executor], edge_groups: Sequence[EdgeGroup], *, check_roots: bool = True
) -> tuple[str, ...]:
    """Find the entry nodes: the executors that no other one leads to.

    One root is the start. Without any (everything lies on cycles) it is the executor that was added first. Of several
    roots the first is *the* start; the others get the input too if each feeds a fan-in and hangs together with the
    start. Edges of an executor to itself do not count.

    Args:
        executors: By id, in the order of adding.
        edge_groups: All groups but the internal ones.
        check_roots: Refuse further roots that do not qualify. `False` ignores them instead.

    Returns:
        The ids, *the* start first.

    Raises:
        ValueError: There is no executor at all.
        GraphConnectivityError: A further root feeds no fan-in, or is not connected to the start.
    """
    if not executors:
        msg = "The workflow has no executors. Add one with add_executor(), connect() or start_executor=."
        raise ValueError(msg)
    edges = [edge for group in edge_groups for edge in group.edges]
    reached = {edge.target_id for edge in edges if edge.source_id != edge.target_id}
    roots = [executor_id for executor_id in executors if executor_id not in reached]
    if not roots:
        return (next(iter(executors)),)
    if len(roots) == 1:
        return (roots[0],)
    gathered = {
        source for group in edge_groups if isinstance(group, FanInEdgeGroup) for source in group.source_executor_ids
    }
    connected = _connected_to(roots[0], edges)
    legal = [root for root in roots[1:] if root in gathered and root in connected]
    if check_roots and len(legal) + 1 < len(roots):
        offenders = sorted(set(roots[1:]) - set(legal))
        msg = (
            f"No start executor was named. {roots[0]!r} is taken, because nothing leads to it, but nothing leads to "
            f"{offenders} either. Name the start with start_executor= or set_start(), and connect every other executor "
            "to it. Several executors get the input together only if each of them feeds a fan-in."
        )
        raise GraphConnectivityError(msg)
    return (roots[0], *legal)


def _connected_to(start: str, edges: Iterable[Edge]) -> set[str]:
    """Return all ids that hang together with `start`, whatever the direction of the edges."""
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.source_id, []).append(edge.target_id)
        neighbours.setdefault(edge.target_id, []).append(edge.source_id)
    seen, waiting = {start}, [start]
    while waiting:
        for neighbour in neighbours.get(waiting.pop(), ()):
            if neighbour not in seen:
                seen.add(neighbour)
                waiting.append(neighbour)
    return seen
