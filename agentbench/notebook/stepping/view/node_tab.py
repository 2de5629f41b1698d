"""Pure: what the Node tab of a stepper says of one executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.history.usage import usage_of
from agentbench.notebook.look.states import STATES
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, duration_text
from agentbench.notebook.text.value_tree import Entry
from agentbench.workflows.events.events import WorkflowEvent

__all__ = ["Fact", "node_entries", "node_facts"]

_NOTHING = "—"
_NAMED = 4

#: A label and its text, such as `("visits", "2")`.
Fact = tuple[str, str]
Mine = Sequence["tuple[int, WorkflowEvent[Any]]"]


def node_facts(model: StepperModel, shape: GraphShape, executor: str, *, times: bool) -> tuple[Fact, ...]:
    """Return the facts about an executor, in short lines.

    Args:
        model: The stepper.
        shape: Its graph.
        executor: Id of the executor.
        times: Whether durations are included.
    """
    mine = _events_of(model, executor)
    superstep = max((number for number, event in mine if event.type == "executor_invoked"), default=None)
    latest = [event for number, event in mine if number == superstep]
    state = model.states.get(executor, "idle")
    facts = [
        ("kind", _kind(shape, executor)),
        ("now", STATES[state].words),
        ("visits", _visits(model.activity.visits[executor], superstep)),
        ("in", _messages([event.data for event in latest if event.type == "executor_invoked"])),
        ("out", _messages(_sent_messages(latest))),
    ]
    attempts = max((event.attempt or 0 for event in latest), default=0)
    if attempts > 1:
        facts.append(("attempts", str(attempts)))
    took = [event.duration_s for event in latest if event.type == "executor_completed" and event.duration_s is not None]
    if took and times:
        facts.append(("last", duration_text(sum(took))))
    facts += [("tokens", tokens) for tokens in _tokens([event for _, event in mine])]
    facts.append(("state keys written", _written(model, executor)))
    return tuple(facts)


def node_entries(model: StepperModel, executor: str) -> list[Entry]:
    """The values behind those lines: messages in and out, requests, outputs, and messages that wait for it."""
    mine = _events_of(model, executor)
    waiting = [planned.message for planned in model.facts.planned if planned.target == executor]
    entries = [Entry("waits for it", waiting)] if waiting else []
    for name, kind in (
        ("last input", "executor_invoked"),
        ("last sent", "executor_completed"),
        ("last request", "request_info"),
        ("last failure", "executor_failed"),
        ("last warning", "warning"),
    ):
        entries += _latest(name, mine, kind)
    outputs = [event.data for _, event in mine if event.type == "output"]
    return [*entries, Entry("outputs", outputs)] if outputs else entries


def _events_of(model: StepperModel, executor: str) -> Mine:
    return [
        (report.superstep, event) for report in model.reports for event in report.events if event.source_id == executor
    ]


def _latest(name: str, mine: Mine, kind: str) -> list[Entry]:
    found = [(superstep, event) for superstep, event in mine if event.type == kind]
    if not found:
        return []
    superstep, event = found[-1]
    value = event.data if event.data is not None else event.details
    return [] if value is None else [Entry(name, value, f"superstep {superstep}")]


def _kind(shape: GraphShape, executor: str) -> str:
    node = next((each for each in (*shape.nodes, *shape.frames) if each.id == executor), None)
    if node is None:
        return _NOTHING
    name = esc(node.type_name or "executor", into="line", limit=60)
    return f"{name} ({node.words})" if node.words else name


def _visits(count: int, superstep: int | None) -> str:
    return f"{count:,}" if superstep is None else f"{count:,}, the last in superstep {superstep}"


def _sent_messages(events: Sequence[WorkflowEvent[Any]]) -> list[Any]:
    sent: list[Any] = []
    for event in events:
        if event.type == "executor_completed" and isinstance(event.data, (list, tuple)):
            sent.extend(event.data)
    return sent


def _messages(messages: Sequence[Any]) -> str:
    if not messages:
        return _NOTHING
    types = list(dict.fromkeys(esc(type(message).__name__, into="line", limit=40) for message in messages))
    named = ", ".join(types[:_NAMED]) + (" …" if len(types) > _NAMED else "")
    return f"{count_text(len(messages), 'message')} ({named})"


def _tokens(mine: Sequence[WorkflowEvent[Any]]) -> list[str]:
    used = [usage_of(event, {}) for event in mine if event.type == "model_usage"]
    if not used:
        return []
    return [f"{sum(each.tokens_in or 0 for each in used):,} in, {sum(each.tokens_out or 0 for each in used):,} out"]


def _written(model: StepperModel, executor: str) -> str:
    keys = [
        str(key)
        for report in model.reports
        for event in report.events
        if event.type == "state_updated" and isinstance(event.data, Mapping)
        for key, change in event.data.items()
        if isinstance(change, Mapping) and executor in change.get("writers", ())
    ]
    return ", ".join(esc(key, into="line", limit=40) for key in dict.fromkeys(keys)) or _NOTHING
