"""What is switched on for a run besides running it: type checks, tracing, capture of printed text.

With nothing on, the hot path meets two fields that are None and one that is False.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from agentbench._signatures import is_instance_of, type_name
from agentbench.observability import is_tracing
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.options import TypeCheckMode

if TYPE_CHECKING:
    from agentbench.workflows.engine.event_log import EventLog
    from agentbench.workflows.pages.runner_context import InProcRunnerContext
    from agentbench.workflows.run.workflow import Workflow

Around = Callable[[Delivery, Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]


def instrument(workflow: Workflow, log: EventLog, run_id: str) -> None:
    """Set the watchers of a run on its context."""
    bus = workflow.runner.context
    bus.tracer = None
    if is_tracing():
        from agentbench.workflows.engine.tracing import RunTracer  # noqa: PLC0415 - imports OpenTelemetry

        bus.tracer = RunTracer(workflow, run_id)
    bus.around = _around(bus, log)
    mode = workflow.settings.check_types
    bus.watches_sends = mode != "off" or bus.tracer is not None
    if bus.watches_sends:
        checks = _TypeChecks(log, mode)
        bus.on_send, bus.on_yield = partial(_sent, bus, checks), checks.yielded


def _around(bus: InProcRunnerContext, log: EventLog) -> Around | None:
    tracer = bus.tracer
    if not log.observed:
        return None if tracer is None else tracer.around
    from agentbench.workflows.events.capture import capture_text  # noqa: PLC0415 - only observed runs capture

    if tracer is None:
        return partial(capture_text, log.append)
    traced = tracer.around

    def both(delivery: Delivery, call: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        return traced(delivery, capture_text(log.append, delivery, call))

    return both


def _sent(bus: InProcRunnerContext, checks: _TypeChecks, delivery: Delivery, envelope: WorkflowMessage) -> None:
    checks.sent(delivery, envelope)
    if bus.tracer is not None:
        bus.tracer.sent(delivery, envelope)


class _TypeChecks:
    """Compares what handlers send and yield with what they declare."""

    def __init__(self, log: EventLog, mode: TypeCheckMode) -> None:
        self._log = log
        self._mode = mode

    def sent(self, delivery: Delivery, envelope: WorkflowMessage) -> None:
        if delivery.handler is not None:
            self._check(delivery, envelope.data, delivery.handler.signature.send_types, "sends")

    def yielded(self, delivery: Delivery, output: Any) -> None:
        if delivery.handler is not None:
            self._check(delivery, output, delivery.handler.signature.yield_types, "yields")

    def _check(self, delivery: Delivery, value: Any, declared: tuple[Any, ...], verb: str) -> None:
        if self._mode == "off" or not declared or any(is_instance_of(value, t) for t in declared):
            return
        text = (
            f"Executor {delivery.executor_id!r} {verb} a {type(value).__name__} but declares "
            f"{' | '.join(type_name(t) for t in declared)}. Change the value or the declaration."
        )
        if self._mode == "error":
            raise TypeError(text)
        self._log.append(WorkflowEvent.warning(text), delivery)
