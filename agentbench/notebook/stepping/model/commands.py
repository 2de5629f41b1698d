"""Pure: the commands of a stepper, in one table for the model, the buttons and the keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentbench.notebook.stepping.model.messages import IN_FLIGHT, Instruction, StepperStatus

SLOW_SPEED = 1.0  # supersteps a second of a slow run, and checkpoints a second of a replay
_MOST_STEPS = 100_000
_S = StepperStatus
_AT_REST = frozenset({_S.READY, _S.PAUSED, _S.WAITING, _S.DONE, _S.FAILED, _S.CANCELLED})


class Control(NamedTuple):
    """A button or a menu item with its tooltip, `hint`; an item without a name is a separator."""

    name: str
    label: str
    hint: str
    enabled: bool
    key: str


@dataclass(frozen=True, slots=True)
class PanelCommand:
    """A command and its texts."""

    name: str
    label: str = ""
    hint: str = ""
    key: str = ""
    # The action, called with the model and the typed value; `None` if the page handles the command itself.
    act: Callable[[Any, Any], Instruction | None] | None = None
    # Statuses that allow the command (exceptions: `StepperModel.allowed`); `None`: `possible` decides.
    statuses: frozenset[StepperStatus] | None = None
    possible: Callable[[Any], object] | None = None
    # Label and hint while an earlier checkpoint is displayed, and after a failure.
    in_past: tuple[str, str] | None = None
    after_failure: tuple[str, str] | None = None

    def control(self, model: Any) -> Control:
        """Return the button or menu item for the current state of a `StepperModel`."""
        words = (self.label, self.hint)
        if self.in_past is not None and model.checkpoints.viewing is not None:
            words = self.in_past
        elif self.after_failure is not None and model.status is _S.FAILED:
            words = self.after_failure
        enabled = self.name in model.allowed if self.possible is None else bool(self.possible(model))
        return Control(self.name, *words, enabled, self.key)


def _can_run(model: Any) -> bool:
    return "run" in model.allowed


def _is_open(model: Any) -> bool:
    return model.status is not _S.CLOSED


def _run_steps(model: Any, count: object) -> Any:
    return model.step(count) if type(count) is int and 0 < count <= _MOST_STEPS else None


# fmt: off
BUTTONS = (
    PanelCommand("step", "Step", "Execute one superstep", "s",
        act=lambda model, _: model.step(),
        statuses=frozenset({_S.READY, _S.PAUSED, _S.FAILED}),
        in_past=("Step from here", "Execute one superstep from this checkpoint, in a new run"),
        after_failure=("Retry step", "Execute the failed superstep again, from the last checkpoint"),
    ),
    PanelCommand("run", "Run", "Run to the end or the next request", "r",
        act=lambda model, _: model.run(through=True),
        statuses=frozenset({_S.READY, _S.PAUSED}),
        in_past=("Run", "Run from this checkpoint, in a new run"),
    ),
    PanelCommand("pause", "Pause", "Pause after the current superstep; Run resumes", "p",
        act=lambda model, _: model.pause(),
        statuses=frozenset(IN_FLIGHT),
    ),
    PanelCommand("stop", "Stop", "End the run", ".", lambda m, _: m.stop(), IN_FLIGHT | {_S.PAUSED, _S.WAITING}),
    PanelCommand(
        "back", "Back", "Show the previous checkpoint; nothing is executed", "", lambda m, _: m.go_back(), _AT_REST
    ),
    PanelCommand("forward", "Forward", "Show the next checkpoint; nothing is executed",
        act=lambda model, _: model.go_forward(),
        statuses=frozenset(),
    ),
    PanelCommand("fork", "Fork", "Start a new run from here; nothing is executed yet, the old run is kept", "f",
        act=lambda model, _: model.branch(),
        statuses=_AT_REST,
    ),
    PanelCommand("edit", "Edit", "Change values of the state; Step, Run or Fork applies the edits in a new run",
        statuses=frozenset({_S.READY, _S.PAUSED, _S.FAILED}),
    ),
)

# fmt: on


def _way_to_run(
    name: str, how: str, hint: str, act: Any = None, possible: Any = _can_run, key: str = ""
) -> PanelCommand:
    in_past = (f"Run again from here {how}", hint)
    return PanelCommand(name, f"Run {how}", hint, key, act, possible=possible, in_past=in_past)


# fmt: off
RUN_MENU = (
    _way_to_run("run", "to the end", "At each request, wait for the answer and continue", key="r"),
    _way_to_run("run_request", "to the next request", "Pause when a person has to answer",
        act=lambda model, _: model.run(until="request"),
    ),
    _way_to_run("run_breakpoint", "to the next breakpoint", "Pause when a breakpoint is reached",
        act=lambda model, _: model.run(until="breakpoint", through=True),
        possible=lambda model: _can_run(model) and model.breakpoints.all,
    ),
    _way_to_run("ask_steps", "for n supersteps …", "Pause after a number of supersteps"),
    PanelCommand("step_inside", "Step inside a sub-workflow", "Execute one superstep of the sub-workflow only", "i",
        act=lambda model, _: model.step(inside=True),
        possible=lambda model: model.nests and "step" in model.allowed,
    ),
    _way_to_run("run_slow", "slowly", "Run 1 superstep per second",
        act=lambda model, _: model.run(speed=SLOW_SPEED, through=True),
    ),
)

MORE_MENU = (
    PanelCommand("show_again", "Replay from the start",
        "Show the stored checkpoints one after another; nothing is executed",
        act=lambda model, _: model.show_again(SLOW_SPEED),
        statuses=_AT_REST,
        in_past=("Replay from here", "Show the stored checkpoints from here; nothing is executed"),
    ),
    PanelCommand("live", "Back to now", "Show the current state of the run",
        act=lambda model, _: model.show_now(),
        possible=lambda model: model.checkpoints.viewing is not None and model.status not in IN_FLIGHT,
    ),
    PanelCommand(""),
    PanelCommand("breakpoints", "Breakpoints …", "List, add and remove breakpoints", possible=_is_open),
    PanelCommand("break", "Breakpoint on the selected node", "Set or remove the breakpoint", "b", possible=_is_open),
    PanelCommand("clear_breakpoints", "Remove all breakpoints",
        act=lambda model, _: model.clear(),
        possible=lambda model: _is_open(model) and model.breakpoints.all,
    ),
    PanelCommand(""),
    PanelCommand("see_edits", "See edits", "Show the edits in the Diff tab", possible=_is_open),
    PanelCommand("redo", "Redo with changed code",
        "Run again from the first superstep with changed code, on the recorded model calls, in a new run",
        act=lambda model, _: model.redo(),
        possible=lambda model: "fork" in model.allowed and model.redo_from is not None,
    ),
    PanelCommand("discard_edits", "Discard edits",
        act=lambda model, _: model.discard_edits(),
        possible=lambda model: model.edits,
    ),
    PanelCommand("save", "Save as a page …", "Download this run as one HTML file that works without a kernel",
        possible=lambda model: _is_open(model) and model.status not in IN_FLIGHT,
    ),
    PanelCommand("keep_as_test", "Keep as test", "Write a test that repeats this run and compares what it does",
        possible=lambda model: model.status in (_S.WAITING, _S.DONE, _S.FAILED),
    ),
    PanelCommand("help", "Keys", "List the keyboard shortcuts", "?", possible=lambda _: True),
)
# fmt: on

_ELSEWHERE = (
    PanelCommand("allow_call", act=lambda model, _: model.allow_calls("this")),
    PanelCommand("allow_calls", act=lambda model, _: model.allow_calls("all")),
    PanelCommand("see_output"),
    PanelCommand("run_steps", act=_run_steps),
    PanelCommand("confirm", act=lambda model, _: model.confirm()),
    PanelCommand("cancel", act=lambda model, _: model.decline()),
)

COMMANDS: dict[str, PanelCommand] = {
    command.name: command for command in (*_ELSEWHERE, *MORE_MENU, *RUN_MENU, *BUTTONS) if command.name
}
"""Every command by its name."""
