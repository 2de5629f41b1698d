"""The arguments of a stepper and of its calls, checked once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

from agentbench import _bridge
from agentbench.notebook.runtime import settings

__all__ = ["Layout", "Loop", "Options", "check_count", "check_speed", "check_until", "kernel_loop"]

Layout = Literal["auto", "wide", "stacked", "graph", "minimal"]
Loop = Literal["engine", "kernel"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a stepper that do not depend on the workflow; `stepper` documents them."""

    name: str | None
    layout: Layout
    height: int
    loop: asyncio.AbstractEventLoop | None
    limit: int
    autosave: bool
    shows_itself: bool = True  # not for forks: a loop over many of them would fill the cell with panels

    def __post_init__(self) -> None:
        """Check the values that a caller may mistype."""
        check_count(self.limit, "max_supersteps", "1 or more")
        if self.layout not in get_args(Layout):
            msg = f"layout={self.layout!r} is not possible. Choose one of {', '.join(get_args(Layout))}."
            raise ValueError(msg)


def check_count(count: Any, name: str, expected: str) -> int:
    """Return the count `name` as an `int`; `ValueError` if it is no whole number above 0."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        msg = f"{name}={count!r} is not possible. Expected {expected}."
        raise ValueError(msg)
    return int(count)


def check_speed(speed: float, what: str) -> float:
    """Return a speed; `ValueError` if it is not above 0."""
    if not speed > 0:
        msg = f"speed={speed!r} is not possible. Expected {what} a second, above 0."
        raise ValueError(msg)
    return speed


def check_until(until: Any) -> Any:
    """Return the `Until` of a run; `ValueError` if `Stepper.run` does not take it."""
    is_number = type(until) is int and until >= 0
    if until is None or is_number or until in ("request", "breakpoint") or callable(until):
        return until
    msg = (
        f"until={until!r} is not possible. Expected the number of a superstep, 'request', 'breakpoint', a "
        "function of a report, or None."
    )
    raise ValueError(msg)


def kernel_loop(wanted: str | None) -> asyncio.AbstractEventLoop | None:
    """Return the loop that the runs are bound to, `None` for the engine thread's."""
    if wanted is None:
        wanted = "kernel" if settings.current().loop == "kernel" else "engine"
    if wanted not in get_args(Loop):
        msg = f"loop={wanted!r} is not possible. Choose 'engine' or 'kernel'."
        raise ValueError(msg)
    if wanted == "engine" and _bridge.threads_available():
        return None
    return asyncio.get_running_loop()
