"""The steppers that are open: one for each name, and one for each workflow instance, which runs once at a time."""

from __future__ import annotations

import weakref
from typing import Any

from agentbench.notebook.stepping.model.messages import StepperStatus

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
