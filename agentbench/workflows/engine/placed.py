"""Calls of handlers that run elsewhere, from the run's side: what is sent, and how it applies what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.executors.context import HandlerContext
from agentbench.workflows.executors.message import Delivery
from agentbench.workflows.executors.placement import HandlerCall, Placement


async def call_elsewhere(placement: Placement, delivery: Delivery, ctx: HandlerContext, run: ActiveRun) -> str | None:
    """Have a placement call the handler of a delivery; apply what it did, and raise what it raised.

    Returns the name of the type of the handler's result, unless that is None.
    """
    call = HandlerCall(
        data=delivery.data,
        request=delivery.request,
        sources=delivery.sources,
        superstep=delivery.superstep,
        order=delivery.order,
        nth=delivery.nth,
        state=run.state.export_state(),
        options=replace(run.options, workers=None, record=None, clock=None, ids=None, metadata={}),
        streaming=run.streaming,
        strict_context=run.strict_context,
        observed=run.log.observed,
        workflow_name=run.graph.name,
        max_messages=run.max_messages,
        tools=run.tools,
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
    return record.returned


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
