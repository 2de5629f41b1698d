"""Which declared types fit along an edge, and what that means for a fan-in.

Answers are remembered per pair of type lists: graphs repeat the same few classes of executor many times.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import GenericAlias
from typing import Any

from agentbench._signatures import is_type_compatible
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, ResolvedFanInMode

__all__ = ["as_list_types", "list_types_fit", "resolve_fan_in_mode", "types_fit"]

_Types = tuple[Any, ...]


def types_fit(outputs: _Types, inputs: _Types) -> bool:
    """Tell whether at least one sent type may be given to one of the accepted types."""
    try:
        return _remembered_fit(outputs, inputs)
    except TypeError:  # a type that cannot be hashed, such as Literal[[1]]
        return _fit(outputs, inputs)


def list_types_fit(outputs: _Types, inputs: _Types) -> bool:
    """Tell whether a list of at least one sent type may be given to one of the accepted types."""
    return types_fit(as_list_types(outputs), inputs)


def as_list_types(outputs: _Types) -> _Types:
    """Return the form in which a barrier delivers the sent types: `list[T]` for each of them."""
    return tuple([GenericAlias(list, (output,)) for output in outputs])


def resolve_fan_in_mode(group: FanInEdgeGroup, executors: Mapping[str, Executor]) -> ResolvedFanInMode | None:
    """Decide from declared types whether a fan-in hands on each message by itself or all of them in one list.

    A mode that was forced or decided before stands. Otherwise the target decides: it takes single messages, or lists
    of them. Where it takes both, the preference of the group holds; where it takes neither, too, and the type check
    will report it. Sources that send `Any` or declare nothing have no say.

    Returns:
        The mode, or `None` if nothing is known before the first message.
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
    known = _known_outputs(group, executors)
    if not known:
        return None
    one_by_one = all(types_fit(outputs, inputs) for outputs in known)
    together = all(list_types_fit(outputs, inputs) for outputs in known)
    if one_by_one is together:
        return preferred
    return "independent" if one_by_one else "barrier"


def _known_outputs(group: FanInEdgeGroup, executors: Mapping[str, Executor]) -> list[_Types]:
    """Return the distinct type lists that the sources send, without those that say nothing."""
    found: list[_Types] = []
    for source_id in group.source_executor_ids:
        source = executors.get(source_id)
        outputs = () if source is None else tuple(source.output_types)
        if outputs and Any not in outputs and outputs not in found:
            found.append(outputs)
    return found


def _fit(outputs: _Types, inputs: _Types) -> bool:
    return any(is_type_compatible(output, accepted) for output in outputs for accepted in inputs)


_remembered_fit = lru_cache(maxsize=2048)(_fit)
