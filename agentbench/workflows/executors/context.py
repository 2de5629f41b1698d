"""The context of a handler: send, yield, request information, and read and write shared state.

A context offers `send_message` and `yield_output` only if the handler's annotation declares them. So there are four
kinds of context, each for async handlers and for plain ones, which run in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Never, NoReturn

from agentbench.exceptions import MissingResponseHandlerError
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.blocking import Done, LoopCalls
from agentbench.workflows.executors.host import HandlerHost, by_hand
from agentbench.workflows.executors.message import Delivery, MessageType, WorkflowMessage, require_sources
from agentbench.workflows.executors.state import State

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from typing_extensions import TypeVar

    from agentbench.workflows.executors.host import RunnerContext
    from agentbench.workflows.executors.options import RunOptions

    OutT = TypeVar("OutT", default=Never)
    WorkflowOutT = TypeVar("WorkflowOutT", default=Never)

    class _Gated(Generic[OutT, WorkflowOutT]): ...

else:
    OutT = WorkflowOutT = object

    class _Gated:
        __slots__ = ()
        # Not typing.Generic: parameters may be anything here, and the decorators check them with better errors.
        __class_getitem__ = classmethod(GenericAlias)


logger = logging.getLogger("agentbench")

_FRAMEWORK = WorkflowEventSource.FRAMEWORK

_RESERVED_EVENTS = frozenset({"started", "status", "failed", "output", "intermediate", "request_info"})
"""Event types that only the engine may emit."""

_HOW_TO_DECLARE = {
    "send_message": "annotate the context as WorkflowContext[MessageType] (or pass output= to the decorator)",
    "yield_output": (
        "annotate the context as WorkflowContext[MessageType, OutputType], with Never for a message type that is not "
        "sent (or pass workflow_output= to the decorator)"
    ),
}


class WorkflowContext(_Gated[OutT, WorkflowOutT]):
    """The operations of a handler while it runs: send messages, yield outputs, request information, share state.

    The annotation of a handler's `ctx` declares what the handler may do. `WorkflowContext` allows neither sending nor
    yielding, `WorkflowContext[A]` allows sending messages of type `A`, `WorkflowContext[A, B]` also allows yielding
    outputs of type `B`, and `WorkflowContext[Never, B]` only allows yielding. A context is valid for one call of the
    handler. Plain (not async) handlers call the same methods without `await`.

    * `await ctx.send_message(message, target_id=None)`: sends to the connected executors, or only to the named one, in
      the next superstep. A message that no executor takes is dropped, see `report_drops` of `WorkflowBuilder`.
    * `await ctx.yield_output(output)`: yields an output of the workflow.
    * `await ctx.request_info(data, response_type)`: requests an answer from a person; a `@response_handler` receives
      it.
    * `ctx.get_state(key, default=None)`, `ctx.set_state(key, value)`: access state that all executors share.
    * `await ctx.add_event(event)`: emits an event to the observers of the run.

    A context that you create yourself, to host or test handlers, offers all of them, and each call acts immediately.

    Args:
        executor: The executor whose handler is called.
        source_executor_ids: Ids of the senders of the message; at least one.
        state: Shared state.
        runner_context: Receives messages, events and requests.
        trace_contexts: OpenTelemetry contexts of the message, for `Executor.execute`.
        source_span_ids: Ids of the spans of the message's senders.
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
        """The id of the executor."""
        return self._delivery.executor_id

    @property
    def task_id(self) -> str:
        """The id of this delivery, `<superstep>:<executor>:<k>`; the same in every run."""
        return self._delivery.task_id

    @property
    def source_executor_ids(self) -> list[str]:
        """The senders: `["Workflow"]` for the input of a run, all sources in edge order for a barrier fan-in."""
        return list(self._delivery.sources)

    def get_source_executor_id(self) -> str:
        """Return the only sender; `RuntimeError` if there are several, as after a barrier fan-in."""
        if len(self._delivery.sources) != 1:
            msg = f"This message has several sources ({', '.join(self._delivery.sources)}); use source_executor_ids."
            raise RuntimeError(msg)
        return self._delivery.sources[0]

    @property
    def request_id(self) -> str | None:
        """The id of the request that is being answered, in a response handler; otherwise None."""
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

    def get_runtime_tools(self) -> list[Any]:
        """Return the tools of `run(tools=[...])`, which the agents of this run get beside their own.

        Example:
            >>> response = await agent.run(question, tools=ctx.get_runtime_tools())
        """
        return list(self._run.tools)

    def get_sent_messages(self) -> list[Any]:
        """Return the messages that this call has sent."""
        return [m.data for m in self._sent]

    def get_yielded_outputs(self) -> list[Any]:
        """Return the outputs that this call has yielded."""
        return list(self._yielded)

    # ---- shared state ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The shared state itself."""
        return self._run.state

    def get_state(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, including pending writes of this superstep."""
        return self._run.state.get(key, default)

    def set_state(self, key: str, value: Any) -> None:
        """Write `key`, visible to others immediately, committed with the superstep. ValueError: it begins with `_`."""
        if key.startswith("_"):
            msg = f"State key {key!r} is reserved: the engine uses keys that start with '_'. Use another name."
            raise ValueError(msg)
        if self._open or not self._is_late("set_state"):
            self._run.state.set(key, value)
            if self._run.log.observed:
                self._run.note_write(key, self.executor_id)

    def has_state(self, key: str) -> bool:
        """Whether `key` has a value, including pending writes."""
        return self._run.state.has(key)

    def delete_state(self, key: str) -> None:
        """Delete `key`; `KeyError` if the key does not exist."""
        if self._open or not self._is_late("delete_state"):
            self._run.state.delete(key)
            if self._run.log.observed:
                self._run.note_write(key, self.executor_id)

    async def read_state(self, key: str, default: Any = None) -> Any:
        """Return the same as `get_state`, as an awaitable."""
        return self.get_state(key, default)

    async def queue_state_update(self, key: str, value: Any) -> None:
        """Do the same as `set_state`, as an awaitable."""
        self.set_state(key, value)

    # ---- messages and outputs --------------------------------------------------------------------

    # Typed as awaitables, not coroutines: plain handlers call them without awaiting.

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
        """Request a value of `response_type` from outside the workflow, for example from a person. Returns immediately.

        The response arrives in a later superstep, at this executor's `@response_handler`.

        Args:
            request_data: The data that the person needs; its type selects the response handler.
            response_type: Type of the response.
            request_id: By default a new id; `ValueError` if an open request has this id.

        Raises:
            MissingResponseHandlerError: The executor has `@response_handler` methods, but none for this request and
                response. An executor without any may ask: the run warns, and refuses a response.
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
        if len(sent) > run.max_messages:  # a handler may send endlessly, so do not wait until it returns
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
        """Emit outputs and requests only after the attempt has succeeded."""
        self._deferred = []

    def _close(self) -> None:
        """End a successful call: emit deferred events; later calls are errors."""
        self._open = False
        for event in self._deferred or ():
            if event.type == "request_info":
                self._run.emit_request(event, self._delivery)
            else:
                self._run.log.append(event, self._delivery)

    def _abandon(self) -> None:
        """End a call after a failure or cancellation: drop deferred events and withdraw their requests."""
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
        # Called for missing names only; slots that are read before they are set raise here too.
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
    """A context that the engine creates for one delivery; it offers neither sending nor yielding."""

    __slots__ = ()

    if not TYPE_CHECKING:
        send_message = yield_output = property()  # missing on purpose: __getattr__ explains how to declare them

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
        """Request a value from outside the workflow."""
        self._request_info(request_data, response_type, request_id)

    request_info.__qualname__ = "WorkflowContext.request_info"  # for Python's warning about a missing await


class SendingContext(HandlerContext):
    """A context that offers sending."""

    __slots__ = ()

    async def send_message(self, message: Any, target_id: str | None = None) -> None:
        """Send a message to the connected executors, or to one of them; it arrives in the next superstep."""
        self._send(message, target_id)

    send_message.__qualname__ = "WorkflowContext.send_message"  # for Python's warning about a missing await


class YieldingContext(HandlerContext):
    """A context that offers yielding."""

    __slots__ = ()

    async def yield_output(self, output: Any) -> None:
        """Yield a value as an output of the workflow."""
        self._yield(output)

    yield_output.__qualname__ = "WorkflowContext.yield_output"  # for Python's warning about a missing await


class SendingYieldingContext(SendingContext, YieldingContext):
    """A context that offers both."""

    __slots__ = ()


class BlockingContext(HandlerContext):
    """For plain handlers, which run in a worker thread: every call has taken effect when it returns."""

    __slots__ = ("_calls",)

    def __init__(self, delivery: Delivery, run: HandlerHost) -> None:
        super().__init__(delivery, run)
        self._calls = LoopCalls()

    @property
    def loop(self) -> AbstractEventLoop:
        """The event loop of the run."""
        return self._calls.loop

    def add_event(self, event: WorkflowEvent[Any]) -> Any:
        """Emit an event."""
        return self._calls.run(self._add_event, event)

    def request_info(self, request_data: Any, response_type: Any, *, request_id: str | None = None) -> Any:
        """Request a value from outside the workflow."""
        return self._calls.run(self._request_info, request_data, response_type, request_id)

    def queue_state_update(self, key: str, value: Any) -> Any:
        """Same as `set_state`."""
        self.set_state(key, value)
        return Done()

    def _is_late(self, member: str) -> bool:
        # The thread of a cancelled call cannot be ended; its later calls have no effect.
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


# By whether the handler blocks, then by whether it can send and yield.
_CONTEXTS: tuple[tuple[tuple[type[HandlerContext], ...], ...], ...] = (
    ((HandlerContext, YieldingContext), (SendingContext, SendingYieldingContext)),
    ((BlockingContext, BlockingYieldingContext), (BlockingSendingContext, BlockingSendingYieldingContext)),
)


def context_class(*, can_send: bool, can_yield: bool, blocking: bool) -> type[HandlerContext]:
    """Return the context class for a handler that declares these members."""
    return _CONTEXTS[blocking][can_send][can_yield]
