"""Counts what a run of a batch does: its path, and the calls, times, tokens and messages of its nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from agentbench._copying import register_frozen
from agentbench.batch.rows import Traffic
from agentbench.checkpoints import metadata as keys
from agentbench.workflows.engine.event_log import EventLog

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.workflows.events.events import WorkflowErrorDetails, WorkflowEvent
    from agentbench.workflows.executors.message import Delivery, WorkflowMessage

METERED: Final = "batch"
"""The key in the metadata of a checkpoint for what happened since the one before."""
_KEPT: Final = frozenset({"output", "request_info", "warning", "failed"})
current_node: ContextVar[str] = ContextVar("agentbench_batch_node", default="")
"""The id of the executor that makes the current call, so that what its models use counts for it."""


class SharedOutputs(tuple[Any, ...]):
    """Outputs in a checkpoint in memory, which are not copied, because they may be any objects."""

    __slots__ = ()


register_frozen(SharedOutputs)


class Meter:
    """What one row has done so far, over all attempts.

    The numbers of each superstep are also stored with its checkpoint, so that a run that another process continues
    after a crash has the same numbers in the end.
    """

    def __init__(self) -> None:
        self.path: list[list[tuple[int, str]]] = []
        """For each superstep the executors that ran, with their places in its plan."""
        self.outputs: list[Any] = []
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self.cost: float | None = None
        self.seconds = 0.0
        self._total: dict[tuple[str, str], Traffic] = {}
        self._recent: dict[tuple[str, str], Traffic] = {}
        self._recent_use: list[Any] = [None, None, None]
        self._settled = 0, 0
        """How much of the path and of the outputs checkpoints have."""

    def of(self, source: str, target: str = "") -> Traffic:
        """Return what passed a node or an edge since the last checkpoint, to be added to."""
        place = source, target
        found = self._recent.get(place)
        if found is None:
            found = self._recent[place] = Traffic("", source, target)
        return found

    def add_usage(self, tokens_in: int | None, tokens_out: int | None, cost: float | None) -> None:
        """Add what a call of a model used; None is unknown."""
        node = self.of(current_node.get() or "?")
        node.tokens += (tokens_in or 0) + (tokens_out or 0)
        node.cost += cost or 0.0
        self._recent_use = [_sum(a, b) for a, b in zip(self._recent_use, (tokens_in, tokens_out, cost), strict=True)]

    def settle(self) -> list[Any]:
        """Add what happened since the last checkpoint to the total, and return it for the metadata of the next one."""
        recent, self._recent = self._recent, {}
        use, self._recent_use = self._recent_use, [None, None, None]
        entries = [
            [t.source, t.target, t.calls, t.seconds, t.tokens, t.cost, t.failures, t.messages] for t in recent.values()
        ]
        self._add(entries, use)
        steps, outputs = self._names(self._settled[0]), self.outputs[self._settled[1] :]
        self._settled = len(self.path), len(self.outputs)
        return [steps, entries, use, outputs]

    def continue_from(self, infos: Sequence[CheckpointInfo], *, uncounted: Sequence[CheckpointInfo] = ()) -> None:
        """Go back to the path and the outputs of a run's checkpoints, from the last of which it continues.

        Args:
            infos: The checkpoints.
            uncounted: Those of them whose numbers are not counted yet.
        """
        self.path, self.outputs = [], []
        new = {info.checkpoint_id for info in uncounted}
        for info in infos:
            if METERED in info.metadata:
                steps, entries, use, outputs = info.metadata[METERED]
                self.path += [list(enumerate(step)) for step in steps]
                self.outputs += outputs
                if info.checkpoint_id in new:
                    self._add(entries, use)
                    self.seconds += info.metadata.get(keys.DURATION_S, 0.0)
        self._settled = len(self.path), len(self.outputs)

    def add(self, traffic: Iterable[Traffic]) -> None:
        """Take over what the tables say of earlier attempts."""
        self._add([[t.source, t.target, t.calls, t.seconds, t.tokens, t.cost, t.failures, t.messages] for t in traffic])

    def _add(self, entries: Iterable[Sequence[Any]], use: Sequence[Any] = (None, None, None)) -> None:
        for source, target, calls, seconds, tokens, cost, failures, messages in entries:
            sum_ = self._total.setdefault((source, target), Traffic("", source, target))
            sum_.calls += calls
            sum_.seconds += seconds
            sum_.tokens += tokens
            sum_.cost += cost
            sum_.failures += failures
            sum_.messages += messages
        self.tokens_in, self.tokens_out = _sum(self.tokens_in, use[0]), _sum(self.tokens_out, use[1])
        self.cost = _sum(self.cost, use[2])

    def totals(self) -> list[Traffic]:
        """Return what passed each node and edge in all attempts."""
        self.settle()
        return list(self._total.values())

    @property
    def path_text(self) -> str:
        """The path as text: `read > (check, rate) > write`."""
        return " > ".join(step[0] if len(step) == 1 else f"({', '.join(step)})" for step in self._names())

    def _names(self, start: int = 0) -> list[list[str]]:
        """Return the executors of each superstep in the order of its plan."""
        return [[executor_id for _, executor_id in sorted(step)] for step in self.path[start:]]


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


class MeteredLog(EventLog):
    """The log of a run in a batch: it counts supersteps and calls instead of keeping them, and keeps outputs.

    Attributes:
        meter: What is counted.
        running: The executors whose handlers are running, each with the number of calls.
    """

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter
        self.running: dict[str, int] = {}
        self._step: list[tuple[int, str]] | None = None

    def superstep_started(self, superstep: int) -> None:
        """Begin another part of the path."""
        self._step = None

    def superstep_completed(self, superstep: int, info: Any) -> None:
        """Nothing to count."""

    def record_invoked(self, delivery: Delivery) -> None:
        """Count the messages that a call gets."""
        executor_id = delivery.executor_id
        if self._step is None:
            self._step = []
            self.meter.path.append(self._step)
        if all(executor_id != other for _, other in self._step):
            self._step.append((delivery.order, executor_id))
        for source in delivery.sources:
            if not source.startswith("internal:"):
                edge = self.meter.of(source, executor_id)
                edge.messages += 1
        self.running[executor_id] = self.running.get(executor_id, 0) + 1
        current_node.set(executor_id)  # in the context of the handler, which is called next
        delivery.began_ns = perf_counter_ns()

    def record_completed(self, delivery: Delivery, sent: Sequence[WorkflowMessage], yielded: Sequence[Any]) -> None:
        """Count a call."""
        self._count(delivery)

    def record_failed(self, delivery: Delivery, details: WorkflowErrorDetails) -> None:
        """Count a call that raised."""
        self._count(delivery).failures += 1

    def _count(self, delivery: Delivery) -> Traffic:
        node = self.meter.of(delivery.executor_id)
        if delivery.began_ns:
            node.calls += 1
            node.seconds += (perf_counter_ns() - delivery.began_ns) / 1e9
            self.running[delivery.executor_id] -= 1
            if not self.running[delivery.executor_id]:
                del self.running[delivery.executor_id]
        return node

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Keep the events that a row is made of."""
        if event.type in _KEPT:
            super().append(event, delivery)
            if event.type == "output":
                self.meter.outputs.append(event.data)
