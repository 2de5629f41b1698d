"""Pure: the buttons and menus of a stepper, and which of them can be used now."""

from __future__ import annotations

from dataclasses import dataclass

from agentbench.notebook.stepping.model.messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.text.phrases import count_text

__all__ = ["SLOW_SPEED", "Button", "MenuItem", "buttons_of", "more_menu_of", "run_menu_of"]

SLOW_SPEED = 1.0
"""Supersteps a second of a slow run, and checkpoints a second of a replay."""


@dataclass(frozen=True, slots=True)
class Button:
    """One control."""

    name: str
    label: str
    hint: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class MenuItem:
    """One line of a menu.

    Attributes:
        command: Its command; empty for a line between others.
        label: Its text.
        hint: Its tooltip.
        enabled: Whether it can be used now.
        key: The key that does the same.
    """

    command: str = ""
    label: str = ""
    hint: str = ""
    enabled: bool = True
    key: str = ""


#: In the order of the screen: name, label, tooltip.
_BUTTONS = (
    ("step", "Step", "Take one superstep (s)"),
    ("run", "Run", "Take supersteps to the end or the next question (r)"),
    ("pause", "Pause", "Stop after the superstep in flight; Run goes on (p)"),
    ("stop", "Stop", "End the run (.)"),
    ("back", "Back", "Show the checkpoint before; nothing is executed"),
    ("forward", "Forward", "Show the checkpoint after; nothing is executed"),
    ("fork", "Fork", "Go on here as a new run; nothing is executed yet, the old run stays (f)"),
    ("edit", "Edit", "Change values of the state; Step, Run or Fork applies them in a new run"),
)

_FROM_HERE = {
    "step": ("Step from here", "Take one superstep from this checkpoint, as a new run (s)"),
    "run": ("Run", "Run again from this checkpoint, as a new run (r)"),
}
_RETRY = ("Retry step", "Take the failed superstep again, from the last checkpoint (s)")


def buttons_of(model: StepperModel) -> tuple[Button, ...]:
    """The controls, in the order of the screen."""
    allowed = model.allowed
    return tuple(Button(name, *_words(model, name, label, hint), name in allowed) for name, label, hint in _BUTTONS)


def _words(model: StepperModel, name: str, label: str, hint: str) -> tuple[str, str]:
    if model.viewing is not None and name in _FROM_HERE:
        return _FROM_HERE[name]
    if name == "step" and model.status is StepperStatus.FAILED:
        return _RETRY
    return label, hint


def run_menu_of(model: StepperModel) -> tuple[MenuItem, ...]:
    """Ways to run; all of them off when Run is."""
    can_run = "run" in model.allowed
    again = "Run again from here" if model.viewing is not None else "Run"
    breaks = can_run and bool(model.breakpoints)
    speed = f"{SLOW_SPEED:g} superstep{'' if SLOW_SPEED == 1 else 's'} a second"
    return (
        MenuItem("run", f"{again} to the end", "Through all questions, waiting for their answers", can_run, "r"),
        MenuItem("run_request", f"{again} to the next request", "Until a person has to answer", can_run),
        MenuItem("run_breakpoint", f"{again} to the next breakpoint", "Until a breakpoint is reached", breaks),
        MenuItem("ask_steps", f"{again} for n supersteps …", "So many supersteps, or fewer if the run ends", can_run),
        MenuItem("run_slow", f"{again} slowly", f"At {speed}, to watch it", can_run),
    )


def more_menu_of(model: StepperModel) -> tuple[MenuItem, ...]:
    """The further commands; each is off while it is not allowed."""
    is_open = model.status is not StepperStatus.CLOSED
    from_here = "from here" if model.viewing is not None else "from the start"
    points = f"Breakpoints ({len(model.breakpoints)}) …" if model.breakpoints else "Breakpoints …"
    edits = count_text(len(model.edits), "staged edit")
    return (
        MenuItem(
            "show_again",
            f"Show again {from_here}",
            "Play the stored checkpoints, one after the other; nothing is executed",
            "show_again" in model.allowed,
        ),
        MenuItem(
            "live",
            "Show the present",
            "Leave the earlier checkpoint",
            model.viewing is not None and model.status not in IN_FLIGHT,
        ),
        MenuItem(),
        MenuItem("breakpoints", points, "See, add and remove places where the run pauses", is_open),
        MenuItem("break", "Breakpoint on the selected node", "Set it, or remove it", is_open, "b"),
        MenuItem("clear_breakpoints", "Remove all breakpoints", "", bool(model.breakpoints) and is_open),
        MenuItem(),
        MenuItem("see_edits", f"See {edits}" if model.edits else "See staged edits", "In the Diff tab", is_open),
        MenuItem("discard_edits", "Discard staged edits", "", bool(model.edits)),
        MenuItem(),
        MenuItem("help", "Keys", "What the keys do", key="?"),
    )
