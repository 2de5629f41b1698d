"""Pure: the complete content of a stepper's page, as texts and flags. Reads the model; independent of widgets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text, run_name
from agentbench._text.value_tree import Level, TreeRow
from agentbench.notebook.history.activity import Element
from agentbench.notebook.history.log import LogLine
from agentbench.notebook.stepping.model.break_places import Breakpoint
from agentbench.notebook.stepping.model.commands import BUTTONS, MORE_MENU, RUN_MENU, Control
from agentbench.notebook.stepping.model.messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepping.model.model import LOG_LINES, StepperModel
from agentbench.notebook.stepping.view.banner import Banner, banner_of
from agentbench.notebook.stepping.view.tabs import NO_CONTENT, TABS, TabContent
from agentbench.workflows.events.events import WorkflowEvent

_S = StepperStatus

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
"""A sign for each status, so that neither words nor colour alone carry the meaning."""

UNANSWERED = "⚠"
"""The sign of a finished run with unanswered requests."""

_STATUS_WORDS = {_S.WAITING: "waiting for an answer", _S.DONE: "finished"}
"""Texts where the constant's value is not plain English."""

_NAMED = 3  # maximum number of executors in the header

EditPlace = tuple[str | None, str]
"""The id of a checkpoint, and the path of a value in it that may be edited."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header line in its parts; `sign` belongs to the status."""

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
    """The complete content of a stepper's page at one time."""

    status: StepperStatus
    header: Header
    announcement: str
    """The change, for screen readers."""
    buttons: tuple[Control, ...]
    run_menu: tuple[Control, ...]
    more_menu: tuple[Control, ...]
    banner: Banner
    stops: tuple[tuple[str, str], ...]
    """Label and id of the checkpoints up to the current state, oldest first."""
    index: int | None
    """Index of the displayed checkpoint."""
    position: str
    """Text such as `checkpoint 4 of 7`."""
    scrubbing: bool
    """Whether another checkpoint may be displayed now."""
    breakpoints: tuple[tuple[str, str, bool], ...]
    """Id and text of each breakpoint, and whether the run pauses at it now."""
    states: dict[Element, str]
    badges: dict[str, str]
    requests: tuple[WorkflowEvent[Any], ...]
    """The open requests, oldest first; none at an earlier checkpoint."""
    supersteps: int
    """Number of executed supersteps."""
    log: tuple[LogLine, ...]
    """The newest lines."""
    log_total: int
    """Number of all lines, including dropped ones."""
    tab: str
    content: TabContent
    drafts: frozenset[EditPlace]
    """Places of values that were typed but not saved."""
    storage: str = ""
    """Storage with the checkpoints, if it outlives the kernel."""


def screen_of(
    model: StepperModel,
    *,
    tab: str = "state",
    content: TabContent = NO_CONTENT,
    drafts: Collection[EditPlace] = (),
    times: bool = True,
    older: Sequence[str] = (),
    storage: str = "",
) -> ScreenState:
    """Return the content of a stepper's page, with the content of the open tab.

    `times`: whether durations are included; `older`: executors whose code changed since the workflow was built;
    `storage`: the text of a storage that outlives the kernel.
    """
    header = _header(model, times=times, older=older)
    asks = model.checkpoints.viewing is None and model.status in (*IN_FLIGHT, _S.PAUSED, _S.WAITING)
    requests = tuple(model.facts.requests) if asks else ()
    return ScreenState(
        status=model.status,
        header=header,
        announcement=_announce(model, header),
        buttons=tuple(button.control(model) for button in BUTTONS),
        run_menu=tuple(command.control(model) for command in RUN_MENU),
        more_menu=tuple(command.control(model) for command in MORE_MENU),
        banner=banner_of(model, sum(place[0] == model.checkpoints.displayed_id for place in drafts)),
        stops=tuple(past.stop for past in model.checkpoints.past),
        index=model.checkpoints.displayed,
        position="no checkpoint" if model.checkpoints.displayed is None else f"checkpoint {model.checkpoints.place}",
        scrubbing=len(model.checkpoints.past) > 1 and model.status not in (*IN_FLIGHT, _S.CLOSED),
        breakpoints=tuple(_breakpoint(model, point) for point in model.breakpoints.all),
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
    figures += [f"{model.tokens:,} tokens"] if model.tokens else []
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
    return words if model.checkpoints.viewed is None else f"{words}, viewing checkpoint {model.checkpoints.place}"


def _names(executors: Sequence[str]) -> str:
    """Return the names of executors in one line, shortened if there are many."""
    names = ", ".join(esc(name, into="line", limit=32) for name in executors[:_NAMED])
    return names + (f" and {len(executors) - _NAMED} more" if len(executors) > _NAMED else "")


def _announce(model: StepperModel, header: Header) -> str:
    """Return the change as a text for screen readers."""
    if model.checkpoints.viewed is not None:
        return f"viewing checkpoint {model.checkpoints.place}"
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
    hit = model.breakpoints.hit
    return each.id, esc(text, into="line", limit=120), hit is not None and hit.id == each.id


Message = dict[str, Any]


def messages_of(screen: ScreenState) -> dict[str, Message]:
    """Return the complete message for each part of a new page."""
    return {"top": view_message(screen), "side": side_message(screen), "log": log_message(screen)}


def view_message(screen: ScreenState, stops_from: int = 0) -> Message:
    """Return header, controls and banner, and the checkpoints from index `stops_from`."""
    return {
        "kind": "view",
        "header": asdict(screen.header),
        "status": str(screen.status),
        "announcement": screen.announcement,
        "buttons": screen.buttons,
        "banner": asdict(screen.banner),
        "runMenu": screen.run_menu,
        "moreMenu": screen.more_menu,
        "breakpoints": screen.breakpoints,
        "stops": screen.stops[stops_from:],
        "stopsFrom": stops_from,
        "index": screen.index,
        "position": screen.position,
        "scrubbing": screen.scrubbing,
        "storage": screen.storage,
    }


def log_message(screen: ScreenState, newest: int = LOG_LINES) -> Message:
    """Return the newest lines of the log, and the last one that is not an executor's output."""
    return {
        "kind": "log",
        "lines": [(line.kind, line.text) for line in screen.log[-newest:]],
        "headline": next(((line.kind, line.text) for line in reversed(screen.log) if line.kind != "text"), None),
        "total": screen.log_total,
        "limit": LOG_LINES,
    }


def side_message(screen: ScreenState) -> Message:
    """Return the open tab, with the first level of its values."""
    content = screen.content
    return {
        "kind": "side",
        "tabs": TABS,
        "tab": screen.tab,
        "title": content.title,
        "facts": content.facts,
        "breaks": content.breaks,
        "changes": content.changes,
        "displays": content.displays,
        "stamp": content.stamp,
        "checkpoint": content.checkpoint_id,
        "level": level_rows(content.tree.level(), content, screen.drafts),
    }


def level_rows(level: Level, content: TabContent, drafts: Collection[EditPlace]) -> Message:
    """Return a level of values; each row ends with 0 if it cannot be edited, 1 if it can, and 2 if it has a draft."""

    def edits(row: TreeRow) -> int:
        return 0 if row.path is None else 2 if (content.checkpoint_id, row.path) in drafts else 1

    rows = [(row.name, row.kind, row.text, row.note, row.opens, row.cut, edits(row)) for row in level.rows]
    return {"rows": rows, "start": level.start, "more": level.more}
