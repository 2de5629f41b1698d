"""Pure: the content of a stepper's Node tab for one executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text
from agentbench._text.value_tree import Entry
from agentbench.notebook.cards.conversation.views import Transcript
from agentbench.notebook.history.activity import ElementStates, NodeRecord, sent_by
from agentbench.notebook.history.agent_turns import conversation_of
from agentbench.notebook.history.run_history import Superstep
from agentbench.notebook.history.usage import latency_of, model_of, sum_usages, usage_of
from agentbench.notebook.look.states import STATES
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.outputs import Display
from agentbench.workflows.draw.shape import GraphShape

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
        ("in", _messages(last.messages if last else [])),
        ("out", _messages(sent_by(last) if last else [])),
    ]
    if last is not None and last.attempts > 1:
        facts.append(("attempts", str(last.attempts)))
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
    """Return the conversation of an agent up to its last turn, including its streamed text."""
    call = model.displayed_record.nodes.get(executor, NodeRecord()).last_turn
    if call is None:
        return []
    bundle = Transcript(tuple(conversation_of(call)))
    return [(0, f"conversation, superstep {call.superstep}", "text/html", bundle.html)]


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


def _messages(messages: Sequence[Any]) -> str:
    if not messages:
        return _NOTHING
    types = list(dict.fromkeys(esc(type(message).__name__, into="line", limit=40) for message in messages))
    named = ", ".join(types[:_NAMED]) + (" …" if len(types) > _NAMED else "")
    return f"{count_text(len(messages), 'message')} ({named})"
