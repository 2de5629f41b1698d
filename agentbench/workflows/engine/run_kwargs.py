"""The keyword arguments of a run: how they are passed, stored in shared state, and found by nodes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentbench._secrets import masked_fields

logger = logging.getLogger("agentbench")

RunKwargsKind = Literal["function_invocation_kwargs", "client_kwargs"]

RUN_KWARGS = "_workflow_run_kwargs"
"""Reserved key of shared state that stores the arguments."""

GLOBAL = "__global__"
"""Key of the arguments that apply to every node."""


@dataclass(frozen=True, kw_only=True)
class WorkflowInvocationKwargs:
    """Keyword arguments for all executors of a run and for single ones, in one object.

    It is a value of `function_invocation_kwargs` and `client_kwargs` of `Workflow.run`. An executor gets those for all
    together with its own, which win.

    Args:
        global_kwargs: The arguments for all executors.
        executor_kwargs: Further arguments, by executor id.

    Raises:
        ValueError: By the run: the workflow has no executor with one of the ids.

    Example:
        >>> kwargs = WorkflowInvocationKwargs(
        ...     global_kwargs={"temperature": 0}, executor_kwargs={"critic": {"max_tokens": 200}}
        ... )
        >>> result = await workflow.run("An essay on tests", client_kwargs=kwargs)
    """

    global_kwargs: Mapping[str, Any] = field(default_factory=dict)
    executor_kwargs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    __repr__ = masked_fields


def stored_form(kwargs: Mapping[str, Any] | WorkflowInvocationKwargs, executors: Collection[str]) -> dict[str, Any]:
    """Return arguments by executor id: a copy if a top-level key is an executor id, otherwise all under `GLOBAL`."""
    if isinstance(kwargs, WorkflowInvocationKwargs):
        shared, own = dict(kwargs.global_kwargs), kwargs.executor_kwargs
        unknown = [key for key in own if key not in executors]
        if unknown:
            msg = f"executor_kwargs names {unknown}, but the executors of this workflow are {list(executors)}."
            raise ValueError(msg)
        return {GLOBAL: shared, **{key: {**shared, **one} for key, one in own.items()}}
    if any(key in executors for key in kwargs):
        return dict(kwargs)
    return {GLOBAL: dict(kwargs)}


def kwargs_for(stored: Mapping[str, Any] | None, executor_id: str, kind: RunKwargsKind) -> dict[str, Any] | None:
    """Return the arguments for one node: its own (even if empty), or else the global ones, or else None."""
    by_executor = (stored or {}).get(kind)
    if by_executor is None:
        return None
    kwargs = by_executor[executor_id] if executor_id in by_executor else by_executor.get(GLOBAL)
    if kwargs is not None and not isinstance(kwargs, dict):
        logger.warning("%s for executor %r is %r, not a dict; it is ignored.", kind, executor_id, type(kwargs).__name__)
        return None
    return kwargs
