"""Calls of handlers that run elsewhere: the run's side applies what comes back, the other side records it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from agentbench.exceptions import MessageLimitError
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.engine.invocation import call_handler, warn_of_result
from agentbench.workflows.events.capture import capture_text, watch_output
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import HandlerContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.executors.placement import CallRecord, HandlerCall, Placement
from agentbench.workflows.executors.state import State

# ---- the run's side


async def call_elsewhere(placement: Placement, delivery: Delivery, ctx: HandlerContext, run: ActiveRun) -> None:
    """Have a placement call the handler of a delivery; apply what it did, and raise what it raised."""
    call = HandlerCall(
        data=delivery.data,
        request=delivery.request,
        sources=delivery.sources,
        superstep=delivery.superstep,
        order=delivery.order,
        nth=delivery.nth,
        state=run.state.export_state(),
        options=replace(run.options, workers=None, clock=None, ids=None, metadata={}),
        streaming=run.streaming,
        strict_context=run.strict_context,
        observed=run.log.observed,
        workflow_name=run.graph.name,
        max_messages=run.max_messages,
    )
    record = await placement.call(delivery.executor, call)
    delivery.worker = record.worker
    delivery.attempt = (delivery.attempt or 1) + record.attempts - 1
    if not ctx._open:  # noqa: SLF001 - the engine's side of the context; the run was abandoned
        raise asyncio.CancelledError
    for operation in record.operations:
        _apply(operation, ctx, run)
    if record.error is not None:
        raise record.error
    if record.returned is not None:
        warn_of_result(record.returned, delivery, run)


def _apply(operation: tuple[Any, ...], ctx: HandlerContext, run: ActiveRun) -> None:
    """Do what a handler did elsewhere, as if it did so now."""
    match operation:
        case "send", message, target_id:
            ctx._send(message, target_id)  # noqa: SLF001 - the engine's side of the context, here and below
        case "yield", output:
            ctx._yield(output)  # noqa: SLF001
        case "request", data, response_type, request_id:
            ctx._request_info(data, response_type, request_id)  # noqa: SLF001
        case "event", event:
            run.log.append(event, ctx._delivery)  # noqa: SLF001
        case "set", key, value:
            run.state.set(key, value)
        case "delete", key:
            if run.state.has(key):  # another executor may have deleted it in the same superstep
                run.state.delete(key)
        case "wrote", key:
            if run.log.observed:
                run.note_write(key, ctx.executor_id)


# ---- the other side


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

    observed = True  # so that contexts report who writes which key
    output_kinds = staticmethod(lambda _: None)  # the run decides how yields are emitted

    def __init__(self, call: HandlerCall, *, is_async: bool) -> None:
        self.is_async = is_async
        self.operations: list[tuple[Any, ...]] = []
        self.state: State = _RecordedState(call, self.operations)
        self.streaming, self.options, self.max_messages = call.streaming, call.options, call.max_messages
        self.stop_requested = False
        self._call = call

    @property
    def log(self) -> RecordingHost:
        """The log that receives the events."""
        return self

    def append(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Record an event."""
        self.operations.append(("event", event))

    def on_send(self, delivery: Delivery, message: WorkflowMessage) -> None:
        """Record a message."""
        self.operations.append(("send", message.data, message.target_id))

    def on_yield(self, delivery: Delivery, output: Any) -> None:
        """Record an output."""
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
        self.committed = call.state  # type: ignore[assignment] - read, never changed
        self._operations = operations

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        self._operations.append(("set", key, value))

    def delete(self, key: str) -> None:
        super().delete(key)
        self._operations.append(("delete", key))
