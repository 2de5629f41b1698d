"""Pure: the content of the tabs beside a stepper's graph, as trees of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text, state_text
from agentbench._text.value_tree import Entry, ValueTree
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.checkpoints.difference.changes import path_text
from agentbench.notebook.cards.conversation.display import rounds_html
from agentbench.notebook.cards.conversation.model import turns_of
from agentbench.notebook.cards.conversation.views import Transcript
from agentbench.notebook.history.activity import ElementStates, NodeRecord, sent_by
from agentbench.notebook.history.agent_turns import conversation_of
from agentbench.notebook.history.changes import MAX_CHANGES, ChangeRow, change_row, edit_rows
from agentbench.notebook.history.run_history import Superstep
from agentbench.notebook.history.usage import latency_of, model_of, sum_usages, usage_of
from agentbench.notebook.look.states import STATES
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.bundles import display_of
from agentbench.notebook.stepping.model.messages import StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.workflows.draw.shape import GraphShape
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import internal_source
from agentbench.workflows.run.step_report import StepReport

Display = tuple[int, str, str, str]
"""The number of values above it, a caption, a media type and its data as text (PNG in base 64)."""

ABOVE_FACTS = -1
"""In place of the number of values above it: it is above the facts of a node."""

_MOST_OUTPUTS = 20
_MOST_ROUNDS = 20


def outputs_in(model: StepperModel) -> tuple[str, tuple[Display, ...], list[Entry]]:
    """Return a title, the outputs that have a display of their own, and the others as values; the newest first."""
    outputs = model.displayed_record.outputs
    newest = [
        (f"{esc(event.source_id, into='line', limit=60)}, superstep {superstep}", event.data)
        for superstep, event in outputs[: -_MOST_OUTPUTS - 1 : -1]
    ]
    title = (
        count_text(len(outputs), "output") + (", newest first" if len(outputs) > 1 else "")
        if outputs
        else "No output yet"
    )
    return title, *split_displays(newest)


def split_displays(named: Iterable[tuple[str, Any]]) -> tuple[tuple[Display, ...], list[Entry]]:
    """Split named values into displays, for those that have one, and entries."""
    displays: list[Display] = []
    entries: list[Entry] = []
    for name, value in named:
        display = display_of(value)
        if display is None:
            entries.append(Entry(name, value))
        else:
            caption = f"{name}: {esc(type(value).__name__, into='line', limit=60)}"
            displays.append((len(entries), caption, *display))
    return tuple(displays), entries


# ---- one node


_NOTHING = "—"
_NAMED = 4

Fact = tuple[str, str]
"""A label and its text, such as `("visits", "2")`."""


def node_facts(
    model: StepperModel, shape: GraphShape, executor: str, states: ElementStates | None = None, *, times: bool
) -> tuple[Fact, ...]:
    """Return the facts about an executor in short lines; `times` includes durations."""
    record = model.displayed_record.nodes.get(executor, NodeRecord())
    last = record.last_call
    count = model.activity.visits[executor] if model.checkpoints.viewed is None else record.visits
    visits = f"{count:,}"
    facts = [
        ("kind", _kind(shape, executor)),
        ("now", STATES[(states or model.states).get(executor, "idle")].words),
        ("visits", visits if last is None else f"{visits}, the last in superstep {last.superstep}"),
        ("in", _count_types(last.messages if last else [])),
        ("out", _count_types(sent_by(last) if last else [])),
    ]
    if last is not None and last.attempts > 1:
        facts.append(("attempts", str(last.attempts)))
    if last is not None and last.workers and times:
        facts.append(("worker", esc(", ".join(last.workers), into="line", limit=60)))
    if last is not None and last.duration_ns is not None and times:
        facts.append(("duration", duration_text(last.duration_ns / 1e9)))
    facts += _agent_facts(record, times=times)
    written = ", ".join(esc(key, into="line", limit=40) for key in record.keys_written)
    facts.append(("state keys written", written or _NOTHING))
    return tuple(facts)


def _agent_facts(record: NodeRecord, *, times: bool) -> list[Fact]:
    """Return token usage and tool calls of an agent; empty if the executor does not run an agent."""
    events = record.usages
    if not events:
        return []
    used = sum_usages(usage_of(event, settings.current().prices) for event in events)
    facts = [("model", ", ".join(dict.fromkeys(esc(model_of(event), into="line", limit=60) for event in events)))]
    facts.append(("tokens", f"{used.tokens_in or 0:,} in, {used.tokens_out or 0:,} out"))
    if used.cost is not None:
        facts.append(("cost", f"{used.cost:,.6f}".rstrip("0").rstrip(".")))
    latency_ms = latency_of(events[-1])
    if times and latency_ms is not None:
        facts.append(("latency", f"{duration_text(latency_ms / 1e3)} in the last turn"))
    return [*facts, ("tool calls", f"{record.tool_calls:,}")] if record.tool_calls else facts


def node_displays(model: StepperModel, executor: str) -> list[Display]:
    """Return the rounds of an agent's loop, above the facts, and its conversation up to its last turn."""
    record = model.displayed_record.nodes.get(executor, NodeRecord())
    if record.last_turn is None:
        return []
    superstep = f"superstep {record.last_turn.superstep}"
    rounds = record.usages[-1].data.get("rounds", ()) if record.usages else ()
    shown = [(turns_of(one["messages"]), one["verdict"]) for one in rounds[-_MOST_ROUNDS:]]
    displays: list[Display] = []
    if shown:
        first = len(rounds) - len(shown) + 1
        caption = f"{count_text(len(rounds), 'round')}, {superstep}" + (f", the last {len(shown)}" * (first > 1))
        displays.append((ABOVE_FACTS, caption, "text/html", str(rounds_html(shown, first))))
    caption = f"conversation{' with the last round' if len(rounds) > 1 else ''}, {superstep}"
    html = Transcript(tuple(conversation_of(record.last_turn))).html
    return [*displays, (0, caption, "text/html", html)]


def node_entries(model: StepperModel, executor: str) -> list[Entry]:
    """Return the values behind the facts: messages in and out, requests, outputs and queued messages."""
    record = model.displayed_record.nodes.get(executor, NodeRecord())
    planned = model.facts.planned if model.checkpoints.viewed is None else ()
    waiting = [delivery.message for delivery in planned if delivery.target == executor]
    entries = [Entry("queued", waiting)] if waiting else []
    entries += [Entry(name, value, f"superstep {number}") for name, (number, value) in record.latest.items()]
    entries += [Entry("outputs", record.outputs)] if record.outputs else []
    return [*entries, *(Entry(f"inside, superstep {step.number}", _messages_in(step)) for step in record.inside)]


def _messages_in(step: Superstep) -> dict[str, dict[str, Any]]:
    """Return the messages that each executor of a sub-workflow received and sent."""
    messages = {
        call.executor: {"received": call.messages, "sent": sent_by(call), "failed": call.error}
        for call in step.calls.values()
    }
    return {name: {what: value for what, value in values.items() if value} for name, values in messages.items()}


def _kind(shape: GraphShape, executor: str) -> str:
    node = next((element for element in (*shape.nodes, *shape.frames) if element.id == executor), None)
    if node is None:
        return _NOTHING
    name = esc(node.type_name or "executor", into="line", limit=60)
    return f"{name} ({node.words})" if node.words else name


def _count_types(messages: Sequence[Any]) -> str:
    if not messages:
        return _NOTHING
    types = list(dict.fromkeys(esc(type(message).__name__, into="line", limit=40) for message in messages))
    named = ", ".join(types[:_NAMED]) + (" …" if len(types) > _NAMED else "")
    return f"{count_text(len(messages), 'message')} ({named})"


# ---- tabs


TABS = (
    ("node", "Node"),
    ("state", "State"),
    ("messages", "Messages"),
    ("output", "Output"),
    ("events", "Events"),
    ("diff", "Diff"),
)
"""Name and label of each tab."""

MAX_EVENTS = 200
_NAME_LIMIT = 120
_UNSAID = ("iteration_count",)  # already in the title
_BOUNDARIES = ("superstep_started", "superstep_completed", "checkpoint_saved")
_EXECUTOR_STATE = "_executor_state"


@dataclass(frozen=True, slots=True)
class TabContent:
    """The content of one tab, under a title."""

    title: str
    tree: ValueTree = field(default_factory=ValueTree)
    facts: tuple[Fact, ...] = ()
    breaks: Mapping[str, Any] | None = None
    """Whether a run pauses before and after the node, in the page's format."""
    changes: tuple[tuple[str, tuple[ChangeRow, ...]], ...] = ()
    """The changes in groups, each with a title."""
    displays: tuple[Display, ...] = ()
    """The objects' own displays."""
    checkpoint_id: str | None = None
    """The displayed checkpoint, to which edits apply."""
    stamp: int = 0
    """Identifies this content in messages from the page."""


NO_CONTENT = TabContent("")


@dataclass(frozen=True, slots=True)
class Sources:
    """The data of the tabs in addition to the model."""

    shape: GraphShape
    live_state: Mapping[str, Any]
    checkpoint: WorkflowCheckpoint | None = None
    """The checkpoint being viewed, `None` for the current state."""
    events: Sequence[WorkflowEvent[Any]] = ()
    """The events of the whole run."""
    selected: str | None = None
    """The selected executor."""
    difference: CheckpointDiff | None = None
    """The difference from the previous checkpoint, `None` while not loaded."""
    fields: Sequence[str] = ()
    """The fields of a state graph's state, with and without a value."""
    times: bool = True
    states: ElementStates | None = None
    """States of the graph, if they differ from the model's."""


def content_of(tab: str, model: StepperModel, sources: Sources) -> TabContent:
    """Return the content of the tab with that name."""
    made = _MAKERS.get(tab, _state)(model, sources)
    return replace(made, checkpoint_id=model.checkpoints.displayed_id)


def _state(model: StepperModel, sources: Sources) -> TabContent:
    whole = sources.live_state if sources.checkpoint is None else sources.checkpoint.state
    report = _displayed_report(model)
    if sources.checkpoint is not None and model.checkpoints.at_input:
        return _input(model, sources.checkpoint)
    updates = [event.data for event in report.events if event.type == "state_updated"] if report is not None else []
    changed = {key for update in updates for key in update}
    editable = "edit" in model.allowed
    entries = [
        Entry(str(key), value, "changed" if key in changed else "", path=path_text((key,)) if editable else None)
        for key, value in whole.items()
        if not str(key).startswith("_")
    ]
    if editable:
        unset = [name for name in sources.fields if name not in whole]
        entries += [Entry(name, None, "no value yet", path=name) for name in unset]
    if executor_states := whole.get(_EXECUTOR_STATE):
        entries.append(Entry("state of executors", executor_states))
    title = f"{'Shared' if entries else 'No shared'} state {_where(model)}"
    return TabContent(title, ValueTree(entries, staged={edit.path: edit.after for edit in model.edits}))


def _input(model: StepperModel, checkpoint: WorkflowCheckpoint) -> TabContent:
    """Return the input, and the state with which the run begins, if any."""
    editable = "edit" in model.allowed
    messages = [message.data for queued in checkpoint.messages.values() for message in queued]
    entries = [Entry("input", message, path="input" if editable else None) for message in messages[:1]]
    entries += [Entry(key, value) for key, value in checkpoint.state.items() if not key.startswith("_")]
    staged = {edit.path: edit.after for edit in model.edits}
    return TabContent("The input, before superstep 0", ValueTree(entries, staged=staged))


def _displayed_report(model: StepperModel) -> StepReport | None:
    if model.checkpoints.viewed is None:
        return model.reports[-1] if model.reports else None
    return next((r for r in reversed(model.reports) if r.checkpoint == model.checkpoints.viewed), None)


def _where(model: StepperModel) -> str:
    viewed = model.checkpoints.viewed
    number = model.facts.superstep if viewed is None else viewed.iteration
    return "before the first superstep" if number is None or number < 0 else f"after superstep {number}"


def _messages(model: StepperModel, sources: Sources) -> TabContent:
    if sources.checkpoint is not None and model.checkpoints.viewed is not None:
        # In the order of the indexes in edit paths.
        queued = [message for messages in sources.checkpoint.messages.values() for message in messages]
        name = "pending_messages" if "messages" in sources.checkpoint.state else "messages"
        entries = [
            Entry(_way(message.source_id, message.target_id), message.data, path=f"{name}[{place}]")
            for place, message in enumerate(queued)
        ]
    else:
        entries = [Entry(_way(planned.source, planned.target), planned.message) for planned in model.facts.planned]
    waiting = f"{count_text(len(entries), 'message')} for the next superstep" if entries else "No messages"
    staged = {edit.path: edit.after for edit in model.edits}
    return TabContent(f"{waiting}, {_where(model)}", ValueTree(entries, staged=staged))


def _way(source: str, target: str | None) -> str:
    """Return sender and target of a message; a state graph's own messages have no executor as sender."""
    return f"{'the graph' if target and source == internal_source(target) else source} → {target or 'its targets'}"


def _output(model: StepperModel, _sources: Sources) -> TabContent:
    title, displays, entries = outputs_in(model)
    return TabContent(title, ValueTree(entries), displays=displays)


def _events(model: StepperModel, sources: Sources) -> TabContent:
    events = sources.events
    if model.checkpoints.viewed is not None:
        report = _displayed_report(model)
        listed: Sequence[WorkflowEvent[Any]] = report.events if report is not None else ()
        title = f"{count_text(len(listed), 'event')} of superstep {model.checkpoints.viewed.iteration}"
        if model.checkpoints.at_input:
            title = "No events before superstep 0"
        return TabContent(title, ValueTree([*map(_event_entry, listed)]))
    listed = events[-MAX_EVENTS:]
    title = count_text(len(events), "event")
    if len(listed) < len(events):
        title = f"the last {len(listed):,} of {title}"
    return TabContent(f"{title}, newest first", ValueTree([*map(_event_entry, reversed(listed))]))


def _event_entry(event: WorkflowEvent[Any]) -> Entry:
    value = event.data if event.data is not None else event.details
    if event.state is not None:
        value = state_text(event.state)
    elif event.type in _BOUNDARIES:  # the other tabs show the rest of them
        value = f"superstep {event.superstep if event.iteration is None else event.iteration}"
    name = " ".join(str(part) for part in (event.seq, event.type.replace("_", " ")) if part is not None)
    return Entry(name, "" if value is None else value, event.source_id or "")


def _node(model: StepperModel, sources: Sources) -> TabContent:
    executor = sources.selected
    if executor is None:
        return TabContent("Select a node in the graph to see its details")
    facts = node_facts(model, sources.shape, executor, sources.states, times=sources.times)
    points = [point for point in model.breakpoints.all if point.where == executor]
    breaks = {
        "executor": executor,
        "before": any(point.kind == "before" for point in points),
        "after": any(point.kind == "after" for point in points),
        "enabled": model.status is not StepperStatus.CLOSED and executor in model.activity.nodes,
    }
    title = esc(executor, into="line", limit=_NAME_LIMIT)
    displays = tuple(node_displays(model, executor))
    return TabContent(title, ValueTree(node_entries(model, executor)), facts, breaks, displays=displays)


def _diff(model: StepperModel, sources: Sources) -> TabContent:
    title, rows = _difference(model, sources.difference)
    if not model.edits:
        return TabContent(title, changes=(("", rows),) if rows else ())
    edits = f"{count_text(len(model.edits), 'edit')}, not applied yet"
    return TabContent(edits, changes=(("", edit_rows(model.edits)), (title, rows)))


def _difference(model: StepperModel, difference: CheckpointDiff | None) -> tuple[str, tuple[ChangeRow, ...]]:
    """Return the difference between the displayed checkpoint and the previous one: a title, and rows."""
    at, first = model.checkpoints.displayed, model.checkpoints.first
    if at is None or at < first:
        return "No checkpoint yet, nothing to compare", ()
    title = f"Checkpoint {at - first + 1} ({model.checkpoints.past[at].label})"
    if at == first:
        return f"{title} is the first checkpoint: nothing to compare with", ()
    title += f" compared with {at - first}"
    if difference is None:
        return f"{title}: loading …", ()
    changes = [change for change in difference if change.path not in _UNSAID]
    rows = tuple(change_row(change) for change in changes[:MAX_CHANGES])
    words = count_text(len(changes), "change") if changes else "no difference"
    return (
        f"{title}: {f'the first {len(rows)} of ' if len(rows) < len(changes) else ''}{words}",
        rows,
    )


_MAKERS: dict[str, Callable[[StepperModel, Sources], TabContent]] = {
    "messages": _messages,
    "output": _output,
    "events": _events,
    "node": _node,
    "diff": _diff,
}
