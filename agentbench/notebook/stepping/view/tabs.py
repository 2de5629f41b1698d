"""Pure: what the tabs beside a stepper's graph hold, as trees of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.history.changes import MAX_CHANGES, ChangeRow, change_row, edit_rows
from agentbench.notebook.stepping.model.messages import StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.node_tab import Fact, node_entries, node_facts
from agentbench.notebook.stepping.view.outputs import Display, outputs_in
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.value_tree import Entry, ValueTree
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.report import StepReport

__all__ = ["NO_CONTENT", "TABS", "Breaks", "Content", "Sources", "content_of"]

#: Name and label of each tab.
TABS = (
    ("node", "Node"),
    ("state", "State"),
    ("messages", "Messages"),
    ("output", "Output"),
    ("events", "Events"),
    ("diff", "Diff"),
)

MAX_EVENTS = 200
_NAME_LIMIT = 120
_UNSAID = ("iteration_count",)  # the title says it
_EXECUTOR_STATE = "_executor_state"


@dataclass(frozen=True, slots=True)
class Breaks:
    """Whether a run pauses at a node. `enabled`: whether that can be changed now."""

    executor: str
    before: bool
    after: bool
    enabled: bool


@dataclass(frozen=True, slots=True)
class Content:
    """One tab.

    Attributes:
        title: The line above all.
        tree: Values.
        facts: Short lines of label and text.
        breaks: The breakpoints of the displayed node.
        changes: Groups of changes, each with a title.
        displays: Objects as they display themselves.
        checkpoint_id: The displayed checkpoint, to which edits apply. `None` before the first.
        stamp: Another number for each content of a stepper: a page names it in what it says of the content.
    """

    title: str
    tree: ValueTree
    facts: tuple[Fact, ...] = ()
    breaks: Breaks | None = None
    changes: tuple[tuple[str, tuple[ChangeRow, ...]], ...] = ()
    displays: tuple[Display, ...] = ()
    checkpoint_id: str | None = None
    stamp: int = 0


NO_CONTENT = Content("", ValueTree())


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the tabs, beside the model.

    Attributes:
        shape: The graph.
        live_state: Current shared state of the run.
        checkpoint: The checkpoint being viewed, `None` in the present.
        events: All events of the run.
        selected: The selected executor.
        difference: How the displayed checkpoint differs from the one before, `None` while that is not known.
        times: Whether durations are displayed.
    """

    shape: GraphShape
    live_state: Mapping[str, Any]
    checkpoint: WorkflowCheckpoint | None = None
    events: Sequence[WorkflowEvent[Any]] = ()
    selected: str | None = None
    difference: CheckpointDiff | None = None
    times: bool = True


def content_of(tab: str, model: StepperModel, sources: Sources) -> Content:
    """Return the content of a tab.

    Args:
        tab: Its name.
        model: The stepper.
        sources: Its other sources.
    """
    return replace(_tab(tab, model, sources), checkpoint_id=model.line.displayed_id)


def _tab(tab: str, model: StepperModel, sources: Sources) -> Content:
    if tab == "messages":
        return _messages(model, sources.checkpoint)
    if tab == "output":
        title, displays, entries = outputs_in(model)
        return Content(title, ValueTree(entries), displays=tuple(displays))
    if tab == "events":
        return _events(model, sources.events)
    if tab == "node":
        return _node(model, sources)
    if tab == "diff":
        return _diff(model, sources.difference)
    return _state(model, sources.live_state, sources.checkpoint)


# --- state ------------------------------------------------------------------------------------------------------------


def _state(model: StepperModel, live: Mapping[str, Any], checkpoint: WorkflowCheckpoint | None) -> Content:
    whole = live if checkpoint is None else checkpoint.state
    changed = _changed_keys(model)
    editable = "edit" in model.allowed
    entries = [
        Entry(str(key), value, "changed" if key in changed else "", path=str(key) if editable else None)
        for key, value in whole.items()
        if not str(key).startswith("_")
    ]
    own = whole.get(_EXECUTOR_STATE)
    if own:
        entries.append(Entry("executors", own, "their own"))
    where = _where(model)
    title = f"Shared state {where}" if entries else f"No shared state {where}"
    return Content(title, ValueTree(entries, staged=_staged_values(model)))


def _staged_values(model: StepperModel) -> dict[str, Any]:
    return {edit.path: edit.after for edit in model.edits}


def _changed_keys(model: StepperModel) -> set[str]:
    """Keys that the displayed superstep has written."""
    report = _displayed_report(model)
    found: set[str] = set()
    for event in report.events if report is not None else ():
        if event.type == "state_updated" and isinstance(event.data, Mapping):
            found.update(event.data)
    return found


def _displayed_report(model: StepperModel) -> StepReport | None:
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
        # In the order in which edits count them.
        waiting_there = [message for queued in checkpoint.messages.values() for message in queued]
        entries = [
            Entry(
                f"{message.source_id} → {message.target_id or 'its targets'}", message.data, path=f"messages[{place}]"
            )
            for place, message in enumerate(waiting_there)
        ]
    else:
        entries = [Entry(f"{planned.source} → {planned.target}", planned.message) for planned in model.facts.planned]
    waiting = f"{count_text(len(entries), 'message')} for the next superstep" if entries else "No messages"
    return Content(f"{waiting}, {_where(model)}", ValueTree(entries, staged=_staged_values(model)))


# --- events -----------------------------------------------------------------------------------------------------------


def _events(model: StepperModel, events: Sequence[WorkflowEvent[Any]]) -> Content:
    if model.viewing is not None:
        report = _displayed_report(model)
        listed: Sequence[WorkflowEvent[Any]] = report.events if report is not None else ()
        title = f"{count_text(len(listed), 'event')} of superstep {model.past[model.viewing].info.iteration}"
        return Content(title, ValueTree(_event_entries(listed)))
    listed = events[-MAX_EVENTS:]
    title = count_text(len(events), "event")
    if len(listed) < len(events):
        title = f"the last {len(listed):,} of {title}"
    return Content(f"{title}, newest first", ValueTree(_event_entries(reversed(listed))))


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


def _node(model: StepperModel, sources: Sources) -> Content:
    executor = sources.selected
    if executor is None:
        return Content("Select a node of the graph to see it here", ValueTree())
    facts = node_facts(model, sources.shape, executor, times=sources.times)
    points = [each for each in model.board.all if each.where == executor]
    breaks = Breaks(
        executor,
        before=any(each.kind == "before" for each in points),
        after=any(each.kind == "after" for each in points),
        enabled=model.status is not StepperStatus.CLOSED and executor in model.activity.nodes,
    )
    title = esc(executor, into="line", limit=_NAME_LIMIT)
    return Content(title, ValueTree(node_entries(model, executor)), facts, breaks)


# --- diff -------------------------------------------------------------------------------------------------------------


def _diff(model: StepperModel, difference: CheckpointDiff | None) -> Content:
    title, rows = _difference(model, difference)
    if not model.edits:
        return Content(title, ValueTree(), changes=(("", rows),) if rows else ())
    staged = f"{count_text(len(model.edits), 'edit')} staged, not applied yet"
    return Content(staged, ValueTree(), changes=(("", edit_rows(model.edits)), (title, rows)))


def _difference(model: StepperModel, difference: CheckpointDiff | None) -> tuple[str, tuple[ChangeRow, ...]]:
    """How the displayed checkpoint differs from the one before: in words, and row by row."""
    if model.displayed is None:
        return "No checkpoint yet, so nothing to compare", ()
    if model.displayed == 0:
        return f"{_label(model, 0)} is the first checkpoint: nothing is before it", ()
    title = f"{_label(model, model.displayed)} against {model.displayed}"
    if difference is None:
        return f"{title}: comparing …", ()
    changes = [change for change in difference if change.path not in _UNSAID]
    rows = tuple(change_row(change) for change in changes[:MAX_CHANGES])
    words = count_text(len(changes), "change") if changes else "no difference"
    return f"{title}: {f'the first {len(rows)} of ' if len(rows) < len(changes) else ''}{words}", rows


def _label(model: StepperModel, index: int) -> str:
    return f"Checkpoint {index + 1} ({model.past[index].label})"
