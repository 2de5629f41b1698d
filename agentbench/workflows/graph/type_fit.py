"""Which declared types fit along an edge, and which fan-in mode follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Any

from agentbench._signatures import is_type_compatible
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, ResolvedFanInMode

_Types = tuple[Any, ...]


def types_fit(outputs: _Types, inputs: _Types) -> bool:
    """Return whether a value of at least one sent type can be passed as one of the accepted types."""
    return any(is_type_compatible(output, accepted) for output in outputs for accepted in inputs)


def as_list_types(outputs: _Types) -> _Types:
    """Return the types in which a barrier delivers the sent types: `list[T]` for each of them."""
    return tuple([GenericAlias(list, (output,)) for output in outputs])


def resolve_fan_in_mode(group: FanInEdgeGroup, executors: Mapping[str, Executor]) -> ResolvedFanInMode | None:
    """Return the mode that fits the declared types, or `None` if the first message has to decide.

    If the target takes both messages and lists, or neither, the preference of the group decides.
    """
    if group.resolved_mode is not None:
        return group.resolved_mode
    target = executors.get(group.target_id)
    inputs = () if target is None else tuple(target.input_types)
    if not inputs:
        return None
    preferred: ResolvedFanInMode = "barrier" if group.prefers_barrier else "independent"
    if Any in inputs or object in inputs:
        return preferred
    sent = [tuple(executors[source].output_types) for source in group.source_executor_ids if source in executors]
    declared = [outputs for outputs in sent if outputs and Any not in outputs]
    if not declared:
        return None
    one_by_one = all(types_fit(outputs, inputs) for outputs in declared)
    together = all(types_fit(as_list_types(outputs), inputs) for outputs in declared)
    if one_by_one is together:
        return preferred
    return "independent" if one_by_one else "barrier"


def with_fan_in_mode(group: EdgeGroup, executors: Mapping[str, Executor]) -> EdgeGroup:
    """Return a group with its fan-in mode set, if the declared types decide it; the argument is not changed."""
    if not isinstance(group, FanInEdgeGroup) or group.resolved_mode is not None:
        return group
    mode = resolve_fan_in_mode(group, executors)
    if mode is None:
        return group
    decided = group.clone(deep=False)
    decided.resolved_mode = mode
    return decided
