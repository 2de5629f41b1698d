"""The options of a stepper, checked once."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass
from typing import Any, Literal, get_args

from agentbench import _bridge
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.model.messages import StepperStatus, check_count

Layout = Literal["auto", "wide", "stacked", "graph", "minimal"]
Loop = Literal["engine", "kernel"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a stepper that do not depend on the workflow; `stepper` documents them."""

    name: str | None
    layout: Layout
    height: int
    loop: asyncio.AbstractEventLoop | None
    limit: int
    autosave: bool
    shows_itself: bool = True
    """False for forks: a loop over many of them would fill the cell with panels."""

    def __post_init__(self) -> None:
        """Validate the options."""
        check_count(self.limit, "max_supersteps")
        if self.layout not in get_args(Layout):
            msg = f"layout={self.layout!r} is not possible. Choose one of {', '.join(get_args(Layout))}."
            raise ValueError(msg)


def kernel_loop(wanted: str | None) -> asyncio.AbstractEventLoop | None:
    """Return the event loop of the runs, `None` for the engine thread's loop."""
    if wanted is None:
        wanted = "kernel" if settings.current().loop == "kernel" else "engine"
    if wanted not in get_args(Loop):
        msg = f"loop={wanted!r} is not possible. Choose 'engine' or 'kernel'."
        raise ValueError(msg)
    if wanted == "engine" and _bridge.threads_available():
        return None
    return asyncio.get_running_loop()


_OVER = (StepperStatus.DONE, StepperStatus.FAILED, StepperStatus.CANCELLED, StepperStatus.CLOSED)

_open: weakref.WeakValueDictionary[str | int, Any] = weakref.WeakValueDictionary()
"""By name and by the id of the workflow instance; weak references, so that unused steppers disappear."""


def take_over(stepper: Any, name: str | None) -> None:
    """Close a stepper of the same name or workflow: its cell was run again."""
    holder, same_name = _open.get(id(stepper.workflow)), None if name is None else _open.get(name)
    if same_name is not None:
        same_name.close()
    if holder is not None and holder.workflow is stepper.workflow and holder.status not in _OVER:
        holder.close()
    _open[id(stepper.workflow)] = stepper
    if name is not None:
        _open[name] = stepper
