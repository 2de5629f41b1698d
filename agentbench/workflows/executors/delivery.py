"""One message on its way into one handler: what a superstep is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage

if TYPE_CHECKING:
    from agentbench.workflows.executors.context import WorkflowContextBase
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.handlers import HandlerSpec


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
        error: what the handler raised, once it has.
        disowned: the run was abandoned; a handler that has not started must not.
        context: the handler's context while it runs, so that an abandoned run can close it.
    """

    __slots__ = (
        "began_ns",
        "context",
        "data",
        "disowned",
        "error",
        "executor",
        "executor_id",
        "handler",
        "messages",
        "nth",
        "order",
        "parent_span_id",
        "request",
        "sources",
        "span_id",
        "superstep",
    )

    def __init__(
        self,
        executor: Executor,
        handler: HandlerSpec | None,
        data: Any,
        sources: tuple[str, ...],
        messages: tuple[WorkflowMessage, ...] = (),
        request: WorkflowEvent[Any] | None = None,
    ) -> None:
        self.executor = executor
        self.executor_id = executor.id
        self.handler = handler
        self.data = data
        self.sources = sources
        self.messages = messages
        self.request = request
        self.superstep = 0
        self.order = 0
        self.nth = 0
        self.error: BaseException | None = None
        self.context: WorkflowContextBase | None = None
        self.disowned = False
        self.began_ns = 0
        self.span_id: str | None = None
        self.parent_span_id: str | None = None

    @property
    def task_id(self) -> str:
        """`<superstep>:<executor id>:<k>`, equal from run to run."""
        return f"{self.superstep}:{self.executor_id}:{self.nth}"

    def __repr__(self) -> str:
        return f"Delivery({', '.join(self.sources)} -> {self.executor_id}, {type(self.data).__name__})"
