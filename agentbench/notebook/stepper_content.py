"""Pure: what the tabs beside a stepper's graph hold, as trees of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.notebook.step_log import counted
from agentbench.notebook.stepper_model import StepperModel
from agentbench.notebook.value_tree import Entry, ValueTree
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.report import StepReport

__all__ = ["TABS", "Content", "content_of"]

#: Name and label of each tab.
TABS = (("state", "State"), ("messages", "Messages"), ("events", "Events"), ("node", "Node"))

EVENTS_SHOWN = 200
_EXECUTOR_STATE = "_executor_state"


@dataclass(frozen=True, slots=True)
class Content:
    """One tab: a title and the values below it."""

    title: str
    tree: ValueTree


def content_of(
    tab: str,
    model: StepperModel,
    *,
    live_state: Mapping[str, Any],
    checkpoint: WorkflowCheckpoint | None,
    events: Sequence[WorkflowEvent[Any]],
    selected: str | None,
) -> Content:
    """What a tab shows now.

    Args:
        tab: Its name.
        model: The stepper.
        live_state: Shared state of the run as it stands.
        checkpoint: What the checkpoint being viewed holds, `None` in the present.
        events: All events of the run.
        selected: The selected executor.
    """
    if tab == "messages":
        return _messages(model, checkpoint)
    if tab == "events":
        return _events(model, events)
    if tab == "node":
        return _node(model, selected)
    return _state(model, live_state, checkpoint)


# --- state ------------------------------------------------------------------------------------------------------------


def _state(model: StepperModel, live: Mapping[str, Any], checkpoint: WorkflowCheckpoint | None) -> Content:
    whole = live if checkpoint is None else checkpoint.state
    changed = _changed_keys(model)
    entries = [
        Entry(str(key), value, "changed" if key in changed else "")
        for key, value in whole.items()
        if not str(key).startswith("_")
    ]
    own = whole.get(_EXECUTOR_STATE)
    if own:
        entries.append(Entry("executors", own, "their own"))
    where = _where(model)
    title = f"Shared state {where}" if entries else f"No shared state {where}"
    return Content(title, ValueTree(entries))


def _changed_keys(model: StepperModel) -> set[str]:
    """Keys that the superstep shown has written."""
    report = _shown_report(model)
    found: set[str] = set()
    for event in report.events if report is not None else ():
        if event.type == "state_updated" and isinstance(event.data, Mapping):
            found.update(event.data)
    return found


def _shown_report(model: StepperModel) -> StepReport | None:
    if model.viewing is None:
        return model.reports[-1] if model.reports else None
    wanted = model.past[model.viewing].info
    return next((r for r in reversed(model.reports) if r.checkpoint == wanted), None)


def _where(model: StepperModel) -> str:
    if model.viewing is not None:
        return f"after superstep {model.past[model.viewing].info.iteration}"
    return "before the first superstep" if model.facts.superstep is None else f"after superstep {model.facts.superstep}"


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(model: StepperModel, checkpoint: WorkflowCheckpoint | None) -> Content:
    if checkpoint is not None:
        entries = [
            Entry(f"{message.source_id} → {message.target_id or 'its targets'}", message.data)
            for queued in checkpoint.messages.values()
            for message in queued
        ]
    else:
        entries = [Entry(f"{planned.source} → {planned.target}", planned.message) for planned in model.facts.planned]
    waiting = f"{counted(len(entries), 'message')} for the next superstep" if entries else "No message waits"
    return Content(f"{waiting}, {_where(model)}", ValueTree(entries))


# --- events -----------------------------------------------------------------------------------------------------------


def _events(model: StepperModel, events: Sequence[WorkflowEvent[Any]]) -> Content:
    if model.viewing is not None:
        report = _shown_report(model)
        shown: Sequence[WorkflowEvent[Any]] = report.events if report is not None else ()
        title = f"{counted(len(shown), 'event')} of superstep {model.past[model.viewing].info.iteration}"
        return Content(title, ValueTree(_event_entries(shown)))
    shown = events[-EVENTS_SHOWN:]
    title = counted(len(events), "event")
    if len(shown) < len(events):
        title = f"the last {len(shown):,} of {title}"
    return Content(f"{title}, newest first", ValueTree(_event_entries(reversed(shown))))


def _event_entries(events: Iterable[WorkflowEvent[Any]]) -> list[Entry]:
    return [Entry(" ".join(_event_parts(event)), _event_value(event), event.source_id or "") for event in events]


def _event_value(event: WorkflowEvent[Any]) -> Any:
    if event.data is not None:
        return event.data
    return "" if event.details is None else event.details


def _event_parts(event: WorkflowEvent[Any]) -> Iterable[str]:
    if event.seq is not None:
        yield f"{event.seq}"
    yield event.type
    if event.iteration is not None:
        yield str(event.iteration)
    if event.state is not None:
        yield str(event.state)


# --- node -------------------------------------------------------------------------------------------------------------


def _node(model: StepperModel, selected: str | None) -> Content:
    if selected is None:
        return Content("Select a node of the graph to see it here", ValueTree())
    mine = [
        (report.superstep, event) for report in model.reports for event in report.events if event.source_id == selected
    ]
    entries = [
        Entry("state", model.moment.get(selected, "idle")),
        Entry("visits", model.activity.visits[selected]),
        *_latest("last input", mine, "executor_invoked"),
        *_latest("last sent", mine, "executor_completed"),
        *_latest("last request", mine, "request_info"),
        *_latest("last failure", mine, "executor_failed"),
    ]
    took = [
        event.duration_s for _, event in mine if event.type == "executor_completed" and event.duration_s is not None
    ]
    if took:
        entries.append(Entry("last took", f"{took[-1] * 1000:,.1f} ms"))
    entries.append(Entry("outputs", [event.data for _, event in mine if event.type == "output"]))
    waiting = [planned.message for planned in model.facts.planned if planned.target == selected]
    entries.append(Entry("waits for it", waiting))
    return Content(selected, ValueTree(entries))


def _latest(name: str, mine: Sequence[tuple[int, WorkflowEvent[Any]]], kind: str) -> list[Entry]:
    found = [(superstep, event) for superstep, event in mine if event.type == kind]
    if not found:
        return []
    superstep, event = found[-1]
    return [Entry(name, event.data, f"superstep {superstep}")]
