"""The steppers that are open: one for each name, and one for each workflow instance, which runs once at a time."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from agentbench.notebook.stepping.model.messages import StepperStatus

__all__ = ["close_older", "register"]

_OVER = (StepperStatus.DONE, StepperStatus.FAILED, StepperStatus.CANCELLED, StepperStatus.CLOSED)


class _Open(Protocol):
    @property
    def workflow(self) -> Any: ...

    @property
    def status(self) -> StepperStatus: ...

    def close(self) -> None: ...


_by_name: weakref.WeakValueDictionary[str, _Open] = weakref.WeakValueDictionary()
_by_workflow: weakref.WeakValueDictionary[int, _Open] = weakref.WeakValueDictionary()


def register(stepper: _Open, name: str | None) -> None:
    """Remember a stepper for as long as it is referenced elsewhere."""
    if name is not None:
        _by_name[name] = stepper
    _by_workflow[id(stepper.workflow)] = stepper


def close_older(workflow: Any, name: str | None) -> None:
    """Close the stepper of the same name, and one that still holds this workflow: its cell was run again."""
    same_name = _by_name.get(name) if name is not None else None
    if same_name is not None:
        same_name.close()
    holder = _by_workflow.get(id(workflow))
    if holder is not None and holder.workflow is workflow and holder.status not in _OVER:
        holder.close()
