"""Pure: what the Node tab of a stepper says of one executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentbench.messages.update import AgentResponseUpdate
from agentbench.notebook.cards.conversation.views import Transcript
from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.history.agent_turns import conversation_of, tool_calls_in
from agentbench.notebook.history.log import number_of
from agentbench.notebook.history.run_history import ExecutorCall, Superstep, join_updates, opened
from agentbench.notebook.history.usage import latency_of, model_of, sum_usages, usage_of
from agentbench.notebook.look.states import STATES
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.outputs import Display
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text, duration_text
from agentbench.notebook.text.value_tree import Entry

__all__ = ["Fact", "node_displays", "node_entries", "node_facts"]

_NOTHING = "—"
_NAMED = 4

#: A label and its text, such as `("visits", "2")`.
Fact = tuple[str, str]


def node_facts(model: StepperModel, shape: GraphShape, executor: str, *, times: bool) -> tuple[Fact, ...]:
    """Return the facts about an executor, in short lines; with `times`, durations too."""
    supersteps = _supersteps_of(model, executor)
    last = next((call for step in reversed(supersteps) for call in step.calls.values() if call.messages), None)
    visits = f"{model.activity.visits[executor]:,}"
    facts = [
        ("kind", _kind(shape, executor)),
        ("now", STATES[model.states.get(executor, "idle")].words),
        ("visits", visits if last is None else f"{visits}, the last in superstep {last.superstep}"),
        ("in", _messages(last.messages if last else [])),
        ("out", _messages(_sent(last) if last else [])),
    ]
    if last is not None and last.attempts > 1:
        facts.append(("attempts", str(last.attempts)))
    if last is not None and last.duration_ns is not None and times:
        facts.append(("last", duration_text(last.duration_ns / 1e9)))
    facts += _agent_facts(supersteps, times=times)
    written = [
        esc(key, into="line", limit=40)
        for step in supersteps
        for event in step.updates
        for key, change in event.data.items()
        if executor in change.get("writers", ())
    ]
    facts.append(("state keys written", ", ".join(dict.fromkeys(written)) or _NOTHING))
    return tuple(facts)


def _agent_facts(supersteps: Sequence[Superstep], *, times: bool) -> list[Fact]:
    """What the models of an agent used, and how often it called tools; none for an executor that runs no agent."""
    events = [event for step in supersteps for event in step.usages]
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
    tools = sum(tool_calls_in(call) for step in supersteps for call in step.calls.values())
    return [*facts, ("tool calls", f"{tools:,}")] if tools else facts


def node_displays(model: StepperModel, executor: str) -> list[Display]:
    """The conversation of an agent up to its last turn, and what it streamed."""
    calls = [call for step in _supersteps_of(model, executor) for call in step.calls.values()]
    for call in reversed(calls):
        if messages := conversation_of(call):
            bundle = Transcript(tuple(messages))
            return [(0, f"conversation, superstep {call.superstep}", "text/html", bundle.html)]
    return []


def node_entries(model: StepperModel, executor: str) -> list[Entry]:
    """The values behind those lines: messages in and out, requests, outputs, and messages that wait for it."""
    supersteps = _supersteps_of(model, executor)
    waiting = [planned.message for planned in model.facts.planned if planned.target == executor]
    entries = [Entry("waits for it", waiting)] if waiting else []
    latest: dict[str, Entry] = {}
    for step in supersteps:
        call, note = step.calls.get(executor), f"superstep {step.number}"
        found = {
            "last input": call.messages[-1:] if call else [],
            "last sent": [sent] if call and (sent := _sent(call)) else [],
            "last request": [event.data for event in call.requests[-1:]] if call else [],
            "last failure": [call.failure] if call and call.failure else [],
            "last warning": [event.data for event in step.warnings if event.source_id == executor][-1:],
        }
        latest |= {name: Entry(name, value, note) for name, values in found.items() for value in values}
    outputs = [event.data for step in supersteps for event in join_updates(step.outputs) if event.type == "output"]
    inside = _entries_inside(model, executor)
    return [*entries, *latest.values(), *([Entry("outputs", outputs)] if outputs else []), *inside]


def _entries_inside(model: StepperModel, executor: str) -> list[Entry]:
    """The supersteps of the workflow in a node, when it ran last: what each executor there got and sent."""
    for report in reversed(model.reports):
        steps: dict[int, Superstep] = {}
        for event in report.events:
            inside = event.data
            if event.type == "sub_workflow" and "/".join(inside.path) == executor:
                steps.setdefault(inside.superstep, Superstep(inside.superstep)).add(inside)
        told = [
            Entry(f"inside, superstep {number}", {name: _messages_of(call) for name, call in step.calls.items()})
            for number, step in steps.items()
            if step.calls
        ]
        if told:
            return told
    return []


def _messages_of(call: ExecutorCall) -> dict[str, Any]:
    found = {"got": call.messages, "sent": _sent(call), "failed": call.error}
    return {name: value for name, value in found.items() if value}


def _sent(call: ExecutorCall) -> list[Any]:
    """What an executor sent or yielded; pieces of a streamed answer are in the answer that was sent."""
    return [result for result in call.results if not isinstance(result, AgentResponseUpdate)]


def _supersteps_of(model: StepperModel, executor: str) -> list[Superstep]:
    """The supersteps, as far as they concern an executor: its own events, and the changes of the state."""
    found: list[Superstep] = []
    for report in model.reports:
        steps: dict[int, Superstep] = {}
        for event in report.events:
            inside = opened(event)
            if inside.source_id == executor or event.type == "state_updated":
                number = number_of(event, report)
                steps.setdefault(number, Superstep(number)).add(inside)
        found += steps.values()
    return found


def _kind(shape: GraphShape, executor: str) -> str:
    node = next((each for each in (*shape.nodes, *shape.frames) if each.id == executor), None)
    if node is None:
        return _NOTHING
    name = esc(node.type_name or "executor", into="line", limit=60)
    return f"{name} ({node.words})" if node.words else name


def _messages(messages: Sequence[Any]) -> str:
    if not messages:
        return _NOTHING
    types = list(dict.fromkeys(esc(type(message).__name__, into="line", limit=40) for message in messages))
    named = ", ".join(types[:_NAMED]) + (" …" if len(types) > _NAMED else "")
    return f"{count_text(len(messages), 'message')} ({named})"
