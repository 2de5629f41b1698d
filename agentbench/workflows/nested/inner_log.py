"""The log of a run inside a node: it forwards events to the outer run as they are emitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentbench._clock import runtime_defaults
from agentbench.workflows.engine.event_log import EventLog, ObservedEventLog
from agentbench.workflows.events.events import WorkflowEvent

if TYPE_CHECKING:
    from agentbench.workflows.engine.active_run import ActiveRun
    from agentbench.workflows.executors.delivery import Delivery

Forward = Callable[[WorkflowEvent[Any]], None]


class _InnerLog(EventLog):
    """Calls `forward` with each event except plain progress."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self._forward = forward

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        super().append(event, delivery)
        self._forward(event)


class _ObservedInnerLog(ObservedEventLog):
    """Calls `forward` with each event, and reports it to the outermost run, with the path to the outer node."""

    def __init__(self, forward: Forward, run: ActiveRun, node_id: str) -> None:
        super().__init__(run.run_id, run.options.clock or runtime_defaults().clock)
        self._forward = forward
        outer = run.log
        self.root: EventLog = outer
        self.path = path_inside(run, node_id)
        if isinstance(outer, _ObservedInnerLog):
            self.root = outer.root

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        super().append(event, delivery)
        if event._stamps is not None:  # noqa: SLF001 - as every observed log
            event._stamps.path = self.path  # noqa: SLF001
        self.root.append(WorkflowEvent("sub_workflow", event, executor_id=self.path[0]))
        self._forward(event)


def inner_log(run: ActiveRun, node_id: str, forward: Forward) -> EventLog:
    """Return the log of a run inside the node of `run`, observed if `run` is."""
    return _ObservedInnerLog(forward, run, node_id) if run.log.observed else _InnerLog(forward)


def path_inside(run: ActiveRun, node_id: str) -> tuple[str, ...]:
    """Return the ids of the nodes around a run inside the node of `run`, outermost first."""
    return (*(run.log.path if isinstance(run.log, _ObservedInnerLog) else ()), node_id)
