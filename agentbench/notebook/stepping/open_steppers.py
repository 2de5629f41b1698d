"""The steppers that are open: one for each name, and one for each workflow instance, which runs once at a time."""

from __future__ import annotations

import weakref
from typing import Any

from agentbench.notebook.stepping.model.messages import StepperStatus

__all__ = ["close_older", "register"]

_OVER = (StepperStatus.DONE, StepperStatus.FAILED, StepperStatus.CANCELLED, StepperStatus.CLOSED)

#: By their names, and by the ids of their workflow instances.
_open: weakref.WeakValueDictionary[str | int, Any] = weakref.WeakValueDictionary()


def register(stepper: Any, name: str | None) -> None:
    """Remember a stepper for as long as it is referenced elsewhere."""
    _open[id(stepper.workflow)] = stepper
    if name is not None:
        _open[name] = stepper


def close_older(workflow: Any, name: str | None) -> None:
    """Close the stepper of the same name, and one that still holds this workflow: its cell was run again."""
    if name is not None and (same_name := _open.get(name)) is not None:
        same_name.close()
    holder = _open.get(id(workflow))
    if holder is not None and holder.workflow is workflow and holder.status not in _OVER:
        holder.close()
