"""Pure: everything that a person can do with a stepper, in one table that the model, the buttons and the keys read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentbench.notebook.stepping.model.messages import IN_FLIGHT, Instruction, StepperStatus

__all__ = ["BUTTONS", "COMMANDS", "MORE_MENU", "RUN_MENU", "Command", "Control"]

SLOW_SPEED = 1.0  # supersteps a second of a slow run, and checkpoints a second of a replay
_MOST_STEPS = 100_000
_S = StepperStatus
_AT_REST = frozenset({_S.READY, _S.PAUSED, _S.WAITING, _S.DONE, _S.FAILED, _S.CANCELLED})


class Control(NamedTuple):
    """A button or a line of a menu, `hint` its tooltip; one without a name is a line between others."""

    name: str
    label: str
    hint: str
    enabled: bool
    key: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its words."""

    name: str
    label: str = ""
    hint: str = ""
    key: str = ""
    # What it does, with the model and what was typed; `None` for what the page does by itself.
    act: Callable[[Any, Any], Instruction | None] | None = None
    # In which statuses it is allowed, with the exceptions in `StepperModel.allowed`; for the others, whether it is.
    statuses: frozenset[StepperStatus] | None = None
    possible: Callable[[Any], object] | None = None
    # Label and hint while an earlier checkpoint is displayed, and after a failure.
    in_past: tuple[str, str] | None = None
    after_failure: tuple[str, str] | None = None

    def control(self, model: Any) -> Control:
        """Return its button or line for the present state of a `StepperModel`."""
        words = (self.label, self.hint)
        if self.in_past is not None and model.line.viewing is not None:
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
    Command("step", "Step", "Take one superstep", "s",
        act=lambda model, _: model.step(),
        statuses=frozenset({_S.READY, _S.PAUSED, _S.FAILED}),
        in_past=("Step from here", "Take one superstep from this checkpoint, as a new run"),
        after_failure=("Retry step", "Take the failed superstep again, from the last checkpoint"),
    ),
    Command("run", "Run", "Take supersteps to the end or the next question", "r",
        act=lambda model, _: model.run(through=True),
        statuses=frozenset({_S.READY, _S.PAUSED}),
        in_past=("Run", "Run again from this checkpoint, as a new run"),
    ),
    Command("pause", "Pause", "Pause after the superstep in flight; Run goes on", "p",
        act=lambda model, _: model.pause(),
        statuses=frozenset(IN_FLIGHT),
    ),
    Command("stop", "Stop", "End the run", ".", lambda m, _: m.stop(), IN_FLIGHT | {_S.PAUSED, _S.WAITING}),
    Command("back", "Back", "Show the checkpoint before; nothing is executed", "", lambda m, _: m.go_back(), _AT_REST),
    Command("forward", "Forward", "Show the checkpoint after; nothing is executed",
        act=lambda model, _: model.go_forward(),
        statuses=frozenset(),
    ),
    Command("fork", "Fork", "Go on here as a new run; nothing is executed yet, the old run stays", "f",
        act=lambda model, _: model.branch(),
        statuses=_AT_REST,
    ),
    Command("edit", "Edit", "Change values of the state; Step, Run or Fork applies them in a new run",
        statuses=frozenset({_S.READY, _S.PAUSED, _S.FAILED}),
    ),
)

# fmt: on


def _way_to_run(name: str, how: str, hint: str, act: Any = None, possible: Any = _can_run, key: str = "") -> Command:
    in_past = (f"Run again from here {how}", hint)
    return Command(name, f"Run {how}", hint, key, act, possible=possible, in_past=in_past)


# fmt: off
RUN_MENU = (
    _way_to_run("run", "to the end", "Through all questions, waiting for their answers", key="r"),
    _way_to_run("run_request", "to the next request", "Until a person has to answer",
        act=lambda model, _: model.run(until="request"),
    ),
    _way_to_run("run_breakpoint", "to the next breakpoint", "Until a breakpoint is reached",
        act=lambda model, _: model.run(until="breakpoint", through=True),
        possible=lambda model: _can_run(model) and model.board.all,
    ),
    _way_to_run("ask_steps", "for n supersteps …", "So many supersteps, or fewer if the run ends"),
    Command("step_inside", "Step inside a sub-workflow", "Take one superstep of it, amid the one around it", "i",
        act=lambda model, _: model.step(inside=True),
        possible=lambda model: model.nests and "step" in model.allowed,
    ),
    _way_to_run("run_slow", "slowly", "At 1 superstep a second, to watch it",
        act=lambda model, _: model.run(speed=SLOW_SPEED, through=True),
    ),
)

MORE_MENU = (
    Command("show_again", "Show again from the start",
        "Play the stored checkpoints, one after the other; nothing is executed",
        act=lambda model, _: model.show_again(SLOW_SPEED),
        statuses=_AT_REST,
        in_past=("Show again from here", "Play the stored checkpoints from here; nothing is executed"),
    ),
    Command("live", "Back to now", "Leave the earlier checkpoint",
        act=lambda model, _: model.show_now(),
        possible=lambda model: model.line.viewing is not None and model.status not in IN_FLIGHT,
    ),
    Command(""),
    Command("breakpoints", "Breakpoints …", "See, add and remove places where the run pauses", possible=_is_open),
    Command("break", "Breakpoint on the selected node", "Set it, or remove it", "b", possible=_is_open),
    Command("clear_breakpoints", "Remove all breakpoints",
        act=lambda model, _: model.clear(),
        possible=lambda model: _is_open(model) and model.board.all,
    ),
    Command(""),
    Command("see_edits", "See edits", "In the Diff tab", possible=_is_open),
    Command("discard_edits", "Discard edits",
        act=lambda model, _: model.discard_edits(),
        possible=lambda model: model.edits,
    ),
    Command("save", "Save as a page …", "Download these supersteps as one HTML file, which needs no kernel",
        possible=lambda model: _is_open(model) and model.status not in IN_FLIGHT,
    ),
    Command("help", "Keys", "What the keys do", "?", possible=lambda _: True),
)
# fmt: on

_ELSEWHERE = (
    Command("see_output"),
    Command("run_steps", act=_run_steps),
    Command("confirm", act=lambda model, _: model.confirm()),
    Command("cancel", act=lambda model, _: model.decline()),
)

#: Every command by its name.
COMMANDS: dict[str, Command] = {each.name: each for each in (*_ELSEWHERE, *MORE_MENU, *RUN_MENU, *BUTTONS) if each.name}
