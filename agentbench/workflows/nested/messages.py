"""Requests of a sub-workflow, as messages between the executors of the outer workflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentbench._secrets import masked_fields, masked_repr
from agentbench._signatures import is_instance_of, type_name
from agentbench.serialization.registry import register_type
from agentbench.workflows.events.events import WorkflowEvent


@dataclass(frozen=True, slots=True)
class SubWorkflowResponseMessage:
    """The response to a request of a sub-workflow; created by `SubWorkflowRequestMessage.create_response()`.

    Attributes:
        data: The response.
        source_event: The request that this responds to.

    Example:
        @handler
        async def answer(
            self, request: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
        ) -> None:
            await ctx.send_message(request.create_response("Vienna"), target_id=request.executor_id)
    """

    data: Any
    source_event: WorkflowEvent[Any]

    __repr__ = masked_fields


@dataclass(frozen=True, slots=True)
class SubWorkflowRequestMessage:
    """A request of a sub-workflow, which an executor of the outer workflow handles.

    Attributes:
        source_event: The request as the sub-workflow raised it; `source_event.data` is the requested data.
        executor_id: Id of the `WorkflowExecutor`, to which the response goes.

    Example:
        >>> class Answers(Executor):
        ...     @handler
        ...     async def on_request(
        ...         self, request: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
        ...     ) -> None:
        ...         await ctx.send_message(request.create_response("yes"), target_id=request.executor_id)
    """

    source_event: WorkflowEvent[Any]
    executor_id: str

    def create_response(self, data: Any) -> SubWorkflowResponseMessage:
        """Return the response with this data, to be sent to `executor_id`; `TypeError` if its type is wrong."""
        expected = self.source_event.response_type
        if not is_instance_of(data, expected):
            msg = (
                f"The response to request {self.source_event.request_id!r} of {self.executor_id!r} is "
                f"{masked_repr(data)} ({type(data).__name__}); expected {type_name(expected)}."
            )
            raise TypeError(msg)
        return SubWorkflowResponseMessage(data, self.source_event)


register_type(
    SubWorkflowResponseMessage,
    "sub_workflow_response",
    lambda message: {"data": message.data, "source_event": message.source_event},
    lambda found: SubWorkflowResponseMessage(**found),
)
register_type(
    SubWorkflowRequestMessage,
    "sub_workflow_request",
    lambda message: {"source_event": message.source_event, "executor_id": message.executor_id},
    lambda found: SubWorkflowRequestMessage(**found),
)
