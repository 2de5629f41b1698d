"""Calls of handlers elsewhere, from the other side: a context whose host records what the handler does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from agentbench.exceptions import MessageLimitError
from agentbench.workflows.engine.invocation import call_handler
from agentbench.workflows.events.capture import capture_text, watch_output
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.host import OutputKind
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.placement import CallRecord, HandlerCall
from agentbench.workflows.executors.state import State


async def record_call(
    executor: Executor, call: HandlerCall, on_host: Callable[[RecordingHost], None] | None = None
) -> CallRecord:
    """Call a handler with a context that records, and return the record. `on_host` gets the host before the call.

    Example:
        >>> record = await record_call(executor, call)
    """
    request, data = call.request, call.data
    spec = executor.find_handler(data) if request is None else executor.find_response_handler(request.data, data)
    if spec is None:
        msg = f"Executor {executor.id!r} has no handler for {type(data).__name__} on this worker. Is its code the same?"
        return CallRecord(error=RuntimeError(msg))
    delivery = Delivery(executor, spec, data, call.sources, (), request)
    delivery.superstep, delivery.order, delivery.nth = call.superstep, call.order, call.nth
    host = RecordingHost(call, is_async=spec.is_async)
    record = CallRecord(host.operations)
    if on_host is not None:
        on_host(host)
    ctx = (spec.context if call.strict_context else spec.free_context)(delivery, host)
    try:
        with watch_output() if call.observed else nullcontext():
            handling = call_handler(spec, delivery, ctx)
            result = await (capture_text(host.append, delivery, handling) if call.observed else handling)
        record.returned = None if result is None else type(result).__name__
        ctx._close()  # noqa: SLF001 - the engine's side of the context
    except Exception as error:  # noqa: BLE001 - raised in the run
        ctx._abandon()  # noqa: SLF001
        record.error = error
    return record


class RecordingHost:
    """The host of a handler's context that records what the handler does, see `CallRecord`."""

    def __init__(self, call: HandlerCall, *, is_async: bool) -> None:
        self.is_async = is_async
        self.operations: list[tuple[Any, ...]] = []
        self.observed = True  # so that contexts report who writes which key
        self.output_kinds: Callable[[str], OutputKind | None] | None = lambda _: None  # the run decides
        self.on_send: Callable[[Delivery, WorkflowMessage], None] | None = self._record_send
        self.on_yield: Callable[[Delivery, Any], None] | None = self._record_yield
        self.state: State = _RecordedState(call, self.operations)
        self.streaming, self.max_messages = call.streaming, call.max_messages
        self.options: RunOptions = call.options
        self.tools = call.tools
        self.stop_requested = False
        self._call = call

    @property
    def log(self) -> RecordingHost:
        """The log that receives the events."""
        return self

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Record an event."""
        self.operations.append(("event", event))

    def _record_send(self, delivery: Delivery, message: WorkflowMessage) -> None:
        self.operations.append(("send", message.data, message.target_id))

    def _record_yield(self, delivery: Delivery, output: Any) -> None:
        self.operations.append(("yield", output))

    def raise_request(
        self, delivery: Delivery, data: Any, response_type: Any, request_id: str | None, *, emit: bool
    ) -> WorkflowEvent[Any]:
        """Record a request; the run gives it its id."""
        self.operations.append(("request", data, response_type, request_id))
        return WorkflowEvent.request_info(request_id or "", delivery.executor_id, data, response_type)

    def emit_request(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Do nothing: the run emits it."""

    def withdraw_request(self, request_id: str) -> None:
        """Do nothing: the run withdraws it."""

    def message_limit_error(self, senders: Sequence[str]) -> MessageLimitError:
        """Return the error for queueing more messages than allowed."""
        call = self._call
        return MessageLimitError(call.workflow_name, call.superstep, self.max_messages, Counter(senders))

    def note_write(self, key: str, executor_id: str) -> None:
        """Record that the writer of a key is reported."""
        self.operations.append(("wrote", key))


class _RecordedState(State):
    """The state at the start of a superstep, and the writes of one handler."""

    __slots__ = ("_operations",)

    def __init__(self, call: HandlerCall, operations: list[tuple[Any, ...]]) -> None:
        super().__init__()
        self.committed = call.state
        self._operations = operations

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        self._operations.append(("set", key, value))

    def delete(self, key: str) -> None:
        super().delete(key)
        self._operations.append(("delete", key))
