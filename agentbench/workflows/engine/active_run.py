"""One run while it is active: its graph, its state, and the features that are switched on for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentbench._bridge import call_on
from agentbench._clock import runtime_defaults
from agentbench._signatures import is_instance_of, type_name
from agentbench._user_code import warn_user
from agentbench.exceptions import MessageLimitError, WorkflowWarning
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.engine.turns import LoopTurns, turns_of
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.message import Buffers, Delivery, MessageType, WorkflowMessage, internal_source
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State
from agentbench.workflows.graph.graph import Graph

if TYPE_CHECKING:
    from agentbench.workflows.engine.tracing import RunTracer
    from agentbench.workflows.executors.placement import Placement
    from agentbench.workflows.executors.recorder import RunRecorder
    from agentbench.workflows.graph.boundary import PauseReason

NOTHING: Mapping[str, Sequence[WorkflowMessage]] = MappingProxyType({})
"""No message is being delivered."""


class RunState:
    """The state of a run, or of a workflow between its runs.

    Attributes:
        superstep: number of the last superstep; 0 after the start executors.
        messages: queued for the next superstep, by source id.
        requests: open requests, by id.
        buffers: messages that wait in fan-in barriers.
        last_checkpoint_id: the parent of the next checkpoint.
        unconverged: the last run reached its limit with messages left.
        delivering: the messages that the running superstep has taken from `messages`.
        raised: ids of the requests that the running superstep has emitted.
        tools: what agents get in this run beside their own tools.
        writers: executors that wrote each key of `state` in the running superstep; noted in observed runs.
    """

    def __init__(self, state: State | None = None) -> None:
        self.superstep = 0
        self.state = State() if state is None else state
        self.messages: dict[str, list[WorkflowMessage]] = {}
        self.requests: dict[str, WorkflowEvent[Any]] = {}
        self.buffers: Buffers = {}
        self.log = EventLog()
        self.last_checkpoint_id: str | None = None
        self.unconverged = False
        self.delivering = NOTHING
        self.raised: list[str] = []
        self.tools: Sequence[Any] = ()
        self.writers: dict[str, list[str]] = {}

    def queued_messages(self) -> list[WorkflowMessage]:
        """Return the messages queued for the next superstep, in one list."""
        return [message for queued in self.messages.values() for message in queued]

    def queue(self, messages: Iterable[WorkflowMessage]) -> None:
        """Queue messages for the next superstep, in this order."""
        for message in messages:
            self.messages.setdefault(message.source_id, []).append(message)

    def respond(self, request_id: str, value: Any) -> None:
        """Close a request and queue the response to its executor; the value has already been checked."""
        event = self.requests.pop(request_id)
        target = event.source_executor_id
        self.queue((WorkflowMessage(value, internal_source(target), target, MessageType.RESPONSE, None, None, event),))

    def drop_messages(self) -> None:
        """Drop queued, buffered and currently delivered messages; shared state and open requests stay."""
        self.messages = {}
        self.buffers = {}
        self.delivering = NOTHING
        self.raised = []

    def reset(self) -> None:
        """Clear everything: messages, requests, buffers, shared state; set the counters to 0."""
        self.drop_messages()
        self.requests = {}
        self.state.clear()
        self.superstep = 0
        self.unconverged = False
        self.last_checkpoint_id = None
        self.tools = ()


# ---- the active run


_TURN_S = 0.005
"""Seconds that a run may occupy the event loop if its handlers never wait."""

Around = Callable[[Delivery, Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]


class ActiveRun:
    """The objects that handlers, their contexts and the runner share during one run; None if switched off.

    Attributes:
        stop_requested: a stop at the next boundary was requested; read by handlers, set from any thread.
        pause: the reason why the boundary hook wants the run to pause.
        placement: carries out the handlers of executors on workers. `around` is set then, so that no handler is called
            by the short way.
        around: wraps the call of a handler for tracing and captured text.
        recorder: records the model calls of handlers, conditions and the boundary hook.
        on_send, on_yield: called with what handlers send and yield, for type checks and tracing.
        inner_steps: where runs inside nodes wait, if this run is being stepped through.
        gates: semaphores of executors with a concurrency limit, created on first use.
        first_metadata: returns what the first checkpoint of a started run has in its metadata; None once it was saved.
        reported_state: the values of shared state that were last reported to observers.
        max_messages: how many messages one superstep may queue for the next.
        timeout: seconds for executors without their own timeout.
        turn_ends: the monotonic time at which to ask `holds_loop`.
    """

    def __init__(
        self,
        graph: Graph,
        run_state: RunState,
        log: EventLog,
        options: RunOptions,
        *,
        run_id: str = "",
        streaming: bool = False,
    ) -> None:
        self.graph = graph
        self.run_state = run_state
        self.state = run_state.state
        self.log = log
        self.options = options
        self.run_id = run_id
        self.streaming = streaming
        self.strict_context = graph.settings.strict_context
        self.output_kinds = graph.output_kinds
        limit = options.max_messages
        self.max_messages = graph.settings.max_messages if limit is None else limit
        self.timeout = options.timeout
        self.turn_ends = 0.0
        self._turns: LoopTurns | None = None
        self._n_turns = 0
        self.stop_requested = False
        self.pause: PauseReason | None = None
        self.tracer: RunTracer | None = None
        self.placement: Placement | None = None
        self.around: Around | None = None
        self.on_send: Callable[[Delivery, WorkflowMessage], None] | None = None
        self.on_yield: Callable[[Delivery, Any], None] | None = None
        self.inner_steps: InnerSteps | None = None
        self.gates: dict[str, asyncio.Semaphore] = {}
        self.first_metadata: Callable[[], Mapping[str, Any]] | None = None
        self.reported_state: dict[str, Any] = {}
        if log.observed:
            from agentbench.workflows.events.capture import capture_text  # noqa: PLC0415 - only observed runs capture

            self.around = partial(capture_text, log.append)
        self.recorder: RunRecorder | None = None
        if options.record is not None and not isinstance(options.record, bool):
            self.recorder = recorder = options.record
            capture = self.around or (lambda _, call: call)
            self.around = lambda delivery, call: recorder.around(
                delivery.executor_id, delivery.superstep, capture(delivery, call)
            )
        if options.workers is not None:
            from agentbench.workflows.executors.placement import placement_of  # noqa: PLC0415 - most runs have none

            self.placement = placement_of(options.workers)
            self.around = self.around or (lambda _, call: call)
        if graph.settings.check_types != "off":
            self.on_send = lambda delivery, envelope: self._check_type(delivery, envelope.data, "send")
            self.on_yield = lambda delivery, output: self._check_type(delivery, output, "yield")

    @property
    def tools(self) -> Sequence[Any]:
        """The tools that agents get in this run beside their own."""
        return self.run_state.tools

    def trace(self, workflow_id: str | None) -> None:
        """Switch tracing on: one span for the run, for each handler, each message and each edge group."""
        from agentbench.workflows.engine.tracing import RunTracer  # noqa: PLC0415 - imports OpenTelemetry

        self.tracer = tracer = RunTracer(self.graph, workflow_id, self.run_id)
        capture, check = self.around, self.on_send
        self.around = tracer.around
        if capture is not None:
            self.around = lambda delivery, call: tracer.around(delivery, capture(delivery, call))

        def check_and_trace(delivery: Delivery, envelope: WorkflowMessage) -> None:
            if check is not None:
                check(delivery, envelope)
            tracer.trace_send(delivery, envelope)

        self.on_send = check_and_trace

    def holds_loop(self) -> bool:
        """Return whether the run has kept the event loop busy since its turn began; otherwise a new turn begins."""
        loop = asyncio.get_running_loop()
        turns = turns_of(loop)
        if turns is self._turns and turns.count == self._n_turns:
            return True
        self._turns, self._n_turns = turns, turns.ask(loop)
        self.turn_ends = monotonic() + _TURN_S
        return False

    async def yield_turn(self) -> None:
        """Let the event loop do other work, such as timeouts and cancellations."""
        await asyncio.sleep(0)
        self._turns = None
        self.holds_loop()  # a new turn begins

    def raise_request(
        self, delivery: Delivery, data: Any, response_type: Any, request_id: str | None, *, emit: bool = True
    ) -> WorkflowEvent[Any]:
        """Register a request of a handler and emit it, or let the caller emit it. ValueError: the id is in use."""
        if request_id is None:
            request_id = (self.options.ids or runtime_defaults().ids).new_id("request")
        requests = self.run_state.requests
        if request_id in requests:
            msg = (
                f"Request id {request_id!r} is still open, raised by {requests[request_id].source_executor_id!r}. "
                "Use another id, or wait for its response."
            )
            raise ValueError(msg)
        if not delivery.executor.is_request_response_capable:
            text = (
                f"Executor {delivery.executor_id!r} made a request, but has no @response_handler, so it cannot take a "
                "response. Add one to its class."
            )
            if self.log.warn_once(("no response handler", delivery.executor_id), delivery.executor_id, text, delivery):
                warn_user(text, WorkflowWarning)
        event = WorkflowEvent.request_info(request_id, delivery.executor_id, data, response_type)
        requests[request_id] = event
        self.run_state.raised.append(request_id)
        if emit:
            self.emit_request(event, delivery)
        return event

    def open_request(self, event: WorkflowEvent[Any]) -> None:
        """Register a request and emit it. ValueError: the event is not a request."""
        if event.type != "request_info":
            msg = f"Expected a 'request_info' event, got {event.type!r}. Use WorkflowEvent.request_info()."
            raise ValueError(msg)
        self.run_state.requests[event.request_id] = event
        self.run_state.raised.append(event.request_id)
        self.emit_request(event)

    def emit_request(self, event: WorkflowEvent[Any], delivery: Delivery | None = None) -> None:
        """Emit a request; the first request of a run also changes the run's status."""
        self.log.append(event, delivery)
        if self.log.state is WorkflowRunState.IN_PROGRESS:
            self.log.status(WorkflowRunState.IN_PROGRESS_PENDING_REQUESTS)

    def withdraw_request(self, request_id: str) -> None:
        """Remove a registered request that was not emitted."""
        self.run_state.requests.pop(request_id, None)

    def message_limit_error(self, senders: Sequence[str]) -> MessageLimitError:
        """Return the error for queueing more messages than one superstep may, with counts by sender."""
        return MessageLimitError(self.graph.name, self.run_state.superstep, self.max_messages, Counter(senders))

    def note_write(self, key: str, executor_id: str) -> None:
        """Note who wrote a key of shared state."""
        names = self.run_state.writers.setdefault(key, [])
        if executor_id not in names:
            names.append(executor_id)

    def _check_type(self, delivery: Delivery, value: Any, verb: str) -> None:
        declared = () if delivery.handler is None else getattr(delivery.handler.signature, f"{verb}_types")
        if not declared or any(is_instance_of(value, t) for t in declared):
            return
        text = (
            f"Executor {delivery.executor_id!r} {verb}s data of type {type(value).__name__} but declares "
            f"{' | '.join(type_name(t) for t in declared)}. Change the value or the declaration."
        )
        if self.graph.settings.check_types == "error":
            raise TypeError(text)
        self.log.append(WorkflowEvent.warning(text, delivery.executor_id), delivery)


# ---- stops in the middle of a superstep


class InnerSteps:
    """What waits inside a superstep of one run; `wake` notifies the driver of that run.

    Runs inside nodes wait after each of their supersteps, and handlers wait before a model call that needs permission.
    """

    __slots__ = ("_wake", "holds", "waiting")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.holds = False
        """Whether inner runs wait after each superstep; otherwise they run to their end."""
        self.waiting: dict[asyncio.Future[None], PauseReason] = {}

    async def wait(self, path: tuple[str, ...], superstep: int) -> None:
        """Wait after a superstep of the run inside these nodes, outermost first, if inner runs wait."""
        if self.holds:
            from agentbench.workflows.graph.boundary import PauseReason  # noqa: PLC0415 - few runs are stepped inside

            await self.hold(PauseReason(f"inside {'/'.join(path)}, after its superstep {superstep}", "inside"))

    async def hold(self, reason: PauseReason) -> None:
        """Wait until the driver goes on."""
        turn = asyncio.get_running_loop().create_future()
        self.waiting[turn] = reason
        self._wake()
        try:
            await turn
        finally:
            self.waiting.pop(turn, None)

    def go_on(self, *, one: bool) -> None:
        """Let what has waited longest go on to the next stop, or let all inner runs run to their end."""
        self.holds = one
        for turn in list(self.waiting)[: 1 if one else None]:
            del self.waiting[turn]
            if not turn.get_loop().is_closed():
                call_on(turn.get_loop(), partial(_give, turn))


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
