"""Where runs inside nodes wait between their supersteps while the outer run is stepped through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any, Literal

from agentbench._bridge import call_on


class InnerSteps:
    """The inner runs of one run that wait after a superstep; `wake` notifies the driver of the outer run."""

    __slots__ = ("_wake", "holds", "waiting")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.holds = False
        """Whether inner runs wait after each superstep; otherwise they run to their end."""
        self.waiting: dict[asyncio.Future[None], tuple[tuple[str, ...], int]] = {}
        """For each waiting run the ids of the nodes around it, outermost first, and the superstep that it has
        completed.
        """

    async def wait(self, path: tuple[str, ...], superstep: int) -> None:
        """Wait after a superstep of the run inside these nodes, if inner runs wait."""
        if not self.holds:
            return
        turn = asyncio.get_running_loop().create_future()
        self.waiting[turn] = path, superstep
        self._wake()
        try:
            await turn
        finally:
            self.waiting.pop(turn, None)

    def go_on(self, *, one: bool) -> None:
        """Let the run that has waited longest continue for one superstep, or let all of them run to their end."""
        self.holds = one
        for turn in list(self.waiting)[: 1 if one else None]:
            del self.waiting[turn]
            if not turn.get_loop().is_closed():
                call_on(turn.get_loop(), partial(_give, turn))


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


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
