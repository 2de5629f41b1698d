"""Passes keyword arguments of a run to the nodes, which pass them to tools and model clients."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from typing import Any, Literal

logger = logging.getLogger("agentbench")

RunKwargsKind = Literal["function_invocation_kwargs", "client_kwargs"]

RUN_KWARGS = "_workflow_run_kwargs"
"""Reserved key of shared state that stores the arguments."""

GLOBAL = "__global__"
"""Key of the arguments that apply to every node."""


def stored_form(kwargs: Mapping[str, Any], executors: Container[str]) -> dict[str, Any]:
    """Return arguments by executor id: a copy if a top-level key is an executor id, otherwise all under `GLOBAL`."""
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
