"""A running summary of a run, updated per superstep, so that views of long runs need not read all events again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from agentbench.messages.joined_updates import join_updates
from agentbench.messages.update import AgentResponseUpdate
from agentbench.notebook.history.agent_turns import conversation_of, tool_calls_in
from agentbench.notebook.history.log import number_of
from agentbench.notebook.history.run_history import Event, ExecutorCall, Superstep, is_visit
from agentbench.workflows.events.events import count_unanswered
from agentbench.workflows.run.result import StepReport


@dataclass(slots=True)
class NodeRecord:
    """The summary of one executor, also of one in a sub-workflow."""

    last_call: ExecutorCall | None = None
    last_turn: ExecutorCall | None = None
    """The last call that was a turn of an agent."""
    latest: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """Superstep and value of each entry, by label."""
    outputs: list[Any] = field(default_factory=list)
    usages: list[Event] = field(default_factory=list)
    visits: int = 0
    tool_calls: int = 0
    keys_written: dict[str, None] = field(default_factory=dict)
    inside: list[Superstep] = field(default_factory=list)
    """Supersteps of its sub-workflow in the last call."""

    def add(self, call: ExecutorCall) -> None:
        """Add its call in a superstep."""
        found = {
            "last input": call.messages[-1:],
            "last sent": [sent] if (sent := sent_by(call)) else [],
            "last request": [event.data for event in call.requests[-1:]],
            "last failure": [call.failure] if call.failure else [],
        }
        self.latest |= {name: (call.superstep, value) for name, values in found.items() for value in values}
        self.last_call = call if call.messages else self.last_call
        self.last_turn = call if conversation_of(call) else self.last_turn
        self.visits += sum(map(is_visit, call.messages))
        self.tool_calls += tool_calls_in(call)


class RunRecord:
    """The summary of a run and of each of its executors; grows with each superstep."""

    def __init__(self) -> None:
        self.nodes: defaultdict[str, NodeRecord] = defaultdict(NodeRecord)
        self.outputs: list[tuple[int, Event]] = []  # outputs of the workflow, with their supersteps
        self.warnings: list[str] = []
        self.unanswered = 0  # requests without an answer at the end of the run

    def add(self, report: StepReport) -> None:
        """Add a finished superstep; its report includes the empty one after start executors that send nothing."""
        steps: dict[int, Superstep] = {}
        inside: defaultdict[str, dict[int, Superstep]] = defaultdict(dict)
        for event in report.events:
            number = number_of(event, report)
            steps.setdefault(number, Superstep(number)).add(event)
            if event.type == "sub_workflow":
                path, number = "/".join(event.data.path), event.data.superstep
                inside[path].setdefault(number, Superstep(number)).add(event.data)
        for step in steps.values():
            self._add_step(step)
        for node, inner in inside.items():
            if ran := [step for step in inner.values() if step.calls]:
                self.nodes[node].inside = ran

    def _add_step(self, step: Superstep) -> None:
        for part in (step, step.inside or Superstep(step.number)):
            for call in part.calls.values():
                self.nodes[call.executor].add(call)
            for event in part.warnings:
                self.nodes[event.source_id or ""].latest["last warning"] = (step.number, event.data)
                self.warnings.append(str(event.data))
            outputs = [event for event in join_updates(part.outputs) if event.type == "output"]
            for event in outputs:
                self.nodes[event.source_id or ""].outputs.append(event.data)
            if part is step:
                ordered = sorted(outputs, key=lambda event: (event.order or 0, event.seq or 0))
                self.outputs += [(step.number, event) for event in ordered]
        self.unanswered = count_unanswered(step.warnings) or self.unanswered
        for event in step.usages:
            self.nodes[event.source_id or ""].usages.append(event)
        for event in step.updates:
            for key, change in event.data.items():
                for executor in change.get("writers", ()):
                    self.nodes[executor].keys_written[key] = None


def sent_by(call: ExecutorCall) -> list[Any]:
    """Return the values that an executor sent or yielded, without the pieces of a streamed answer."""
    return [result for result in call.results if not isinstance(result, AgentResponseUpdate)]
