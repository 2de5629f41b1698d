"""The signature of a graph: the parts that must be equal for a checkpoint to fit, as a dict and as a hash.

It excludes workflow names, limits, designations, group ids, the order of edges and the code of handlers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._lazy import public_path
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup, resolve_fan_in_mode
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup

if TYPE_CHECKING:
    from agentbench.workflows.graph.boundary import BoundaryHook


def graph_signature(
    edge_groups: Iterable[EdgeGroup],
    executors: Mapping[str, Executor],
    start_executor_ids: Sequence[str],
    boundary_hook: BoundaryHook | None = None,
    *,
    within: tuple[object, ...] = (),
) -> dict[str, Any]:
    """Return the parts of a graph on which checkpoints depend, as JSON values, independent of the building order."""
    starts = sorted(start_executor_ids)
    groups = [_describe(group, executors) for group in edge_groups if not isinstance(group, InternalEdgeGroup)]
    signature: dict[str, Any] = {
        "start_executor": starts[0] if starts else None,
        "executors": {key: _identity(executor, within) for key, executor in sorted(executors.items())},
        "edge_groups": sorted(groups, key=_canonical),
    }
    if len(starts) > 1:
        signature["start_executors"] = starts
    boundary = None if boundary_hook is None else boundary_hook.signature()
    if boundary is not None:
        signature["boundary"] = boundary
    return signature


def signature_hash(signature: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a signature as 64 hex digits; equal signatures have equal hashes."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL, and only checkpoints and comparisons need a hash

    return hashlib.sha256(_canonical(signature).encode()).hexdigest()


def find_sub_workflow(executor: Executor) -> Any | None:
    """Return the workflow that an executor runs inside itself (its attribute `workflow`), or `None`."""
    inner = getattr(executor, "workflow", None)
    if hasattr(inner, "edge_groups") and hasattr(inner, "executors") and hasattr(inner, "start_executor_ids"):
        return inner
    return None


def _identity(executor: Executor, within: tuple[object, ...]) -> str | dict[str, Any]:
    executor_class = executor.__class__
    # The class's own key: a subclass is a different class, even if its base has a signature_key.
    identity = vars(executor_class).get("signature_key") or public_path(executor_class)
    identity = identity or f"{executor_class.__module__}.{executor_class.__name__}"
    inner = find_sub_workflow(executor)
    if inner is None:
        return identity
    if any(inner is outer for outer in within):
        return {"type": identity, "sub_workflow": "recursive"}
    hook = getattr(inner, "boundary_hook", None)
    nested = graph_signature(
        inner.edge_groups, inner.executors, inner.start_executor_ids, hook, within=(*within, inner)
    )
    return {"type": identity, "sub_workflow": nested}


def _describe(group: EdgeGroup, executors: Mapping[str, Executor]) -> dict[str, Any]:
    edges = [
        {"source": edge.source_id, "target": edge.target_id, "condition": edge.condition_name} for edge in group.edges
    ]
    description: dict[str, Any] = {
        "group_type": group.type,
        "sources": sorted(group.source_executor_ids),
        "targets": sorted(group.target_executor_ids),
        "edges": sorted(edges, key=lambda edge: (edge["source"], edge["target"], edge["condition"] or "")),
    }
    if isinstance(group, FanOutEdgeGroup):
        description["selection_func"] = group.selection_func_name
    if isinstance(group, SwitchCaseEdgeGroup):
        description["cases"] = [
            [case.target_id, case.condition_name] for case in group.cases if isinstance(case, SwitchCaseEdgeGroupCase)
        ]
        description["default"] = group.default.target_id
    if isinstance(group, FanInEdgeGroup):
        # Before modes existed, a fan-in always waited for all sources, so that mode is not recorded.
        mode = resolve_fan_in_mode(group, executors) or group.mode
        if mode != "barrier":
            description["mode"] = mode
    return description


def _canonical(value: Any) -> str:
    import json  # noqa: PLC0415 - only checkpoints need it; a first small run does without

    return json.dumps(value, sort_keys=True, separators=(",", ":"))
