"""Pure: the banner of a stepper, with the most urgent message and the next possible actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_name
from agentbench._text.redact import line_preview
from agentbench.notebook.history.log import deliveries_text, failures_of
from agentbench.notebook.stepping.model.messages import IN_FLIGHT, StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
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
        place, cancel = ("here", "Cancel") if line.viewed is None else (f"checkpoint {line.place}", "Keep viewing")
        changed = f" with {edits}" if model.edits else ""
        text = f"Continuing from {place}{changed} starts a new run; {run_name(model.facts.run_id)} does not change."
        return Banner("ask", text, actions=(("confirm", "Start a new run here"), ("cancel", cancel)))
    if model.playing is not None:
        return Banner("past", f"Replaying checkpoint {line.place}. Nothing is executed.", actions=(("live", "Stop"),))
    if line.viewed is None and not model.edits:
        return _of_present(model)
    parts = [] if line.viewed is None else [f"Viewing checkpoint {line.place} (superstep {line.viewed.iteration})."]
    actions = () if line.viewed is None else (("live", "Back to now"),)
    if model.edits:
        them = "it" if len(model.edits) == 1 else "them"
        parts.append(f"{edits}, not applied yet: Step, Run or Fork starts a new run with {them}.")
        actions = (("see_edits", f"See {them}"), ("discard_edits", "Discard"), *actions)
    else:
        parts.append("Nothing is executed; Step continues from here in a new run.")
    return Banner("past", " ".join(parts), actions=actions)


def _of_present(model: StepperModel) -> Banner:
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
            then = "Fork continues from its checkpoint in a new run."
        return Banner("note", f"The run was stopped. {then}")
    number = 0 if model.facts.superstep is None else model.facts.superstep + 1
    if model.status in IN_FLIGHT:
        text = "Pausing after this superstep." if model.pausing else f"Superstep {number} is running."
        return Banner("next", text)
    targets = [delivery.target for delivery in model.facts.planned]
    what = deliveries_text(targets) or "no executor gets a message"
    if targets and all(delivery.source == WORKFLOW_SOURCE for delivery in model.facts.planned):
        what = f"the input goes to {_names(targets)}"
    return Banner("next", f"{_hit_words(model)}Superstep {number} is next: {what}.")


def _names(executors: list[str]) -> str:
    return ", ".join(esc(executor, into="line", limit=_NAME_LIMIT) for executor in executors)


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
    return Banner(tone, f"{finished}. Output{more}: {esc(text, into='line')}{warned}", actions=actions)
