"""Pure: the states of the executors and edges of a graph, from the events of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench.messages.joined_updates import join_updates
from agentbench.messages.update import AgentResponseUpdate
from agentbench.notebook.history.agent_turns import conversation_of, tool_calls_in
from agentbench.notebook.history.log import number_of
from agentbench.notebook.history.run_history import Event, ExecutorCall, Superstep, is_visit, unwrap_event
from agentbench.notebook.history.usage import tokens_of
from agentbench.notebook.look.states import strongest
from agentbench.workflows.events.events import WorkflowEvent, count_unanswered
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport

Element = str | tuple[str, str]
"""An executor id, or the (source id, target id) of an edge."""
ElementStates = Mapping[Element, str]
"""States by element, without idle ones."""

_RAN = ("done", "ran", "waiting", "failed")


def course_of(before: Iterable[ElementStates], now: ElementStates) -> dict[Element, str]:
    """Return the states of `now`; idle elements that ran in one of the supersteps `before` get the state `ran`."""
    course: dict[Element, str] = {}
    for states in before:
        for element, state in states.items():
            if state in _RAN:
                course[element] = "ran"
            elif state == "skipped":
                course.setdefault(element, state)
    return course | {element: strongest((state, course.get(element, "idle"))) for element, state in now.items()}


class Activity:
    """The states of nodes and edges, the visits of each executor, and the tokens of its agent.

    For each superstep call `begin()`, `see()` for its events, then `rest()`. An element has the strongest state that
    applies to it: an executor that was called and emitted a request is `waiting`, not `done`.

    Args:
        nodes: Executor ids, in builder order.
        edges: (source id, target id) of each edge.
    """

    def __init__(self, nodes: Sequence[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        self.nodes = tuple(nodes)
        self.edges = tuple(dict.fromkeys(edges))
        self.visits: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self._inside: dict[str, None] = {}  # called executors in sub-workflows: `outer/inner`
        self.reset()

    def reset(self) -> None:
        """Make every element idle; visits are kept."""
        self._superstep = Superstep(0)
        self._is_over = False
        self._delivered: set[Element] = set()
        self._queued: set[Element] = set()
        self._waiting: set[str] = set()

    def begin(self) -> None:
        """Start a superstep: queued edges deliver, and the states of the previous superstep are cleared."""
        self._superstep = Superstep(0)
        self._is_over = False
        self._delivered = {element for element in self._queued if isinstance(element, tuple)}
        self._queued -= self._delivered

    def see(self, event: WorkflowEvent[Any]) -> None:
        """Update the states by one event of the superstep."""
        self._superstep.add(event)
        inner = unwrap_event(event)
        executor = inner.source_id or ""
        if inner.type == "executor_invoked":
            self.visits[executor] += is_visit(inner.data)
            self._queued.discard(executor)
            if inner is not event:
                self._inside[executor] = None
        elif inner.type == "model_usage":
            self.tokens[executor] += tokens_of(inner)
        elif event.type == "request_info":
            self._waiting.add(executor)

    def rest(self, planned: Iterable[PlannedDelivery], waiting: Iterable[str]) -> None:
        """End the superstep; `waiting` are the executors with an open request."""
        self._is_over = True
        self._queued = set()
        for delivery in planned:
            self._queued.add(delivery.target)
            self._queued.update((source, delivery.target) for source in delivery.sources)
        self.wait_for(waiting)

    def wait_for(self, executors: Iterable[str]) -> None:
        """Set the executors with an open request."""
        self._waiting = set(executors)

    @property
    def running(self) -> tuple[str, ...]:
        """The running executors, in builder order."""
        calls = {} if self._is_over else self._superstep.calls
        return tuple(node for node in self.nodes if node in calls and calls[node].at_work > 0)

    @property
    def progress(self) -> tuple[str, ...]:
        """The last line about the progress of each running executor's tools, in builder order."""
        calls = self._superstep.calls
        return tuple(calls[node].progress for node in self.running if calls[node].progress)

    def states(self) -> dict[Element, str]:
        """Return the states of all elements that are not idle."""
        calls = self._superstep.all_calls.values()
        requesting = {call.executor for call in calls if call.requests and call.executor.split("/")[0] in self._waiting}
        at_work = {call.executor for call in calls if call.at_work > 0 and not self._is_over}
        # A target that was not chosen may get a message over another edge; then `done` is stronger.
        skipped = {
            target
            for event in self._superstep.routes
            for source, target in self.edges
            if source == event.data.get("from") and target not in (event.data.get("targets") or ())
        }
        kinds: dict[str, set[Element]] = {
            "failed": {call.executor for call in calls if call.status == "failed"},
            "waiting": {*self._waiting, *(requesting & self._inside.keys())},
            "running": {*at_work},
            "queued": self._queued,
            "done": {*self._delivered, *(call.executor for call in calls if call.status in ("completed", "bypassed"))},
            "skipped": set(skipped),
        }
        states = {
            each: strongest(kind for kind, members in kinds.items() if each in members) for each in self._elements
        }
        return {element: state for element, state in states.items() if state != "idle"}

    def whole(self, states: ElementStates) -> dict[Element, str]:
        """Return the states of all elements, including idle ones, so that a panel can replace its displayed states."""
        return {element: states.get(element, "idle") for element in self._elements}

    @property
    def _elements(self) -> tuple[Element, ...]:
        return (*self.nodes, *self.edges, *self._inside)

    def badges(self) -> dict[str, str]:
        """Return a badge such as `3 visits · 40 tokens` for each executor that ran more than once or used tokens."""
        badges = {}
        for node in (*self.nodes, *self._inside):
            visits, tokens = self.visits[node], self.tokens[node]
            parts = [f"{visits:,} visits"] if visits > 1 else []
            parts += [f"{tokens:,} tokens"] if tokens else []
            if parts:
                badges[node] = " · ".join(parts)
        return badges


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
