"""What is switched on for a run besides running it: type checks, tracing, capture of printed text."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from agentbench._signatures import is_instance_of, type_name
from agentbench.workflow.delivery import Delivery
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.message import WorkflowMessage
from agentbench.workflow.options import TypeCheckMode

if TYPE_CHECKING:
    from agentbench.workflow.event_log import EventLog
    from agentbench.workflow.workflow import Workflow

logger = logging.getLogger("agentbench")


def instrument(workflow: Workflow, log: EventLog) -> None:
    """Set the watchers of a run on its context; with nothing on, the context stays bare."""
    bus = workflow.runner.context
    bus.around = None
    bus.watches_sends = False
    mode = workflow.settings.check_types
    if mode != "off":
        checks = _TypeChecks(log, mode)
        bus.watches_sends, bus.on_send, bus.on_yield = True, checks.sent, checks.yielded


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
        if not declared or any(is_instance_of(value, t) for t in declared):
            return
        text = (
            f"Executor {delivery.executor_id!r} {verb} a {type(value).__name__} but declares "
            f"{' | '.join(type_name(t) for t in declared)}. Change the value or the declaration."
        )
        if self._mode == "error":
            raise TypeError(text)
        self._log.append(WorkflowEvent.warning(text), delivery)
