"""Spans of a build and of a run; imported only when `observability.is_tracing()` says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, TraceFlags

from agentbench.observability.instruments import error_text, get_tracer, mark_failed
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import EdgeGroupDeliveryStatus, PlanNotes

_FINE = (
    EdgeGroupDeliveryStatus.DELIVERED,
    EdgeGroupDeliveryStatus.BUFFERED,
    EdgeGroupDeliveryStatus.DROPPED_CONDITION_FALSE,
)


def traced_build(
    name: str | None, description: str | None, build: Callable[[Callable[[], None]], Any], *, definition: bool
) -> Any:
    """Return the workflow of `build(on_validated)`, with a span for it; `definition` writes the graph into the span."""
    attributes = {"workflow_builder.name": name or "", "workflow_builder.description": description or ""}
    with get_tracer().start_as_current_span(
        "workflow.build", attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        span.add_event("build.started")
        try:
            workflow = build(lambda: span.add_event("build.validation_completed"))
        except Exception as error:
            span.add_event(
                "build.error", {"build.error.message": error_text(error), "build.error.type": type(error).__name__}
            )
            mark_failed(span, error)
            raise
        span.set_attribute("workflow.id", workflow.id)
        if definition:
            span.set_attribute("workflow.definition", json.dumps(workflow.to_dict(), default=str))
        span.add_event("build.completed")
        return workflow


class RunTracer:
    """Spans of one run: the run, each executor, each message, each edge group."""

    def __init__(self, graph: Graph, workflow_id: str, run_id: str) -> None:
        self._tracer = get_tracer()
        attributes = {"workflow.id": workflow_id, "workflow.name": graph.name, "workflow.run_id": run_id}
        if graph.description:
            attributes["workflow.description"] = graph.description
        self._run = self._tracer.start_span("workflow.run", attributes=attributes)
        self._context = trace.set_span_in_context(self._run)
        self._run.add_event("workflow.started")

    def end_run(self) -> None:
        """End the span of a run that ended well."""
        self._run.add_event("workflow.completed")
        self._run.end()

    def fail_run(self, error: BaseException) -> None:
        """End the span of a run that failed or was cancelled."""
        self._run.add_event("workflow.error", {"error.message": error_text(error), "error.type": type(error).__name__})
        mark_failed(self._run, error)
        self._run.end()

    async def around(self, delivery: Delivery, call: Coroutine[Any, Any, Any]) -> Any:
        """Await a handler inside its span."""
        first = delivery.messages[0] if delivery.messages else None
        attributes = {
            "executor.id": delivery.executor_id,
            "executor.type": delivery.executor.type,
            "message.type": first.type.value if first is not None else "standard",
            "message.payload_type": type(delivery.data).__name__,
            "workflow.iteration": delivery.superstep,
        }
        with self._tracer.start_as_current_span(
            f"executor.process {delivery.executor_id}",
            context=self._context,
            attributes=attributes,
            links=_links(delivery.messages),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            delivery.span_id = _hex(span)
            delivery.parent_span_id = _hex(self._run)
            try:
                return await call
            except Exception as error:
                mark_failed(span, error)
                raise

    def trace_send(self, delivery: Delivery, envelope: WorkflowMessage) -> None:
        """Make the span of a sent message and write its context into the envelope."""
        attributes = {"message.type": type(envelope.data).__name__}
        if envelope.target_id is not None:
            attributes["message.destination_executor_id"] = envelope.target_id
        with self._tracer.start_as_current_span("message.send", kind=SpanKind.PRODUCER, attributes=attributes) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            envelope.trace_contexts = [carrier]
            envelope.source_span_ids = [_hex(span)]

    def trace_routing(self, notes: PlanNotes) -> None:
        """Make a span for each message at each edge group."""
        for edge_runner, message, status in notes.outcomes:
            group = edge_runner.group
            attributes: dict[str, Any] = {
                "edge_group.type": group.type,
                "edge_group.id": group.id,
                "message.source_id": message.source_id,
                "edge_group.delivered": status in _FINE,
                "edge_group.delivery_status": status.value,
            }
            if message.target_id is not None:
                attributes["message.target_id"] = message.target_id
            name, links = f"edge_group.process {type(group).__name__}", _links((message,))
            self._tracer.start_span(name, context=self._context, attributes=attributes, links=links).end()


def _hex(span: Span) -> str:
    return format(span.get_span_context().span_id, "016x")


def _links(messages: Sequence[WorkflowMessage]) -> list[Link]:
    """Links to the send spans of messages; those of an untraced run have none."""
    links = []
    for message in messages:
        for carrier in message.trace_contexts or ():
            context = trace.get_current_span(propagate.extract(carrier)).get_span_context()
            if context.is_valid:
                flags = TraceFlags(context.trace_flags)
                links.append(Link(SpanContext(context.trace_id, context.span_id, is_remote=False, trace_flags=flags)))
    return links
