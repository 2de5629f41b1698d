"""The keyword arguments of a run: how they are passed, stored in shared state, and found by nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentbench._secrets import masked_fields, masked_repr
from agentbench.workflows.graph.graph import find_sub_workflow

if TYPE_CHECKING:
    from agentbench.workflows.executors.executor import Executor

logger = logging.getLogger("agentbench")

RunKwargsKind = Literal["function_invocation_kwargs", "client_kwargs"]

RUN_KWARGS_KINDS: tuple[RunKwargsKind, ...] = get_args(RunKwargsKind)

RUN_KWARGS = "_workflow_run_kwargs"
"""Reserved key of shared state that stores the arguments."""

GLOBAL = "__global__"
"""Key of the arguments that apply to every node."""

SINGLE = "__executors__"
"""Key of further arguments by executor id, which may be that of an executor in a nested workflow."""


@dataclass(frozen=True, kw_only=True)
class WorkflowInvocationKwargs:
    """Keyword arguments for all executors of a run and for single ones, in one object.

    It is a value of `function_invocation_kwargs` and `client_kwargs` of `Workflow.run`. An executor gets those for all
    together with its own, which win. Both reach the executors of nested workflows too, whether a workflow is in a
    `WorkflowExecutor` or an agent (`as_agent()`).

    Args:
        global_kwargs: The arguments for all executors.
        executor_kwargs: Further arguments, by executor id. Those of a nested workflow's node are for all executors
            inside it; the id of an executor inside it may be a key here, too.

    Raises:
        TypeError: One of them, or the arguments of an executor, are not a mapping.
        ValueError: By the run: neither the workflow nor one inside it has an executor with one of the ids.

    Example:
        >>> kwargs = WorkflowInvocationKwargs(
        ...     global_kwargs={"temperature": 0}, executor_kwargs={"critic": {"max_tokens": 200}}
        ... )
        >>> result = await workflow.run("An essay on tests", client_kwargs=kwargs)
    """

    global_kwargs: Mapping[str, Any] = field(default_factory=dict)
    executor_kwargs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    __repr__ = masked_fields

    def __post_init__(self) -> None:
        _require_mapping("global_kwargs", self.global_kwargs)
        _require_mapping("executor_kwargs", self.executor_kwargs)
        for key, kwargs in self.executor_kwargs.items():
            _require_mapping(f"executor_kwargs[{key!r}]", kwargs)


def _require_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        msg = f"{name} is {masked_repr(value)}; expected keyword arguments by name, such as {{'temperature': 0}}."
        raise TypeError(msg)


def stored_form(
    kwargs: Mapping[str, Any] | WorkflowInvocationKwargs,
    executors: Mapping[str, Executor],
    kind: str,
) -> dict[str, Any]:
    """Return arguments by executor id: a copy if a top-level key is an executor id, otherwise all under `GLOBAL`.

    An object with both kinds is stored under `GLOBAL` and `SINGLE`.
    """
    if isinstance(kwargs, WorkflowInvocationKwargs):
        known = _ids_of(executors) if kwargs.executor_kwargs else {}
        unknown = [key for key in kwargs.executor_kwargs if key not in known]
        if unknown:
            msg = f"executor_kwargs names {unknown}, but the executors of this workflow are {list(known)}."
            raise ValueError(msg)
        own = {key: dict(one) for key, one in kwargs.executor_kwargs.items()}
        return {GLOBAL: dict(kwargs.global_kwargs), SINGLE: own}
    _require_mapping(kind, kwargs)
    if any(key in executors for key in kwargs):
        return dict(kwargs)
    return {GLOBAL: dict(kwargs)}


def workflow_inside(executor: Executor) -> Any | None:
    """Return the workflow that an executor runs inside itself, also as its agent; or None."""
    return find_sub_workflow(executor) or find_sub_workflow(getattr(executor, "agent", executor))


def _ids_of(executors: Mapping[str, Executor]) -> dict[str, None]:
    """Return the ids of executors, and of those in workflows inside them."""
    ids, levels, seen = dict[str, None](), [executors], set[int]()
    for level in levels:
        ids.update(dict.fromkeys(level))
        found = map(workflow_inside, level.values())
        inner = [one for one in found if one is not None and id(one) not in seen]
        seen.update(map(id, inner))
        levels += [one.executors for one in inner]
    return ids


def kwargs_for(stored: Mapping[str, Any] | None, executor_id: str, kind: RunKwargsKind) -> dict[str, Any] | None:
    """Return the arguments for one node: its own (even if empty), or else the global ones, or else None."""
    by_executor = (stored or {}).get(kind)
    if by_executor is None:
        return None
    if SINGLE in by_executor:
        return {**by_executor[GLOBAL], **by_executor[SINGLE].get(executor_id, {})}
    kwargs = by_executor[executor_id] if executor_id in by_executor else by_executor.get(GLOBAL)
    if kwargs is not None and not isinstance(kwargs, dict):
        logger.warning("%s for executor %r is %r, not a dict; it is ignored.", kind, executor_id, type(kwargs).__name__)
        return None
    return kwargs


def kwargs_inside(
    stored: Mapping[str, Any] | None, executor_id: str, kind: RunKwargsKind, executors: Mapping[str, Executor]
) -> Mapping[str, Any] | WorkflowInvocationKwargs | None:
    """Return the arguments for a run of the nested workflow of one node, which has these executors."""
    by_executor = (stored or {}).get(kind) or {}
    if SINGLE not in by_executor:
        return kwargs_for(stored, executor_id, kind)
    single: Mapping[str, Any] = by_executor[SINGLE]
    ids, own = _ids_of(executors), single.get(executor_id, {})
    inner = {key: one for key, one in own.items() if key in executors and isinstance(one, Mapping)}
    return WorkflowInvocationKwargs(
        global_kwargs={**by_executor[GLOBAL], **{key: one for key, one in own.items() if key not in inner}},
        executor_kwargs={**{key: one for key, one in single.items() if key in ids}, **inner},
    )


def all_kwargs_inside(
    stored: Mapping[str, Any] | None, executor_id: str, executors: Mapping[str, Executor]
) -> dict[str, Mapping[str, Any] | WorkflowInvocationKwargs | None]:
    """Return `kwargs_inside` of every kind."""
    return {kind: kwargs_inside(stored, executor_id, kind, executors) for kind in RUN_KWARGS_KINDS}
