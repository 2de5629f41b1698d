"""Conditions that pause a run between supersteps."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from agentbench.workflows.events.listeners import Callbacks
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport

Predicate = Callable[[StepReport, list[PlannedDelivery]], "PauseReason | str | bool | None"]
"""Called after each boundary: a reason, text or True pauses, None and False continue."""


class Breakpoints(Callbacks[Predicate]):
    """The predicates of one run."""

    def __init__(self) -> None:
        super().__init__("breakpoint", "(report, plan)")

    def find_reason(self, report: StepReport, plan: list[PlannedDelivery]) -> PauseReason | None:
        """Return the first reason to pause; an error in a predicate, or an invalid result, is a reason too."""
        for predicate in self._all:
            try:
                reason = _as_reason(predicate(report, plan))
            except Exception as error:  # noqa: BLE001 - user code; its error pauses the run instead of ending it
                return PauseReason(f"a breakpoint raised {type(error).__name__}: {error}", "error", error)
            if reason is not None:
                return reason
        return None


def _as_reason(returned: object) -> PauseReason | None:
    """Interpret a predicate's result as a reason to pause, or None."""
    if returned is None or returned is False:
        return None
    if isinstance(returned, PauseReason):
        return returned
    if returned is True or isinstance(returned, str):
        return PauseReason("a breakpoint was reached" if returned is True else returned)
    if inspect.iscoroutine(returned):
        returned.close()  # otherwise Python also reports that it was never awaited
    msg = f"it returned {returned!r}; expected a PauseReason, text, a bool or None, from a plain function"
    raise TypeError(msg)
