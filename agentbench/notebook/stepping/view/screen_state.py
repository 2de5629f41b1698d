"""Pure: everything that a page displays of a stepper, as texts and flags. Reads the model, knows no widget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.notebook.history.activity import Element
from agentbench.notebook.history.log import LogLine
from agentbench.notebook.stepping.model.commands import BUTTONS, MORE_MENU, RUN_MENU, Control
from agentbench.notebook.stepping.model.messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.banner import Banner, banner_of
from agentbench.notebook.stepping.view.tabs import NO_CONTENT, Content
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, duration_text, run_name
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.break_places import Breakpoint

__all__ = ["SIGNS", "UNANSWERED", "EditPlace", "Header", "ScreenState", "screen_of"]

_S = StepperStatus

#: A second sign beside each status word, as the graph has one beside each colour.
SIGNS: dict[StepperStatus, str] = {
    _S.READY: "○",
    _S.STEPPING: "▶",
    _S.RUNNING: "▶",
    _S.PAUSED: "●",
    _S.WAITING: "‖",
    _S.DONE: "✓",
    _S.FAILED: "✗",
    _S.CANCELLED: "■",
    _S.CLOSED: "□",
}

#: The sign of a finished run with questions that nobody answered.
UNANSWERED = "⚠"

#: Where the constant is not a person's word.
_STATUS_WORDS = {_S.WAITING: "waiting for an answer", _S.DONE: "finished"}

_NAMED = 3  # executors in the header

#: The id of a checkpoint, and the path of a value in it that may be edited.
EditPlace = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class Header:
    """The one line above everything, in its parts; `sign` is the second sign of the status."""

    name: str
    run: str
    superstep: str
    sign: str
    status: str
    figures: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The header as one line of text."""
        parts = (self.name, self.run, self.superstep, f"{self.sign} {self.status}", *self.figures)
        return "  ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class ScreenState:
    """Everything that a page displays of a stepper, at one time."""

    status: StepperStatus
    header: Header
    announcement: str  # the change, for screen readers
    buttons: tuple[Control, ...]
    run_menu: tuple[Control, ...]
    more_menu: tuple[Control, ...]
    banner: Banner
    stops: tuple[tuple[str, str], ...]  # label and id of the checkpoints that lead to now, oldest first
    index: int | None  # the displayed one of them
    position: str  # such as `checkpoint 4 of 7`
    scrubbing: bool  # whether another checkpoint may be displayed now
    breakpoints: tuple[tuple[str, str, bool], ...]  # id, text, and whether the run pauses at it now
    states: dict[Element, str]
    badges: dict[str, str]
    requests: tuple[WorkflowEvent[Any], ...]  # the open ones, oldest first; none at an earlier checkpoint
    supersteps: int  # how many were taken
    log: tuple[LogLine, ...]  # the newest lines
    log_total: int  # how many lines were ever written
    tab: str
    content: Content
    drafts: frozenset[EditPlace]  # where values were typed and not saved yet
    storage: str = ""  # the one that keeps the checkpoints when the kernel is gone


def screen_of(
    model: StepperModel,
    *,
    tab: str = "state",
    content: Content = NO_CONTENT,
    drafts: Collection[EditPlace] = (),
    times: bool = True,
    older: Sequence[str] = (),
    storage: str = "",
) -> ScreenState:
    """Return what a page displays of a model, with the content of the open tab.

    `times`: whether durations are included; `older`: the executors whose code changed since the workflow was built;
    `storage`: the text of a storage that outlives the kernel.
    """
    header = _header(model, times=times, older=older)
    asks = model.line.viewing is None and model.status in (*IN_FLIGHT, _S.PAUSED, _S.WAITING)
    requests = tuple(model.facts.requests) if asks else ()
    return ScreenState(
        status=model.status,
        header=header,
        announcement=_announce(model, header),
        buttons=tuple(each.control(model) for each in BUTTONS),
        run_menu=tuple(each.control(model) for each in RUN_MENU),
        more_menu=tuple(each.control(model) for each in MORE_MENU),
        banner=banner_of(model, sum(place[0] == model.line.displayed_id for place in drafts)),
        stops=tuple(past.stop for past in model.line.past),
        index=model.line.displayed,
        position="no checkpoint" if model.line.displayed is None else f"checkpoint {model.line.place}",
        scrubbing=len(model.line.past) > 1 and model.status not in (*IN_FLIGHT, _S.CLOSED),
        breakpoints=tuple(_breakpoint(model, each) for each in model.board.all),
        states=model.activity.whole(model.states),
        badges=model.activity.badges(),
        requests=requests,
        supersteps=len(model.reports),
        log=tuple(model.log),
        log_total=model.log_total,
        tab=tab,
        content=content,
        drafts=frozenset(drafts),
        storage=storage,
    )


def _header(model: StepperModel, *, times: bool, older: Sequence[str]) -> Header:
    facts = model.facts
    figures = [f"older code: {_names(older)}"] if older else []
    figures += [duration_text(model.elapsed_s)] if times and model.elapsed_s else []
    figures += [f"{model.tokens:,} tok"] if model.tokens else []
    return Header(
        name=esc(model.name, into="line", limit=60),
        run=run_name(facts.run_id) if facts.run_id else "",
        superstep=model.superstep_text,
        sign=UNANSWERED if model.status is _S.DONE and model.record.unanswered else SIGNS[model.status],
        status=_status_words(model),
        figures=tuple(figures),
    )


def _status_words(model: StepperModel) -> str:
    status = model.status
    words = _STATUS_WORDS.get(status, str(status))
    if status is _S.DONE and model.record.unanswered:
        words += f", {count_text(model.record.unanswered, 'question')} unanswered"
    if status in IN_FLIGHT:
        running = model.activity.running
        if running:
            words += f": {_names(running)}"
        if model.pausing:
            words += ", pausing after this superstep"
        if model.stop_wanted:
            words += ", stopping"
    elif status is _S.PAUSED and model.facts.pause_reason:
        words += f" ({esc(model.facts.pause_reason.text, into='line', limit=80)})"
    return words if model.line.viewed is None else f"{words}, viewing checkpoint {model.line.place}"


def _names(executors: Sequence[str]) -> str:
    """Some executors, however many, in a line."""
    names = ", ".join(esc(name, into="line", limit=32) for name in executors[:_NAMED])
    return names + (f" and {len(executors) - _NAMED} more" if len(executors) > _NAMED else "")


def _announce(model: StepperModel, header: Header) -> str:
    """Text for screen readers: the change, not the whole screen."""
    if model.line.viewed is not None:
        return f"viewing checkpoint {model.line.place}"
    words = f"{header.superstep}, {header.status}"
    requests = model.facts.requests
    if model.status is _S.WAITING and requests:
        words += f", {count_text(len(requests), 'request')}"
    return words


_KIND_WORDS = {
    "before": "before {}",
    "superstep": "before {}",
    "message": "before {} is delivered",
    "state": "when {}",
    "failure": "at {}",
    "request": "at {}",
}


def _breakpoint(model: StepperModel, each: Breakpoint) -> tuple[str, str, bool]:
    text = _KIND_WORDS.get(each.kind, "{}").format(each.text) + (", once" if each.once else "")
    return each.id, esc(text, into="line", limit=120), model.board.hit is not None and model.board.hit.id == each.id
