"""Pure: the request that each control of a page sends to a stepper's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentbench.notebook.stepping.model.controls import SLOW_SPEED
from agentbench.notebook.stepping.model.messages import (
    BackRequested,
    BranchRequested,
    BreakpointsCleared,
    EditsDiscarded,
    ForwardRequested,
    GotoRequested,
    LiveRequested,
    PauseRequested,
    RunRequested,
    ShowAgainRequested,
    StepRequested,
    Stimulus,
    StopRequested,
)
from agentbench.notebook.stepping.model.model import StepperModel

__all__ = ["TAB_COMMANDS", "stimulus_of"]

#: Commands that only open a tab.
TAB_COMMANDS = {"edit": "state", "see_edits": "diff"}

MOST_STEPS = 100_000


def stimulus_of(name: str, model: StepperModel, *, limit: int, value: object = None) -> Stimulus | None:
    """Return the request of a command; `None` for a command that requests nothing now, or is unknown.

    Args:
        name: Name of the command.
        model: The stepper.
        limit: Most supersteps of a run.
        value: The input typed with it.
    """
    if name == "run_steps":
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_STEPS
        return StepRequested(value) if is_count else None  # type: ignore[arg-type]  # it is an int then
    make = _STIMULI.get(name)
    return None if make is None else make(model, limit)


def _confirm(model: StepperModel, _limit: int) -> Stimulus | None:
    return None if model.confirming is None else replace(model.confirming, confirmed=True)


def _cancel(model: StepperModel, _limit: int) -> Stimulus | None:
    """Return a request for the displayed checkpoint, which takes the question away."""
    if model.confirming is None or model.displayed is None:
        return None
    return GotoRequested(model.past[model.displayed].info.checkpoint_id)


def _clear_breakpoints(model: StepperModel, _limit: int) -> Stimulus:
    return BreakpointsCleared(frozenset(each.id for each in model.breakpoints))


_STIMULI: dict[str, Callable[[StepperModel, int], Stimulus | None]] = {
    "step": lambda _, __: StepRequested(),
    "run": lambda _, limit: RunRequested(limit=limit, through=True),
    "run_request": lambda _, limit: RunRequested(limit=limit, until="request"),
    "run_breakpoint": lambda _, limit: RunRequested(limit=limit, until="breakpoint", through=True),
    "run_slow": lambda _, limit: RunRequested(limit=limit, speed=SLOW_SPEED, through=True),
    "pause": lambda _, __: PauseRequested(),
    "stop": lambda _, __: StopRequested(),
    "back": lambda _, __: BackRequested(),
    "forward": lambda _, __: ForwardRequested(),
    "live": lambda _, __: LiveRequested(),
    "show_again": lambda _, __: ShowAgainRequested(SLOW_SPEED),
    "fork": lambda _, __: BranchRequested(),
    "discard_edits": lambda _, __: EditsDiscarded(),
    "clear_breakpoints": _clear_breakpoints,
    "confirm": _confirm,
    "cancel": _cancel,
}
