"""Pure: what the controls of a page ask of a stepper's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentbench.notebook.stepper_controls import SLOW_SPEED
from agentbench.notebook.stepper_messages import (
    BackAsked,
    BranchAsked,
    BreakpointsCleared,
    EditsDiscarded,
    ForwardAsked,
    GotoAsked,
    LiveAsked,
    PauseAsked,
    RunAsked,
    ShowAgainAsked,
    StepAsked,
    Stimulus,
    StopAsked,
)
from agentbench.notebook.stepper_model import StepperModel

__all__ = ["TAB_COMMANDS", "stimulus_of"]

#: Commands that only open a tab.
TAB_COMMANDS = {"edit": "state", "see_edits": "diff"}

MOST_STEPS = 100_000


def stimulus_of(name: str, model: StepperModel, *, limit: int, value: object = None) -> Stimulus | None:
    """What a command asks of the model; `None` for a command that asks nothing now, or that there is not.

    Args:
        name: Of the command.
        model: The stepper.
        limit: Most supersteps of a run.
        value: What was typed with it.
    """
    if name == "run_steps":
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_STEPS
        return StepAsked(value) if is_count else None  # type: ignore[arg-type]  # it is an int then
    make = _STIMULI.get(name)
    return None if make is None else make(model, limit)


def _confirmed(model: StepperModel, _limit: int) -> Stimulus | None:
    return None if model.confirming is None else replace(model.confirming, confirmed=True)


def _cancelled(model: StepperModel, _limit: int) -> Stimulus | None:
    """To look at what is shown takes the question away."""
    if model.confirming is None or model.shown is None:
        return None
    return GotoAsked(model.past[model.shown].info.checkpoint_id)


def _cleared(model: StepperModel, _limit: int) -> Stimulus:
    return BreakpointsCleared(frozenset(each.id for each in model.breakpoints))


_STIMULI: dict[str, Callable[[StepperModel, int], Stimulus | None]] = {
    "step": lambda _, __: StepAsked(),
    "run": lambda _, limit: RunAsked(limit=limit, through=True),
    "run_request": lambda _, limit: RunAsked(limit=limit, until="request"),
    "run_breakpoint": lambda _, limit: RunAsked(limit=limit, until="breakpoint", through=True),
    "run_slow": lambda _, limit: RunAsked(limit=limit, speed=SLOW_SPEED, through=True),
    "pause": lambda _, __: PauseAsked(),
    "stop": lambda _, __: StopAsked(),
    "back": lambda _, __: BackAsked(),
    "forward": lambda _, __: ForwardAsked(),
    "live": lambda _, __: LiveAsked(),
    "show_again": lambda _, __: ShowAgainAsked(SLOW_SPEED),
    "fork": lambda _, __: BranchAsked(),
    "discard_edits": lambda _, __: EditsDiscarded(),
    "clear_breakpoints": _cleared,
    "confirm": _confirmed,
    "cancel": _cancelled,
}
