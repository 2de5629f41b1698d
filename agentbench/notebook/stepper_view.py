"""Pure: what a stepper shows, as texts and flags. Reads the model, knows no widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agentbench.notebook.activity import Element
from agentbench.notebook.escaping import esc
from agentbench.notebook.redaction import line_preview
from agentbench.notebook.step_log import LogLine, counted, deliveries_text, failures_of, outputs_of, run_name
from agentbench.notebook.stepper_messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepper_model import StepperModel
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.message import WORKFLOW_SOURCE

__all__ = ["Banner", "Button", "Header", "Scrubber", "StepperView", "view_of"]

_S = StepperStatus

#: A second sign beside each status word, as the graph has one beside each colour.
SIGNS: dict[StepperStatus, str] = {
    _S.READY: "○",
    _S.STEPPING: "▶",
    _S.RUNNING: "▶",
    _S.PAUSED: "●",
    _S.WAITING: "⏸",
    _S.DONE: "✓",
    _S.FAILED: "✗",
    _S.CANCELLED: "■",
    _S.CLOSED: "□",
}

#: Buttons in the order of the screen: name, label, what a person is told of it.
_BUTTONS = (
    ("step", "Step", "Take one superstep (s)"),
    ("run", "Run", "Take supersteps to the end or the next question (r)"),
    ("pause", "Pause", "Stop after the superstep in flight; Run goes on (p)"),
    ("stop", "Stop", "End the run (.)"),
    ("back", "Back", "Show the checkpoint before; nothing is executed"),
    ("forward", "Forward", "Show the checkpoint after; nothing is executed"),
)

_AT_WORK = 3  # names in the header
DETAILS_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Header:
    """The one line above everything, in its parts.

    Attributes:
        name: The workflow.
        run: Id of the run.
        superstep: The last finished one, in words.
        sign: Second sign of the status.
        status: The status in words, with what is at work or why it rests.
        figures: Elapsed time and tokens, where known and shown.
    """

    name: str
    run: str
    superstep: str
    sign: str
    status: str
    figures: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """All of it as one line of text."""
        parts = (self.name, self.run, self.superstep, f"{self.sign} {self.status}", *self.figures)
        return "  ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Button:
    """One control."""

    name: str
    label: str
    hint: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Banner:
    """What a person should read before going on. There always is one, so that nothing below it moves.

    Attributes:
        tone: Which sort of news it is.
        text: The news and the next action, in one or two sentences.
        details: More to read behind a fold, such as a traceback.
        actions: (command, label) of buttons beside the text.
    """

    tone: Literal["next", "past", "ask", "waiting", "error", "note", "done"]
    text: str
    details: str = ""
    actions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scrubber:
    """The line of checkpoints that leads to now.

    Attributes:
        stops: (label, checkpoint id), oldest first.
        index: The one shown, `None` when there are none.
        position: `4/7`, or `0/0`.
        enabled: Whether another one may be shown now.
    """

    stops: tuple[tuple[str, str], ...]
    index: int | None
    position: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class StepperView:
    """Everything that a stepper shows at one moment."""

    status: StepperStatus
    header: Header
    announcement: str
    buttons: tuple[Button, ...]
    banner: Banner
    scrubber: Scrubber
    states: dict[Element, str]
    badges: dict[str, str]
    requests: tuple[WorkflowEvent[Any], ...]
    requests_title: str
    log: tuple[LogLine, ...]


def view_of(model: StepperModel, *, times: bool = True) -> StepperView:
    """Read the model.

    Args:
        model: The stepper's model.
        times: Whether durations are shown; not in notebooks whose outputs are compared.
    """
    facts = model.facts
    header = _header(model, times=times)
    waiting = facts.requests if model.status in (*IN_FLIGHT, _S.PAUSED, _S.WAITING) else ()
    return StepperView(
        status=model.status,
        header=header,
        announcement=_announcement(model, header),
        buttons=tuple(_button(model, *parts) for parts in _BUTTONS),
        banner=_banner(model),
        scrubber=_scrubber(model),
        states=model.activity.whole(model.moment),
        badges=model.activity.badges(),
        requests=tuple(waiting),
        requests_title=counted(len(waiting), "request") if waiting else "",
        log=tuple(model.log),
    )


# --- header -----------------------------------------------------------------------------------------------------------


def _header(model: StepperModel, *, times: bool) -> Header:
    facts = model.facts
    figures = []
    if times and model.elapsed_s:
        figures.append(_duration(model.elapsed_s))
    if model.tokens:
        figures.append(counted(model.tokens, "token"))
    return Header(
        name=esc(model.name, into="line", limit=60),
        run=run_name(facts.run_id) if facts.run_id else "",
        superstep="no superstep yet" if facts.superstep is None else f"superstep {facts.superstep}",
        sign=SIGNS[model.status],
        status=_status_words(model),
        figures=tuple(figures),
    )


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _status_words(model: StepperModel) -> str:
    status = model.status
    words = str(status)
    if status in IN_FLIGHT:
        running = model.activity.running
        if running:
            names = ", ".join(esc(name, into="line", limit=32) for name in running[:_AT_WORK])
            words += f": {names}" + (f" and {len(running) - _AT_WORK} more" if len(running) > _AT_WORK else "")
        if model.pausing:
            words += ", pausing after this superstep"
        if model.stop_wanted:
            words += ", stopping"
    elif status is _S.WAITING:
        words += " for a person"
    elif status is _S.PAUSED and model.facts.pause_reason:
        words += f" ({esc(model.facts.pause_reason.text, into='line', limit=80)})"
    return words if model.viewing is None else f"{words}, viewing {_place(model)}"


def _announcement(model: StepperModel, header: Header) -> str:
    """What a screen reader hears: the change, not the whole screen."""
    if model.viewing is not None:
        return f"viewing {model.viewing + 1} of {len(model.past)}"
    said = f"{header.superstep}, {header.status}"
    requests = model.facts.requests
    if model.status is _S.WAITING and requests:
        said += f", {counted(len(requests), 'request')}"
    return said


# --- controls ---------------------------------------------------------------------------------------------------------


def _button(model: StepperModel, name: str, label: str, hint: str) -> Button:
    if name == "step" and model.status is _S.FAILED and model.viewing is None:
        label, hint = "Retry step", "Take the failed superstep again, from the last checkpoint (s)"
    return Button(name, label, hint, name in model.allowed)


def _scrubber(model: StepperModel) -> Scrubber:
    stops = tuple((past.label, past.info.checkpoint_id) for past in model.past)
    position = f"{0 if model.shown is None else model.shown + 1}/{len(stops)}"
    enabled = len(stops) > 1 and model.status not in (*IN_FLIGHT, _S.CLOSED)
    return Scrubber(stops, model.shown, position, enabled)


# --- banner -----------------------------------------------------------------------------------------------------------


def _banner(model: StepperModel) -> Banner:
    """The most urgent news: what is being decided, then where one is, then how the run stands."""
    if model.status is _S.CLOSED:
        return Banner("note", "This stepper is closed. Run its cell again to build a new one.")
    if model.confirming is not None:
        return _confirm_banner(model)
    if model.viewing is not None:
        return _past_banner(model)
    return _present_banner(model)


def _place(model: StepperModel) -> str:
    return f"{(model.viewing or 0) + 1} of {len(model.past)}"


def _confirm_banner(model: StepperModel) -> Banner:
    text = (
        f"Going on from checkpoint {_place(model)} starts a new run there; {run_name(model.facts.run_id)} is kept as "
        "it is."
    )
    return Banner("ask", text, actions=(("confirm", "Start a new run here"), ("cancel", "Keep looking")))


def _past_banner(model: StepperModel) -> Banner:
    superstep = model.past[model.viewing or 0].info.iteration
    text = f"Viewing {_place(model)} (superstep {superstep}). Nothing is executed; Step goes on from here as a new run."
    return Banner("past", text, actions=(("live", "Show the present"),))


def _present_banner(model: StepperModel) -> Banner:
    if model.status is _S.FAILED:
        return _failure_banner(model)
    if model.note is not None:
        return Banner("note", esc(model.note, into="line", limit=400))
    if model.status is _S.WAITING:
        return _waiting_banner(model)
    if model.status is _S.DONE:
        return Banner("done", _result_text(model))
    if model.status is _S.CANCELLED:
        return Banner("note", "The run was stopped. Back shows its checkpoints; Step goes on from one as a new run.")
    return Banner("next", _next_text(model))


def _next_text(model: StepperModel) -> str:
    """What is being done, or what the next superstep will do."""
    at_rest = model.status not in IN_FLIGHT
    number = 0 if model.facts.superstep is None else model.facts.superstep + 1
    if not at_rest:
        return f"Superstep {number} is being taken."
    if not model.facts.planned:
        return f"Superstep {number} is next. No message waits for it."
    if all(delivery.source == WORKFLOW_SOURCE for delivery in model.facts.planned):
        starts = ", ".join(esc(delivery.target, into="line", limit=32) for delivery in model.facts.planned)
        return f"Superstep {number} is next: the input goes to {starts}."
    return f"Superstep {number} is next: {deliveries_text(delivery.target for delivery in model.facts.planned)}."


def _failure_banner(model: StepperModel) -> Banner:
    error = model.facts.error
    failures = failures_of(model.reports[-1]) if model.reports else []
    where = ", ".join(dict.fromkeys(str(event.source_id) for event in failures))
    what = "the run failed" if error is None else f"{type(error).__name__}: {error}"
    text = f"{esc(where, into='line', limit=80)} failed: {what}" if where else what
    then = "Retry step takes the superstep again." if "step" in model.allowed else "No checkpoint was saved before it."
    told = [event.details.traceback for event in failures if event.details is not None]
    details = next((text for text in told if text), "")
    return Banner(
        "error", f"{esc(text, into='line', limit=400)}. {then}", details=esc(details, into="text", limit=DETAILS_LIMIT)
    )


def _waiting_banner(model: StepperModel) -> Banner:
    who = ", ".join(dict.fromkeys(esc(r.source_executor_id, into="line", limit=32) for r in model.facts.requests))
    then = "the run goes on by itself" if model.going_through else "Step or Run goes on"
    return Banner("waiting", f"{who} asks for an answer, below. After it {then}.")


def _result_text(model: StepperModel) -> str:
    outputs = [event for report in model.reports for event in outputs_of(report)]
    if not outputs:
        return "Done, without an output."
    last = line_preview(outputs[-1].data, 200)
    more = f" (the last of {len(outputs)})" if len(outputs) > 1 else ""
    return f"Done. Output{more}: {esc(last, into='line')}"
