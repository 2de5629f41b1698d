"""Where runs inside nodes wait between their supersteps while the outer run is stepped through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

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
