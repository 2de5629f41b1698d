"""Pure: the complete content of a stepper's page, as texts, flags and messages. Reads the model; knows no widgets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text, run_name
from agentbench._text.redact import line_preview
from agentbench._text.value_tree import Level, TreeRow
from agentbench.notebook.history.activity import Element
from agentbench.notebook.history.log import LogLine, deliveries_text, failures_of
from agentbench.notebook.stepping.model.break_places import Breakpoint
from agentbench.notebook.stepping.model.commands import BUTTONS, MORE_MENU, RUN_MENU, Control
from agentbench.notebook.stepping.model.messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepping.model.model import LOG_LINES, StepperModel
from agentbench.notebook.stepping.view.tabs import NO_CONTENT, TABS, TabContent
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WORKFLOW_SOURCE

_S = StepperStatus

DETAILS_LIMIT = 20_000
_NOTE_LIMIT = 400
_NAME_LIMIT = 32

Tone = Literal["next", "past", "ask", "waiting", "error", "note", "done", "warn"]


@dataclass(frozen=True, slots=True)
class Banner:
    """The most urgent message. There is always one, so that the layout below it does not move."""

    tone: Tone
    text: str
    """The message and the next action, in one or two sentences."""
    details: str = ""
    """More text, folded, such as a traceback."""
    actions: tuple[tuple[str, str], ...] = ()
    """Command and label of buttons beside the text."""


def banner_of(model: StepperModel, drafts: int = 0) -> Banner:
    """Return the most urgent message: a decision to make, the checkpoint being viewed, or the status of the run.

    `drafts` is the number of values of the displayed checkpoint that were typed but not saved.
    """
    banner = _news(model)
    if not drafts:
        return banner
    what = "the value" if drafts == 1 else f"the {drafts} values"
    return replace(banner, text=f"{banner.text} Step, Run and Fork also use {what} typed here.")


def _news(model: StepperModel) -> Banner:
    line, edits = model.checkpoints, count_text(len(model.edits), "edit")
    if model.status is _S.CLOSED:
        return Banner("note", "This stepper is closed. Run its cell again to open a new one.")
    if model.confirming is not None:
        place, cancel = ("here", "Cancel") if line.viewed is None else (line.place, "Keep viewing")
        changed = f" with {edits}" if model.edits else ""
        text = f"Continuing from {place}{changed} starts a new run; {run_name(model.facts.run_id)} does not change."
        return Banner("ask", text, actions=(("confirm", "Start a new run here"), ("cancel", cancel)))
    if model.playing is not None:
        return Banner("past", f"Replaying {line.place}. Nothing is executed.", actions=(("live", "Stop"),))
    if line.viewed is None and not model.edits:
        return _of_present(model)
    parts: list[str] = []
    if line.viewed is not None:
        number = "" if line.at_input else f" (superstep {line.viewed.iteration})"
        parts.append(f"Viewing {line.place}{number}.")
    actions = () if line.viewed is None else (("live", "Back to now"),)
    if model.edits:
        them = "it" if len(model.edits) == 1 else "them"
        parts.append(f"{edits}, not applied yet: Step, Run or Fork starts a new run with {them}.")
        actions = (("see_edits", f"See {them}"), ("discard_edits", "Discard"), *actions)
    else:
        parts.append("Nothing is executed; Step continues from here in a new run.")
    return Banner("past", " ".join(parts), actions=actions)


def _of_present(model: StepperModel) -> Banner:
    call = model.facts.new_call
    if call is not None and model.status is _S.PAUSED:
        asker, prompt = (
            esc(call.executor_id or "a condition", into="line", limit=60),
            line_preview(call.prompt, _NOTE_LIMIT),
        )
        allow = (("allow_call", "This one"), ("allow_calls", "All that follow"), ("stop", "Stop"))
        text = f"Send a model request of {asker} that was not recorded? {prompt}"
        return Banner("ask", text, actions=allow)
    banner = _of_run(model)
    since = model.redo_from
    if since is None or model.status in IN_FLIGHT or "fork" not in model.allowed:
        return banner
    text = f"{_names(model.changed)} changed after superstep {since} ran. {banner.text}"
    return replace(banner, text=text, actions=(("redo", f"Redo from superstep {since}"), *banner.actions))


def _of_run(model: StepperModel) -> Banner:
    if model.status is _S.FAILED:
        return _failure(model)
    if model.note is not None and model.breakpoints.hit is None:
        return Banner("note", esc(model.note, into="line", limit=_NOTE_LIMIT))
    if model.status is _S.WAITING:
        askers = list(dict.fromkeys(request.source_executor_id for request in model.facts.requests))
        then = "the run continues automatically" if model.goes_on_after_answer else "press Step or Run"
        verb = "is" if len(askers) == 1 else "are"
        return Banner("waiting", f"{_names(askers)} {verb} waiting for an answer. After the answer, {then}.")
    if model.status is _S.DONE:
        return _result(model)
    if model.status is _S.CANCELLED:
        then = "It has no checkpoint; run its cell again to start over."
        if "back" in model.allowed:
            then = "Back shows its checkpoints; Step continues from one in a new run."
        elif "fork" in model.allowed:
            place = "starts from its input" if model.checkpoints.at_input else "continues from its checkpoint"
            then = f"Fork {place} in a new run."
        return Banner("note", f"The run was stopped. {then}")
    number = 0 if model.facts.superstep is None else model.facts.superstep + 1
    if model.status in IN_FLIGHT:
        text = "Pausing after this superstep." if model.pausing else f"Superstep {number} is running."
        lines = (esc(line, into="line", limit=_NOTE_LIMIT) for line in model.activity.progress)
        return Banner("next", f"{text} {' · '.join(lines)}".rstrip())
    targets = [delivery.target for delivery in model.facts.planned]
    what = deliveries_text(targets) or "no executor gets a message"
    if targets and all(delivery.source == WORKFLOW_SOURCE for delivery in model.facts.planned):
        what = f"the input goes to {_names(targets)}"
    return Banner("next", f"{_hit_words(model)}Superstep {number} is next: {what}.")


def _hit_words(model: StepperModel) -> str:
    reason, hit = model.facts.pause_reason, model.breakpoints.hit
    if hit is None:
        return ""
    if reason is not None and reason.error is not None:
        return f"{esc(reason.text, into='line', limit=200)}. "
    return f"Breakpoint: {esc(hit.text, into='line', limit=120)}. "


def _failure(model: StepperModel) -> Banner:
    error = model.facts.error
    failures = failures_of(model.reports[-1]) if model.reports else []
    where = ", ".join(dict.fromkeys(str(event.source_id) for event in failures))
    what = "the run failed" if error is None else f"{type(error).__name__}: {error}"
    text = f"{esc(where, into='line', limit=80)} failed: {what}" if where else what
    tracebacks = [event.details.traceback for event in failures if event.details is not None]
    details = next((text for text in tracebacks if text), "")
    return Banner(
        "error",
        f"{esc(text.rstrip('.'), into='line', limit=_NOTE_LIMIT)}. Retry step executes the superstep again.",
        details=esc(details, into="text", limit=DETAILS_LIMIT),
    )


def _result(model: StepperModel) -> Banner:
    outputs, warnings = model.record.outputs, model.record.warnings
    tone: Tone = "note" if warnings else "done"
    finished = "Finished"
    if model.record.unanswered:
        tone, finished = "warn", f"Finished, {count_text(model.record.unanswered, 'question')} unanswered"
    warned = ""
    if warnings:
        count = f" (the last of {len(warnings)})" if len(warnings) > 1 else ""
        warned = f" Warning{count}: {esc(warnings[-1], into='line', limit=_NOTE_LIMIT)}"
    if not outputs:
        return Banner(tone, f"{finished}, without an output.{warned}")
    last = outputs[-1][1].data
    has_display = hasattr(type(last), "_repr_html_")  # such as a table, whose one-line text is useless
    text = type(last).__name__ if has_display else line_preview(last, 200)
    more = f" (the last of {len(outputs)})" if len(outputs) > 1 else ""
    actions = (("see_output", "See output"),)
    before = ""
    if model.is_redo and model.before_redo is not None:
        before = f" Before the redo: {line_preview(model.before_redo, 200)}"
    return Banner(tone, f"{finished}. Output{more}: {esc(text, into='line')}{before}{warned}", actions=actions)


# ---- the screen


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
    listening: tuple[str, ...] = ()
    """The ids of the running nodes whose agents take messages."""


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
    banner = banner_of(model, sum(place[0] == model.checkpoints.displayed_id for place in drafts))
    offered = any(name == "redo" for name, _ in banner.actions)  # then the banner names the parts
    header = _header(model, times=times, older=[one for one in older if not offered or one not in model.changed])
    asks = model.checkpoints.viewing is None and model.status in (*IN_FLIGHT, _S.PAUSED, _S.WAITING)
    requests = tuple(model.facts.requests) if asks else ()
    return ScreenState(
        status=model.status,
        header=header,
        announcement=_announce(model, header),
        buttons=tuple(button.control(model) for button in BUTTONS),
        run_menu=tuple(command.control(model) for command in RUN_MENU),
        more_menu=tuple(command.control(model) for command in MORE_MENU),
        banner=banner,
        stops=tuple(past.stop for past in model.checkpoints.past),
        index=model.checkpoints.displayed,
        position="no checkpoint"
        if model.checkpoints.displayed is None
        else model.checkpoints.place.removeprefix("the "),
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
    return words if model.checkpoints.viewed is None else f"{words}, viewing {model.checkpoints.place}"


def _names(executors: Sequence[str]) -> str:
    """Return the names of executors in one line, shortened if there are many."""
    names = ", ".join(esc(name, into="line", limit=_NAME_LIMIT) for name in executors[:_NAMED])
    return names + (f" and {len(executors) - _NAMED} more" if len(executors) > _NAMED else "")


def _announce(model: StepperModel, header: Header) -> str:
    """Return the change as a text for screen readers."""
    if model.checkpoints.viewed is not None:
        return f"viewing {model.checkpoints.place}"
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


# ---- messages to the page


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
        "listening": [(each, esc(each, into="line", limit=_NAME_LIMIT)) for each in screen.listening],
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
