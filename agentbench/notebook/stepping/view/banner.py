"""Pure: the banner of a stepper: the most urgent news, and the next possible actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from agentbench.notebook.history.log import deliveries_text, failures_of, outputs_of
from agentbench.notebook.stepping.model.messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, run_name
from agentbench.notebook.text.redact import line_preview
from agentbench.workflows.executors.message import WORKFLOW_SOURCE

__all__ = ["Banner", "banner_of", "place_words"]

_S = StepperStatus

DETAILS_LIMIT = 20_000
_NOTE_LIMIT = 400
_NAME_LIMIT = 32
_NAMED = 3

Tone = Literal["next", "past", "ask", "waiting", "error", "note", "done"]
Actions = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Banner:
    """The most urgent news. There always is one, so that nothing below it moves."""

    tone: Tone
    text: str  # the news and the next action, in one or two sentences
    details: str = ""  # more to read behind a fold, such as a traceback
    actions: Actions = ()  # command and label of buttons beside the text


def banner_of(model: StepperModel, drafts: int = 0) -> Banner:
    """Return the most urgent news: a decision to take, then the checkpoint being viewed, then the status of the run.

    `drafts` is how many values of the displayed checkpoint were typed and not saved yet.
    """
    banner = _news(model)
    if not drafts:
        return banner
    what = "a value that was" if drafts == 1 else f"{drafts} values that were"
    return replace(banner, text=f"{banner.text} Step, Run and Fork use {what} typed here too.")


def _news(model: StepperModel) -> Banner:
    if model.status is _S.CLOSED:
        return Banner("note", "This stepper is closed. Run its cell again to build a new one.")
    if model.confirming is not None:
        return _asking(model)
    if model.playing:
        return Banner("past", f"Showing again: {place_words(model)}. Nothing is executed.", actions=(("live", "Stop"),))
    if model.line.viewed is not None:
        return _of_past(model, model.line.viewed.iteration)
    return _of_present(model)


def place_words(model: StepperModel) -> str:
    """The position of the displayed checkpoint, such as `3 of 7`."""
    return f"{(model.line.displayed or 0) + 1} of {len(model.line.past)}"


def _edits_words(model: StepperModel) -> str:
    edits = count_text(len(model.edits), "edit")
    return f"{edits}, not applied yet: Step, Run or Fork starts a new run with {_them(model)}."


def _edit_actions(model: StepperModel) -> Actions:
    return ("see_edits", f"See {_them(model)}"), ("discard_edits", "Discard")


def _them(model: StepperModel) -> str:
    return "it" if len(model.edits) == 1 else "them"


def _asking(model: StepperModel) -> Banner:
    place, cancel = "from here", "Not yet"
    if model.line.viewing is not None:
        place, cancel = f"from checkpoint {place_words(model)}", "Keep looking"
    changed = f" with {count_text(len(model.edits), 'edit')}" if model.edits else ""
    text = f"Going on {place}{changed} starts a new run; {run_name(model.facts.run_id)} stays as it is."
    return Banner("ask", text, actions=(("confirm", "Start a new run here"), ("cancel", cancel)))


def _of_past(model: StepperModel, superstep: int) -> Banner:
    where = f"Viewing checkpoint {place_words(model)} (superstep {superstep})."
    live = ("live", "Back to now")
    if model.edits:
        return Banner("past", f"{where} {_edits_words(model)}", actions=(*_edit_actions(model), live))
    return Banner("past", f"{where} Nothing is executed; Step goes on from here as a new run.", actions=(live,))


def _of_present(model: StepperModel) -> Banner:
    if model.edits:
        return Banner("past", _edits_words(model), actions=_edit_actions(model))
    if model.status is _S.FAILED:
        return _failure(model)
    if model.note is not None and model.board.hit is None:
        return Banner("note", esc(model.note, into="line", limit=_NOTE_LIMIT))
    if model.status is _S.WAITING:
        return _waiting(model)
    if model.status is _S.DONE:
        return _result(model)
    if model.status is _S.CANCELLED:
        then = "It has no checkpoint; run its cell again to begin anew."
        if "back" in model.allowed:
            then = "Back shows its checkpoints; Step goes on from one as a new run."
        elif "fork" in model.allowed:
            then = "Fork goes on from its checkpoint as a new run."
        return Banner("note", f"The run was stopped. {then}")
    return Banner("next", f"{_hit_words(model)}{_next(model)}")


def _hit_words(model: StepperModel) -> str:
    if model.board.hit is None or model.status in IN_FLIGHT:
        return ""
    reason = model.facts.pause_reason
    if reason is not None and reason.error is not None:
        return f"{esc(reason.text, into='line', limit=200)}. "
    return f"Breakpoint: {esc(model.board.hit.text, into='line', limit=120)}. "


def _next(model: StepperModel) -> str:
    """The superstep in flight, or the deliveries of the next one."""
    number = 0 if model.facts.superstep is None else model.facts.superstep + 1
    if model.status in IN_FLIGHT:
        return "Pausing after this superstep." if model.pausing else f"Superstep {number} is running."
    if not model.facts.planned:
        return f"Superstep {number} is next: no executor gets a message."
    if all(delivery.source == WORKFLOW_SOURCE for delivery in model.facts.planned):
        starts = ", ".join(esc(delivery.target, into="line", limit=_NAME_LIMIT) for delivery in model.facts.planned)
        return f"Superstep {number} is next: the input goes to {starts}."
    targets = [delivery.target for delivery in model.facts.planned]
    names = list(dict.fromkeys(targets))
    if len(names) <= _NAMED:
        return f"Superstep {number} is next: {deliveries_text(targets)}."
    named = ", ".join(esc(name, into="line", limit=_NAME_LIMIT) for name in names[:_NAMED])
    more = f"and {len(names) - _NAMED:,} more get {count_text(len(targets), 'message')}"
    return f"Superstep {number} is next: {named} {more}."


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
        f"{esc(text.rstrip('.'), into='line', limit=_NOTE_LIMIT)}. Retry step takes the superstep again.",
        details=esc(details, into="text", limit=DETAILS_LIMIT),
    )


def _waiting(model: StepperModel) -> Banner:
    askers = dict.fromkeys(request.source_executor_id for request in model.facts.requests)
    who = ", ".join(esc(each, into="line", limit=_NAME_LIMIT) for each in askers)
    then = "the run goes on by itself" if model.goes_on_after_answer else "Step or Run goes on"
    verb = "is" if len(askers) == 1 else "are"
    return Banner("waiting", f"{who} {verb} waiting for an answer, below. Then {then}.")


def _result(model: StepperModel) -> Banner:
    outputs = [event for report in model.reports for event in outputs_of(report)]
    if not outputs:
        return Banner("done", "Finished, without an output.")
    last = outputs[-1].data
    has_display = hasattr(type(last), "_repr_html_")  # a table, say: its text in one line tells nothing
    text = type(last).__name__ if has_display else line_preview(last, 200)
    more = f" (the last of {len(outputs)})" if len(outputs) > 1 else ""
    actions = (("see_output", "See output"),)
    return Banner("done", f"Finished. Output{more}: {esc(text, into='line')}", actions=actions)
