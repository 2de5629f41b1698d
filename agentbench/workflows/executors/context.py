"""What a handler may do: send, yield, ask, and read and write shared state.

A context offers `send_message` and `yield_output` only where the handler's annotation declares them, so there are
four kinds of it, each once for async handlers and once for plain ones, which run in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from agentbench._signatures import type_name
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.blocking import Done, LoopCalls
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.message import WorkflowMessage

if TYPE_CHECKING:
    from typing_extensions import Never, TypeVar

    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.executors.state import State
    from agentbench.workflows.pages.runner_context import InProcRunnerContext

    OutT = TypeVar("OutT", default=Never)
    WorkflowOutT = TypeVar("WorkflowOutT", default=Never)

    class _Gated(Generic[OutT, WorkflowOutT]):
        """What the type checker sees of the members that a declaration makes available.

        Awaitables, not coroutines: plain handlers call them without awaiting.
        """

        def send_message(self, message: OutT, target_id: str | None = None) -> Awaitable[None]: ...
        def yield_output(self, output: WorkflowOutT) -> Awaitable[None]: ...

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
    """The side of the engine that a handler sees; valid for one call of it.

    In an annotation `WorkflowContext` offers neither sending nor yielding, `WorkflowContext[A]` sends `A`, and
    `WorkflowContext[A, B]` sends `A` and yields `B`. Built by hand it is the un-parameterised kind.

    Args:
        executor: whose handler is called.
        source_executor_ids: senders of the message; at least one.
        state: shared state.
        runner_context: where messages, events and requests go.

    Raises:
        ValueError: no source is given.
    """

    __slots__ = ("_bus", "_delivery", "_held", "_open", "_sent", "_state", "_yielded")

    def __init__(
        self,
        executor: Executor,
        source_executor_ids: Sequence[str],
        state: State,
        runner_context: InProcRunnerContext,
    ) -> None:
        if not source_executor_ids:
            msg = "source_executor_ids is empty; a context needs the id of at least one sender."
            raise ValueError(msg)
        self._bind(Delivery(executor, None, None, tuple(source_executor_ids)), state, runner_context)

    def _bind(self, delivery: Delivery, state: State, bus: InProcRunnerContext) -> None:
        self._delivery = delivery
        self._state = state
        self._bus = bus
        self._open = True
        self._sent: list[WorkflowMessage] = []
        self._yielded: list[Any] = []
        self._held: list[WorkflowEvent[Any]] | None = None

    # ---- where it stands -------------------------------------------------------------------------

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
        """The only sender.

        Raises:
            RuntimeError: there are several, as behind a barrier fan-in.
        """
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
        return self._bus.is_streaming()

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked this run to stop. Safe to poll from a worker thread."""
        return self._bus.stop_requested

    def get_sent_messages(self) -> list[Any]:
        """What this call sent so far."""
        return [m.data for m in self._sent]

    def get_yielded_outputs(self) -> list[Any]:
        """What this call yielded so far."""
        return list(self._yielded)

    # ---- shared state ----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The shared state itself."""
        return self._state

    def get_state(self, key: str, default: Any = None) -> Any:
        """The value of `key`, pending writes of this superstep included."""
        return self._state.get(key, default)

    def set_state(self, key: str, value: Any) -> None:
        """Write `key`; visible to others of this superstep at once, kept when the superstep ends well.

        Raises:
            ValueError: the key starts with an underscore; those are the engine's.
        """
        if key.startswith("_"):
            msg = f"State key {key!r} is reserved: keys that start with '_' belong to the engine. Use another name."
            raise ValueError(msg)
        if self._open or not self._is_late("set_state"):
            self._state.set(key, value)
            if self._bus.log.observed:
                self._bus.note_write(key, self.executor_id)

    def has_state(self, key: str) -> bool:
        """Whether `key` has a value, pending writes included."""
        return self._state.has(key)

    def delete_state(self, key: str) -> None:
        """Delete `key`.

        Raises:
            KeyError: there is no such key.
        """
        if self._open or not self._is_late("delete_state"):
            self._state.delete(key)
            if self._bus.log.observed:
                self._bus.note_write(key, self.executor_id)

    async def read_state(self, key: str, default: Any = None) -> Any:
        """Same as `get_state`, as an awaitable."""
        return self.get_state(key, default)

    async def queue_state_update(self, key: str, value: Any) -> None:
        """Same as `set_state`, as an awaitable."""
        self.set_state(key, value)

    # ---- events and requests ---------------------------------------------------------------------

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event. Types that only the engine may emit become a `warning` event instead."""
        self._add_event(event)

    async def request_info(self, request_data: Any, response_type: Any, *, request_id: str | None = None) -> None:
        """Ask the outside for a value of `response_type`; returns at once.

        The answer arrives later at this executor's `@response_handler`.

        Raises:
            ValueError: `request_id` names a request that is still open.
        """
        self._request_info(request_data, response_type, request_id)

    def _add_event(self, event: WorkflowEvent[Any]) -> None:
        if not self._open and self._is_late("add_event"):
            return
        if event.type in _RESERVED_EVENTS:
            how = "ctx.request_info()" if event.type == "request_info" else "ctx.yield_output(), or another event type"
            event = WorkflowEvent.warning(
                f"Executor {self.executor_id!r} tried to emit a {event.type!r} event, which only the engine may. "
                f"Use {how}."
            )
        self._bus.log.append(event, self._delivery)

    def _request_info(self, request_data: Any, response_type: Any, request_id: str | None) -> None:
        if not self._open and self._is_late("request_info"):
            return
        executor = self._delivery.executor
        if not executor.is_request_supported(type(request_data), response_type):
            logger.warning(
                "Executor %r asks with %s for %s but has no @response_handler for that pair; "
                "the answer will go nowhere.",
                executor.id,
                type(request_data).__name__,
                type_name(response_type),
            )
        held = self._held
        event = self._bus.ask(self._delivery, request_data, response_type, request_id, emit=held is None)
        if held is not None:
            held.append(event)

    # ---- the engine's side -----------------------------------------------------------------------

    def _send(self, message: Any, target_id: str | None) -> None:
        if not self._open and self._is_late("send_message"):
            return
        envelope = WorkflowMessage(message, self._delivery.executor_id, target_id)
        if self._bus.watches_sends:
            self._bus.on_send(self._delivery, envelope)
        self._sent.append(envelope)

    def _yield(self, output: Any) -> None:
        if not self._open and self._is_late("yield_output"):
            return
        bus, delivery = self._bus, self._delivery
        if bus.watches_sends:
            bus.on_yield(delivery, output)
        self._yielded.append(output)
        kind = bus.classify_yielded_output(delivery.executor_id)
        if kind is None:
            return
        event = WorkflowEvent(kind, output, origin=_FRAMEWORK, executor_id=delivery.executor_id)
        if self._held is None:
            bus.log.append(event, delivery)
        else:
            self._held.append(event)

    def _hold_back(self) -> None:
        """Keep outputs and requests back until the attempt has succeeded."""
        self._held = []

    def _close(self) -> None:
        """End of the call: whatever comes later is not delivered."""
        self._open = False
        for event in self._held or ():
            if event.type == "request_info":
                self._bus.emit_request(event, self._delivery)
            else:
                self._bus.log.append(event, self._delivery)

    def _abandon(self) -> None:
        """The call failed or was cancelled: as `_close`, and what was held back is dropped."""
        self._open = False
        held, self._held = self._held, None
        for event in held or ():
            if event.type == "request_info":
                self._bus.requests.pop(event.request_id, None)

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
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)

    def __repr__(self) -> str:
        return f"WorkflowContext({self.executor_id!r}, sources={self.source_executor_ids!r})"


class WorkflowContextBase(WorkflowContext):
    """A context made by the engine for one delivery."""

    __slots__ = ()

    def __init__(self, delivery: Delivery, state: State, bus: InProcRunnerContext) -> None:
        # Written out, not self._bind(): one is made per delivery.
        self._delivery = delivery
        self._state = state
        self._bus = bus
        self._open = True
        self._sent = []
        self._yielded = []
        self._held = None


class _Sends:
    __slots__ = ()

    async def send_message(self: Any, message: Any, target_id: str | None = None) -> None:
        """Send a message on to connected executors; it arrives in the next superstep.

        Args:
            message: the value.
            target_id: only to this executor, which must be connected.
        """
        self._send(message, target_id)


class _Yields:
    __slots__ = ()

    async def yield_output(self: Any, output: Any) -> None:
        """Hand a value out of the workflow."""
        self._yield(output)


class _BlockingContext(WorkflowContextBase):
    """For plain handlers: every call has taken effect when it returns, from the worker thread."""

    __slots__ = ("_calls",)

    def __init__(self, delivery: Delivery, state: State, bus: InProcRunnerContext) -> None:
        super().__init__(delivery, state, bus)
        self._calls = LoopCalls()

    def add_event(self, event: WorkflowEvent[Any]) -> Any:
        """Emit an event; see `WorkflowContext.add_event`."""
        return self._calls.run(self._add_event, event)

    def request_info(self, request_data: Any, response_type: Any, *, request_id: str | None = None) -> Any:
        """Ask the outside; see `WorkflowContext.request_info`."""
        return self._calls.run(self._request_info, request_data, response_type, request_id)

    def read_state(self, key: str, default: Any = None) -> Any:
        """Same as `get_state`, as something that may be awaited."""
        return Done(self.get_state(key, default))

    def queue_state_update(self, key: str, value: Any) -> Any:
        """Same as `set_state`, as something that may be awaited."""
        self.set_state(key, value)
        return Done(None)

    def _is_late(self, member: str) -> bool:
        # The thread of a cancelled call cannot be ended; what it still does must reach nobody.
        if self._calls.abandoned:
            return True
        return super()._is_late(member)

    def _abandon(self) -> None:
        super()._abandon()
        self._calls.abandon()


class _BlockingSends:
    __slots__ = ()

    def send_message(self: Any, message: Any, target_id: str | None = None) -> Any:
        """Send a message; see the async form. It is queued when this returns."""
        return self._calls.run(self._send, message, target_id)


class _BlockingYields:
    __slots__ = ()

    def yield_output(self: Any, output: Any) -> Any:
        """Hand a value out of the workflow; see the async form."""
        return self._calls.run(self._yield, output)


def _kinds(base: type, sends: type, yields: type) -> dict[tuple[bool, bool], type[WorkflowContextBase]]:
    name = "WorkflowContext"
    return {
        (False, False): type(name, (base,), {"__slots__": ()}),
        (True, False): type(name, (sends, base), {"__slots__": ()}),
        (False, True): type(name, (yields, base), {"__slots__": ()}),
        (True, True): type(name, (sends, yields, base), {"__slots__": ()}),
    }


_ASYNC_KINDS = _kinds(WorkflowContextBase, _Sends, _Yields)
_BLOCKING_KINDS = _kinds(_BlockingContext, _BlockingSends, _BlockingYields)


def context_class(*, can_send: bool, can_yield: bool, blocking: bool) -> type[WorkflowContextBase]:
    """The class of context for a handler that declares these members."""
    return (_BLOCKING_KINDS if blocking else _ASYNC_KINDS)[can_send, can_yield]
