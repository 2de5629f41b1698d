"""What a handler may do: send, yield, request information, and read and write shared state.

A context offers `send_message` and `yield_output` only where the handler's annotation declares them, so there are
four kinds of it, each once for async handlers and once for plain ones, which run in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from agentbench.exceptions import MissingResponseHandlerError
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.blocking import Done, LoopCalls
from agentbench.workflows.executors.delivery import Delivery, require_sources
from agentbench.workflows.executors.host import HandlerHost, by_hand
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from agentbench.workflows.executors.state import State

if TYPE_CHECKING:
    from typing_extensions import Never, TypeVar

    from agentbench.workflows.executors.options import RunOptions
    from agentbench.workflows.executors.runner_context import RunnerContext

    OutT = TypeVar("OutT", default=Never)
    WorkflowOutT = TypeVar("WorkflowOutT", default=Never)

    class _Gated(Generic[OutT, WorkflowOutT]): ...

else:
    OutT = WorkflowOutT = object

    class _Gated:
        __slots__ = ()
        # Not typing.Generic: parameters may be anything here, the decorators check them and say what is wrong.
        __class_getitem__ = classmethod(GenericAlias)


logger = logging.getLogger("agentbench")

_FRAMEWORK = WorkflowEventSource.FRAMEWORK

#: Event types that only the engine may emit.
_RESERVED_EVENTS = frozenset({"started", "status", "failed", "output", "intermediate", "request_info"})

_HOW_TO_DECLARE = {
    "send_message": "annotate the context as WorkflowContext[MessageType] (or give output= to the decorator)",
    "yield_output": (
        "annotate the context as WorkflowContext[MessageType, OutputType], with Never for a message type that is not "
        "sent (or give workflow_output= to the decorator)"
    ),
}


class WorkflowContext(_Gated[OutT, WorkflowOutT]):
    """What a handler may do while it runs: send messages, yield outputs, request information, share state.

    The annotation of a handler's `ctx` says what the handler may do. `WorkflowContext` offers neither sending nor
    yielding, `WorkflowContext[A]` sends messages of type `A`, `WorkflowContext[A, B]` also yields outputs of type `B`,
    and `WorkflowContext[Never, B]` only yields. A context is valid for one call of the handler. Plain (not async)
    handlers call the same methods without `await`.

    * `await ctx.send_message(message, target_id=None)`: to the connected executors, or only to the one that is named,
      in the next superstep. A message that none of them takes is dropped, see `report_drops` of `WorkflowBuilder`.
    * `await ctx.yield_output(output)`: an output of the workflow.
    * `await ctx.request_info(data, response_type)`: a request to a person; a `@response_handler` gets the response.
    * `ctx.get_state(key, default=None)`, `ctx.set_state(key, value)`: state that all executors share.
    * `await ctx.add_event(event)`: an event for those who watch the run.

    Built by hand, for a host of handlers or a test of one, it offers all of them, and each call acts at once.

    Args:
        executor: The executor whose handler is called.
        source_executor_ids: Ids of the senders of the message; at least one.
        state: Shared state.
        runner_context: Takes messages, events and requests.
        trace_contexts: OpenTelemetry contexts of the message, for `Executor.execute`.
        source_span_ids: Ids of the spans that sent it.
        request_id: Id of the request that is being answered.

    Raises:
        AttributeError: A handler sends or yields without having declared it.
        RuntimeError: A method is called after the handler has ended.

    Example:
        >>> class Split(Executor):
        ...     @handler
        ...     async def split(self, text: str, ctx: WorkflowContext[str, int]) -> None:
        ...         for word in text.split():
        ...             await ctx.send_message(word)
        ...         ctx.set_state("text", text)
        ...         await ctx.yield_output(len(text))
    """

    __slots__ = ("_deferred", "_delivery", "_open", "_run", "_sent", "_yielded")

    def __init__(
        self,
        executor: Any,
        source_executor_ids: Sequence[str],
        state: State,
        runner_context: RunnerContext,
        trace_contexts: list[dict[str, str]] | None = None,
        source_span_ids: list[str] | None = None,
        request_id: str | None = None,
    ) -> None:
        sources = require_sources(source_executor_ids)
        envelope = WorkflowMessage(None, sources[0], None, MessageType.STANDARD)
        envelope.trace_contexts, envelope.source_span_ids = trace_contexts, source_span_ids
        request = None if request_id is None else WorkflowEvent.request_info(request_id, executor.id, None, object)
        self._delivery = Delivery(executor, None, None, sources, (envelope,), request)
        self._run: HandlerHost = by_hand().HandRun(runner_context, state)
        self._open = True
        self._sent: list[WorkflowMessage] = []
        self._yielded: list[Any] = []
        self._deferred: list[WorkflowEvent[Any]] | None = None

    # ---- about the call --------------------------------------------------------------------------

    @property
    def executor_id(self) -> str:
        """Id of the executor."""
        return self._delivery.executor_id

    @property
    def task_id(self) -> str:
        """Id of this delivery, `<superstep>:<executor>:<k>`; equal from run to run."""
        return self._delivery.task_id

    @property
    def source_executor_ids(self) -> list[str]:
        """Senders: `["Workflow"]` for the input of a run, all sources in edge order for a barrier fan-in."""
        return list(self._delivery.sources)

    def get_source_executor_id(self) -> str:
        """The only sender; `RuntimeError` if there are several, as behind a barrier fan-in."""
        if len(self._delivery.sources) != 1:
            msg = f"This message has several sources ({', '.join(self._delivery.sources)}); use source_executor_ids."
            raise RuntimeError(msg)
        return self._delivery.sources[0]

    @property
    def request_id(self) -> str | None:
        """Id of the request that is being answered, in a response handler; else None."""
        request = self._delivery.request
        return None if request is None else request.request_id

    def is_streaming(self) -> bool:
        """Whether the run was started with `stream=True`."""
        return self._run.streaming

    @property
    def stop_requested(self) -> bool:
        """Whether a stop of this run was requested. Safe to poll from a worker thread."""
        return self._run.stop_requested

    @property
    def options(self) -> RunOptions:
        """The options of this run."""
        return self._run.options

    def get_sent_messages(self) -> list[Any]:
        """What this call has sent."""
        return [m.data for m in self._sent]

    def get_yielded_outputs(self) -> list[Any]:
        """What this call has yielded."""
        return list(self._yielded)

    # ---- shared state ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The shared state itself."""
        return self._run.state

    def get_state(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, pending writes of this superstep included."""
        return self._run.state.get(key, default)

    def set_state(self, key: str, value: Any) -> None:
        """Write `key`; others read it at once, the end of the superstep commits it. ValueError: it begins with `_`."""
        if key.startswith("_"):
            msg = f"State key {key!r} is reserved: keys that start with '_' belong to the engine. Use another name."
            raise ValueError(msg)
        if self._open or not self._is_late("set_state"):
            self._run.state.set(key, value)
            if self._run.log.observed:
                self._run.note_write(key, self.executor_id)

    def has_state(self, key: str) -> bool:
        """Whether `key` has a value, pending writes included."""
        return self._run.state.has(key)

    def delete_state(self, key: str) -> None:
        """Delete `key`; `KeyError` if there is no such key."""
        if self._open or not self._is_late("delete_state"):
            self._run.state.delete(key)
            if self._run.log.observed:
                self._run.note_write(key, self.executor_id)

    async def read_state(self, key: str, default: Any = None) -> Any:
        """Same as `get_state`, as an awaitable."""
        return self.get_state(key, default)

    async def queue_state_update(self, key: str, value: Any) -> None:
        """Same as `set_state`, as an awaitable."""
        self.set_state(key, value)

    # ---- messages and outputs --------------------------------------------------------------------

    # Awaitables, not coroutines, for the type checker: plain handlers call them without awaiting.

    def send_message(self, message: OutT, target_id: str | None = None) -> Awaitable[None]:
        """Send a message to the connected executors, or to one of them; it arrives in the next superstep."""
        self._send(message, target_id)
        return self._forward(self._sent[-1:])

    def yield_output(self, output: WorkflowOutT) -> Awaitable[None]:
        """Yield a value as an output of the workflow."""
        self._yield(output)
        return self._forward()

    # ---- events and requests ---------------------------------------------------------------------

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event. Types that only the engine may emit become a `warning` event instead."""
        self._add_event(event)
        await self._forward()

    async def request_info(self, request_data: Any, response_type: Any, *, request_id: str | None = None) -> None:
        """Request a value of `response_type` from outside the workflow, such as from a person; returns at once.

        The response arrives in a later superstep at this executor's `@response_handler`.

        Args:
            request_data: What the person needs to know; its type selects the response handler.
            response_type: Type of the response.
            request_id: A new one by default; `ValueError` if it is that of an open request.

        Raises:
            MissingResponseHandlerError: The executor has a `@response_handler`, but none for this request and its
                response. Without any, the run warns, and refuses a response.
        """
        self._request_info(request_data, response_type, request_id)
        await self._forward()

    def _forward(self, sent: Sequence[WorkflowMessage] = ()) -> Awaitable[None]:
        run: Any = self._run
        forwarding: Awaitable[None] = run.forward(sent)
        return forwarding

    def _add_event(self, event: WorkflowEvent[Any]) -> None:
        if not self._open and self._is_late("add_event"):
            return
        if event.type in _RESERVED_EVENTS:
            how = "ctx.request_info()" if event.type == "request_info" else "ctx.yield_output(), or another event type"
            text = (
                f"Executor {self.executor_id!r} tried to emit an event of type {event.type!r}, which only the engine "
                f"may. Use {how}."
            )
            logger.warning(text)
            event = WorkflowEvent.warning(text, self.executor_id)
        self._run.log.append(event, self._delivery)

    def _request_info(self, request_data: Any, response_type: Any, request_id: str | None) -> None:
        if not self._open and self._is_late("request_info"):
            return
        executor = self._delivery.executor
        handlers = executor._ab_responses  # noqa: SLF001 - of the same room
        if handlers.specs and handlers.find_unhandled(request_data, response_type):
            raise MissingResponseHandlerError(executor.id, type(request_data), response_type)
        deferred = self._deferred
        event = self._run.raise_request(self._delivery, request_data, response_type, request_id, emit=deferred is None)
        if deferred is not None:
            deferred.append(event)

    # ---- the engine's side -----------------------------------------------------------------------

    def _send(self, message: Any, target_id: str | None) -> None:
        if not self._open and self._is_late("send_message"):
            return
        run, sent = self._run, self._sent
        envelope = WorkflowMessage(message, self._delivery.executor_id, target_id)
        if run.on_send is not None:
            run.on_send(self._delivery, envelope)
        sent.append(envelope)
        if len(sent) > run.max_messages:  # a handler may send without end, and never come to its own
            raise run.message_limit_error([envelope.source_id] * len(sent))

    def _yield(self, output: Any) -> None:
        if not self._open and self._is_late("yield_output"):
            return
        run, delivery = self._run, self._delivery
        if run.on_yield is not None:
            run.on_yield(delivery, output)
        self._yielded.append(output)
        kinds = run.output_kinds
        kind = "output" if kinds is None else kinds(delivery.executor_id)
        if kind is None:
            return
        event = WorkflowEvent(kind, output, origin=_FRAMEWORK, executor_id=delivery.executor_id)
        if self._deferred is None:
            run.log.append(event, delivery)
        else:
            self._deferred.append(event)

    def _defer_events(self) -> None:
        """Emit outputs and requests only when the attempt has succeeded."""
        self._deferred = []

    def _close(self) -> None:
        """End the call well: deferred events are emitted, later calls are errors."""
        self._open = False
        for event in self._deferred or ():
            if event.type == "request_info":
                self._run.emit_request(event, self._delivery)
            else:
                self._run.log.append(event, self._delivery)

    def _abandon(self) -> None:
        """End the call after a failure or a cancellation: deferred events are dropped, their requests withdrawn."""
        self._open = False
        deferred, self._deferred = self._deferred, None
        for event in deferred or ():
            if event.type == "request_info":
                self._run.withdraw_request(event.request_id)

    def _is_late(self, member: str) -> bool:
        msg = (
            f"ctx.{member}() was called after the handler of {self.executor_id!r} had ended. "
            "A context is valid for one call: await everything the handler starts before it returns."
        )
        raise RuntimeError(msg)

    def __getattr__(self, name: str) -> NoReturn:
        # Called for missing names only. Slots raise here too when read before they are set.
        if name in _HOW_TO_DECLARE:
            msg = (
                f"ctx.{name} is not available in this handler of {self.executor_id!r}: its context does not declare "
                f"it. To use it, {_HOW_TO_DECLARE[name]}."
            )
        else:
            msg = f"'WorkflowContext' object has no attribute {name!r}"
        raise AttributeError(msg)

    def __repr__(self) -> str:
        return f"WorkflowContext({self.executor_id!r}, sources={self.source_executor_ids!r})"


class HandlerContext(WorkflowContext):
    """A context that the engine makes for one delivery; it offers neither sending nor yielding."""

    __slots__ = ()

    if not TYPE_CHECKING:
        send_message = yield_output = property()  # not there: __getattr__ says how to declare them

    def __init__(self, delivery: Delivery, run: HandlerHost) -> None:
        self._delivery = delivery
        self._run = run
        self._open = True
        self._sent = []
        self._yielded = []
        self._deferred = None

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event."""
        self._add_event(event)

    async def request_info(self, request_data: Any, response_type: Any, *, request_id: str | None = None) -> None:
        """Request a value from outside."""
        self._request_info(request_data, response_type, request_id)

    request_info.__qualname__ = "WorkflowContext.request_info"  # Python names it where it is not awaited


class SendingContext(HandlerContext):
    """A context that offers sending."""

    __slots__ = ()

    async def send_message(self, message: Any, target_id: str | None = None) -> None:
        """Send a message to the connected executors, or to one of them; it arrives in the next superstep."""
        self._send(message, target_id)

    send_message.__qualname__ = "WorkflowContext.send_message"  # Python names it where it is not awaited


class YieldingContext(HandlerContext):
    """A context that offers yielding."""

    __slots__ = ()

    async def yield_output(self, output: Any) -> None:
        """Yield a value as an output of the workflow."""
        self._yield(output)

    yield_output.__qualname__ = "WorkflowContext.yield_output"  # Python names it where it is not awaited


class SendingYieldingContext(SendingContext, YieldingContext):
    """A context that offers both."""

    __slots__ = ()


class BlockingContext(HandlerContext):
    """For plain handlers, which run in a worker thread: every call has taken effect when it returns."""

    __slots__ = ("_calls",)

    def __init__(self, delivery: Delivery, run: HandlerHost) -> None:
        super().__init__(delivery, run)
        self._calls = LoopCalls()

    def add_event(self, event: WorkflowEvent[Any]) -> Any:
        """Emit an event."""
        return self._calls.run(self._add_event, event)

    def request_info(self, request_data: Any, response_type: Any, *, request_id: str | None = None) -> Any:
        """Request a value from outside."""
        return self._calls.run(self._request_info, request_data, response_type, request_id)

    def queue_state_update(self, key: str, value: Any) -> Any:
        """Same as `set_state`."""
        self.set_state(key, value)
        return Done()

    def _is_late(self, member: str) -> bool:
        # The thread of a cancelled call cannot be ended; what it does after that has no effect.
        if self._calls.abandoned:
            return True
        return super()._is_late(member)

    def _abandon(self) -> None:
        super()._abandon()
        self._calls.abandon()


class BlockingSendingContext(BlockingContext):
    """A blocking context that offers sending."""

    __slots__ = ()

    def send_message(self, message: Any, target_id: str | None = None) -> Any:
        """Send a message; it is queued when this returns."""
        return self._calls.run(self._send, message, target_id)


class BlockingYieldingContext(BlockingContext):
    """A blocking context that offers yielding."""

    __slots__ = ()

    def yield_output(self, output: Any) -> Any:
        """Yield a value as an output of the workflow."""
        return self._calls.run(self._yield, output)


class BlockingSendingYieldingContext(BlockingSendingContext, BlockingYieldingContext):
    """A blocking context that offers both."""

    __slots__ = ()


# By whether the handler blocks, then by whether it can send, can yield.
_CONTEXTS: tuple[tuple[tuple[type[HandlerContext], ...], ...], ...] = (
    ((HandlerContext, YieldingContext), (SendingContext, SendingYieldingContext)),
    ((BlockingContext, BlockingYieldingContext), (BlockingSendingContext, BlockingSendingYieldingContext)),
)


def context_class(*, can_send: bool, can_yield: bool, blocking: bool) -> type[HandlerContext]:
    """Return the class of context for a handler that declares these members."""
    return _CONTEXTS[blocking][can_send][can_yield]
