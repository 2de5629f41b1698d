"""What a run handle reports: a finished superstep, and the deliveries of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import masked_fields
from agentbench.workflows.events.events import (
    SuperstepCompletionInfo,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowRunState,
)
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.graph.boundary import PauseReason
from agentbench.workflows.graph.routing import Plan

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo


@dataclass(frozen=True)
class PlannedDelivery:
    """A delivery of the next superstep.

    Attributes:
        source: the sender, or all senders of a barrier fan-in joined by ", ".
        target: the executor that will be called.
        message: the data that it gets.
        order: position in the plan.
        sources: all senders.

    Example:
        for delivery in await run.plan():
            print(delivery.source, "to", delivery.target, delivery.message)
    """

    source: str
    target: str
    message: Any
    order: int
    sources: tuple[str, ...] = ()

    __repr__ = masked_fields


def planned_deliveries(plan: Plan) -> list[PlannedDelivery]:
    """Return a plan for readers outside the engine."""
    return [PlannedDelivery(", ".join(d.sources), d.executor_id, d.data, d.order, d.sources) for d in plan.deliveries]


@drawn_by("agentbench.notebook.cards.run:report_bundle")
@dataclass(frozen=True)
class StepReport(Displayable):
    """One superstep, read from its events.

    Attributes:
        superstep: the number, counted from 0: in superstep 0 the start executors get the input.
        events: in order of emission; including the closing events of a run that ended here.
        status: the state of the run afterwards.
        info: the checkpoint and what is pending at the end, if checkpoints are on.
        pause_reason: why the run pauses here, if it does.
        sent: messages that wait for the next superstep.

    Example:
        report = await run.step()
        print(report.superstep, report.invoked, report.outputs)
    """

    superstep: int
    events: list[WorkflowEvent[Any]]
    status: WorkflowRunState | None
    info: SuperstepCompletionInfo | None = None
    pause_reason: PauseReason | None = None
    sent: Sequence[WorkflowMessage] = ()

    def _events_of(self, event_type: str) -> list[WorkflowEvent[Any]]:
        events = [e for e in self.events if e.type == event_type]
        return sorted(events, key=lambda e: (e.order or 0, e.seq or 0))

    @property
    def invoked(self) -> list[str]:
        """The executors that ran, in plan order; one entry per delivery."""
        return [executor_id for executor_id, _ in self.delivered]

    @property
    def delivered(self) -> list[tuple[str, Any]]:
        """(executor id, input) per delivery, in plan order."""
        return [(e.executor_id or "", e.data) for e in self._events_of("executor_invoked")]

    @property
    def emitted(self) -> list[WorkflowMessage]:
        """Messages that this superstep sent and that wait for the next one."""
        return list(self.sent)

    @property
    def outputs(self) -> list[Any]:
        """Values yielded as output."""
        return [e.data for e in self._events_of("output")]

    @property
    def requests(self) -> list[WorkflowEvent[Any]]:
        """The requests raised in this superstep."""
        return self._events_of("request_info")

    @property
    def failures(self) -> list[WorkflowErrorDetails]:
        """Details of handlers that raised."""
        return [e.details for e in self._events_of("executor_failed") if e.details is not None]

    @property
    def checkpoint(self) -> CheckpointInfo | None:
        """The checkpoint saved at the end of this superstep."""
        for event in reversed(self._events_of("checkpoint_saved")):
            return event.data  # type: ignore[no-any-return]
        return self.info.checkpoint if self.info is not None else None

    @property
    def duration_s(self) -> float | None:
        """The duration of the superstep in seconds, in observed runs."""
        ended = (e for e in self.events if e.type == "superstep_completed" and e.iteration == self.superstep)
        return next((e.duration_s for e in ended), None)

    def __repr__(self) -> str:
        parts = [f"superstep {self.superstep}", f"ran {', '.join(self.invoked) or 'nothing'}", str(self.status)]
        if self.pause_reason is not None:
            parts.append(f"paused: {self.pause_reason}")
        return f"StepReport({'; '.join(parts)})"
