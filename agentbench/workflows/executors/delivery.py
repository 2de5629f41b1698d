"""One message on its way into one handler: what a superstep is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage

if TYPE_CHECKING:
    from agentbench.workflows.executors.handlers import HandlerSpec


class RunningContext(Protocol):
    """The context of a handler that runs, as far as its delivery is concerned."""

    def _abandon(self) -> None: ...


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What a handler that ended well has done.

    Attributes:
        sent: the messages that it sent, in order.
        yielded: the values that it yielded, in order.
    """

    sent: tuple[WorkflowMessage, ...]
    yielded: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """What a boundary hook may read of a delivery that has ended.

    Attributes:
        executor_id: who was called.
        task_id: `<superstep>:<executor id>:<k>`, equal from run to run.
        order: place in the plan of the superstep.
        data: what the handler got.
        sources: ids of the senders, in edge order.
        result: what the handler sent and yielded; None when it failed.
        error: what it raised; None when it ended well.
    """

    executor_id: str
    task_id: str
    order: int
    data: Any
    sources: tuple[str, ...]
    result: DeliveryResult | None
    error: BaseException | None


class Delivery:
    """A planned call of one handler.

    Attributes:
        executor, executor_id: who is called.
        handler: the handler that takes the data; None when none does (only possible for the input of a run).
        data: what it gets; for a barrier fan-in the list of all messages.
        sources: ids of the senders, in edge order.
        messages: the envelopes behind `data`; empty for the input of a run.
        request: the request that `data` answers, else None.
        superstep, order, nth: place in the plan; `nth` counts this executor's deliveries of the superstep.
        result: what the handler sent and yielded, once it ended well; noted for boundary hooks only.
        error: what the handler raised.
        context: the handler's context while it runs, so that an abandoned run can close it.
        abandoned: the run was abandoned; a handler that has not started must not.
    """

    __slots__ = (
        "abandoned",
        "began_ns",
        "context",
        "data",
        "error",
        "executor",
        "executor_id",
        "handler",
        "messages",
        "nth",
        "order",
        "parent_span_id",
        "request",
        "result",
        "sources",
        "span_id",
        "superstep",
    )

    def __init__(
        self,
        executor: Any,
        handler: HandlerSpec | None,
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
        self.superstep = 0
        self.order = 0
        self.nth = 0
        self.result: DeliveryResult | None = None
        self.error: BaseException | None = None
        self.context: RunningContext | None = None
        self.abandoned = False
        self.began_ns = 0
        self.span_id: str | None = None
        self.parent_span_id: str | None = None

    @property
    def task_id(self) -> str:
        """`<superstep>:<executor id>:<k>`, equal from run to run."""
        return f"{self.superstep}:{self.executor_id}:{self.nth}"

    def view(self) -> DeliveryView:
        """Return what a boundary hook may read."""
        return DeliveryView(
            self.executor_id, self.task_id, self.order, self.data, self.sources, self.result, self.error
        )

    def __repr__(self) -> str:
        return f"Delivery({', '.join(self.sources)} -> {self.executor_id}, {type(self.data).__name__})"
