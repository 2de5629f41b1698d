"""What a benchmark measures: one piece of work, done by agentbench and, where that makes sense, without it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

#: Awaits something on the loop of the benchmark.
Await = Callable[[Awaitable[Any]], Any]
#: Does the work once. It checks what it computes, so that nothing fast but wrong is measured.
Call = Callable[[], object]
#: Makes everything that is not measured, and returns the work.
Prepare = Callable[[Await], Call]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A piece of work.

    Attributes:
        name: Short name.
        what: What one unit of it is.
        unit: Of the figures: `us`, `ms` or `s` per unit of work.
        per_call: Units of work in one call.
        agentbench: The work, done by this library.
        bare: The same with nothing but what Python (and, for frames, pandas) brings; `None` where nothing compares.
        by_wall: The clock on the wall counts, not that of the processor: time passes asleep, or in other processes.
    """

    name: str
    what: str
    unit: str
    per_call: int
    agentbench: Prepare
    bare: Prepare | None = None
    by_wall: bool = False

    @property
    def halves(self) -> dict[str, Prepare]:
        """The prepared work by name; `bare` first, where there is one."""
        return (
            {"agentbench": self.agentbench} if self.bare is None else {"bare": self.bare, "agentbench": self.agentbench}
        )


@dataclass(frozen=True)
class Figures:
    """Seconds that one call took, per half, round by round."""

    seconds: dict[str, list[float]]

    @property
    def ratios(self) -> list[float]:
        """agentbench to bare, each taken inside one round; empty where there is no bare half."""
        return [
            ours / bare for bare, ours in zip(self.seconds.get("bare", ()), self.seconds["agentbench"], strict=False)
        ]


def awaited(make: Callable[[], Callable[[], Awaitable[object]]]) -> Prepare:
    """A half that is awaited: `make` prepares it and returns the coroutine function."""

    def prepare(wait: Await) -> Call:
        once = make()
        return lambda: wait(once())

    return prepare


def measure(workload: Workload, rounds: int) -> Figures:
    """Run the halves in turn, each once to warm up and then once a round; the order changes from round to round."""
    clock = time.perf_counter if workload.by_wall else time.process_time
    loop = asyncio.new_event_loop()
    try:
        calls = {half: prepare(loop.run_until_complete) for half, prepare in workload.halves.items()}
        for call in calls.values():
            call()
        seconds: dict[str, list[float]] = {half: [] for half in calls}
        for number in range(rounds):
            for half in list(calls) if number % 2 else reversed(calls):
                gc.collect()
                began = clock()
                calls[half]()
                seconds[half].append(clock() - began)
    finally:
        loop.close()
    return Figures(seconds)
