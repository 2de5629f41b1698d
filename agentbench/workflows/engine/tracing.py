"""Spans of builds and runs; imported only if `observability.is_tracing()` is true."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, TraceFlags

from agentbench.observability.instruments import OtelAttr, error_text, get_tracer, mark_failed
from agentbench.serialization.plain import to_plain
from agentbench.workflows.executors.message import Delivery, MessageType, WorkflowMessage
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import EdgeGroupDeliveryStatus, PlanNotes

Attributes = dict[str, Any]

_FINE = (
    EdgeGroupDeliveryStatus.DELIVERED,
    EdgeGroupDeliveryStatus.BUFFERED,
    EdgeGroupDeliveryStatus.DROPPED_CONDITION_FALSE,
)


def build_with_span(
    name: str | None, description: str | None, build: Callable[[Callable[[], None]], Any], *, definition: bool
) -> Any:
    """Return the workflow of `build(on_validated)` inside a span; `definition` writes the graph into the span."""
    attributes: Attributes = {
        OtelAttr.WORKFLOW_BUILDER_NAME: name or "",
        OtelAttr.WORKFLOW_BUILDER_DESCRIPTION: description or "",
    }
    with get_tracer().start_as_current_span(
        OtelAttr.WORKFLOW_BUILD_SPAN, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        span.add_event(OtelAttr.BUILD_STARTED)
        try:
            workflow = build(lambda: span.add_event(OtelAttr.BUILD_VALIDATION_COMPLETED))
        except Exception as error:
            span.add_event(
                OtelAttr.BUILD_ERROR,
                {OtelAttr.BUILD_ERROR_MESSAGE: error_text(error), OtelAttr.BUILD_ERROR_TYPE: type(error).__name__},
            )
            mark_failed(span, error)
            raise
        span.set_attribute(OtelAttr.WORKFLOW_ID, workflow.id)
        if definition:
            span.set_attribute(OtelAttr.WORKFLOW_DEFINITION, json.dumps(to_plain(workflow.to_dict(), mask=True)))
        span.add_event(OtelAttr.BUILD_COMPLETED)
        return workflow


class RunTracer:
    """Spans of one run, its executors, messages and edge groups; without a `workflow_id`, no span of the run itself."""

    def __init__(self, graph: Graph, workflow_id: str | None, run_id: str) -> None:
        self._tracer = get_tracer()
        self._context: Context | None = None
        if workflow_id is None:
            self._run = trace.get_current_span()
            return
        attributes: Attributes = {
            OtelAttr.WORKFLOW_ID: workflow_id,
            OtelAttr.WORKFLOW_NAME: graph.name,
            OtelAttr.WORKFLOW_RUN_ID: run_id,
        }
        if graph.description:
            attributes[OtelAttr.WORKFLOW_DESCRIPTION] = graph.description
        self._run = self._tracer.start_span(OtelAttr.WORKFLOW_RUN_SPAN, attributes=attributes)
        self._context = trace.set_span_in_context(self._run)
        self._run.add_event(OtelAttr.WORKFLOW_STARTED)

    def end_run(self) -> None:
        """End the span of a successful run."""
        self._run.add_event(OtelAttr.WORKFLOW_COMPLETED)
        self._run.end()

    def fail_run(self, error: BaseException) -> None:
        """End the span of a run that failed or was cancelled."""
        self._run.add_event(
            OtelAttr.WORKFLOW_ERROR,
            {OtelAttr.ERROR_MESSAGE: error_text(error), OtelAttr.ERROR_TYPE: type(error).__name__},
        )
        mark_failed(self._run, error)
        self._run.end()

    async def around(self, delivery: Delivery, call: Coroutine[Any, Any, Any]) -> Any:
        """Await a handler inside its span."""
        first = delivery.messages[0] if delivery.messages else None
        attributes: Attributes = {
            OtelAttr.EXECUTOR_ID: delivery.executor_id,
            OtelAttr.EXECUTOR_TYPE: delivery.executor.type,
            OtelAttr.MESSAGE_TYPE: str(MessageType.STANDARD if first is None else first.type),
            OtelAttr.MESSAGE_PAYLOAD_TYPE: type(delivery.data).__name__,
            OtelAttr.WORKFLOW_ITERATION: delivery.superstep,
        }
        with self._tracer.start_as_current_span(
            f"{OtelAttr.EXECUTOR_PROCESS_SPAN} {delivery.executor_id}",
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
        """Create the span of a sent message and write its context into the envelope."""
        attributes: Attributes = {OtelAttr.MESSAGE_TYPE: type(envelope.data).__name__}
        if envelope.target_id is not None:
            attributes[OtelAttr.MESSAGE_DESTINATION_EXECUTOR_ID] = envelope.target_id
        with self._tracer.start_as_current_span(
            OtelAttr.MESSAGE_SEND_SPAN, kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            envelope.trace_contexts = [carrier]
            envelope.source_span_ids = [_hex(span)]

    def trace_routing(self, notes: PlanNotes) -> None:
        """Create a span for each message at each edge group."""
        for edge_runner, message, status in notes.outcomes:
            group = edge_runner.group
            attributes: Attributes = {
                OtelAttr.EDGE_GROUP_TYPE: group.type,
                OtelAttr.EDGE_GROUP_ID: group.id,
                OtelAttr.MESSAGE_SOURCE_ID: message.source_id,
                OtelAttr.EDGE_GROUP_DELIVERED: status in _FINE,
                OtelAttr.EDGE_GROUP_DELIVERY_STATUS: status.value,
            }
            if message.target_id is not None:
                attributes[OtelAttr.MESSAGE_TARGET_ID] = message.target_id
            name, links = f"{OtelAttr.EDGE_GROUP_PROCESS_SPAN} {type(group).__name__}", _links((message,))
            self._tracer.start_span(name, context=self._context, attributes=attributes, links=links).end()


def _hex(span: Span) -> str:
    return format(span.get_span_context().span_id, "016x")


def _links(messages: Sequence[WorkflowMessage]) -> list[Link]:
    """Return links to the send spans of messages; messages of an untraced run have none."""
    links = []
    for message in messages:
        for carrier in message.trace_contexts or ():
            context = trace.get_current_span(propagate.extract(carrier)).get_span_context()
            if context.is_valid:
                flags = TraceFlags(context.trace_flags)
                links.append(Link(SpanContext(context.trace_id, context.span_id, is_remote=False, trace_flags=flags)))
    return links
