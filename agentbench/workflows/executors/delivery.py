"""One message on its way into one handler; a superstep consists of deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The messages and values that a successful handler sent and yielded, in order."""

    sent: tuple[WorkflowMessage, ...]
    yielded: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """The part of an ended `Delivery` that a boundary hook may read; a failed handler has no `result`."""

    executor_id: str
    task_id: str
    order: int
    data: Any
    sources: tuple[str, ...]
    result: DeliveryResult | None
    error: BaseException | None


class Delivery:
    """A planned call of one handler; None if none takes the data (only possible for the input of a run).

    `data` of a barrier fan-in is the list of all messages; `messages` are their envelopes: none for an input.
    """

    superstep = 0
    order = 0
    """Position in the plan, and among this executor's deliveries in the plan."""
    nth = 0
    result: DeliveryResult | None = None
    """What the handler sent and yielded, once it has succeeded; recorded for boundary hooks only."""
    error: BaseException | None = None
    context: Any = None
    """The handler's context while it runs, so that an abandoned run can close it."""
    abandoned = False
    """Whether the run was abandoned; a handler that has not started must then not start."""
    attempt: int | None = None
    """The current attempt, from 1, of an executor with retries."""
    began_ns = 0
    span_id: str | None = None
    parent_span_id: str | None = None

    def __init__(
        self,
        executor: Any,
        handler: Any,
        data: Any,
        sources: tuple[str, ...],
        messages: tuple[WorkflowMessage, ...] = (),
        request: WorkflowEvent[Any] | None = None,
    ) -> None:
        self.executor = executor
        self.executor_id: str = executor.id
        self.handler = handler
        self.data = data
        self.sources = sources
        self.messages = messages
        self.request = request

    @property
    def task_id(self) -> str:
        """The id `<superstep>:<executor id>:<k>`, equal from run to run."""
        return f"{self.superstep}:{self.executor_id}:{self.nth}"

    def view(self) -> DeliveryView:
        """Return the part that a boundary hook may read."""
        return DeliveryView(
            self.executor_id, self.task_id, self.order, self.data, self.sources, self.result, self.error
        )

    def __repr__(self) -> str:
        return f"Delivery({', '.join(self.sources)} -> {self.executor_id}, {type(self.data).__name__})"


def require_sources(source_executor_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the senders of a message that is delivered by hand; `ValueError` if there are none, or for a text."""
    if not source_executor_ids or isinstance(source_executor_ids, str):
        msg = f"source_executor_ids is {source_executor_ids!r}; expected a list with the id of at least one sender."
        raise ValueError(msg)
    return tuple(source_executor_ids)
