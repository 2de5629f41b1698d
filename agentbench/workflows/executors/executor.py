"""The node of a workflow: a named thing with handlers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from agentbench._signatures import flatten_union, is_type_compatible
from agentbench.workflows.executors.delivery import Delivery
from agentbench.workflows.executors.handlers import HandlerSpec, HandlerTable, ResponseTable
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from agentbench.workflows.executors.options import NO_POLICY, ExecutorPolicy

if TYPE_CHECKING:
    from agentbench.workflows.executors.state import State

logger = logging.getLogger("agentbench")


class DeliveryContext(Protocol):
    """What `Executor.execute` needs: an `InProcRunnerContext`."""

    async def deliver(self, delivery: Delivery, state: State) -> None:
        """Call the handler of a delivery and queue what it sends."""


class RequestInfoMixin:
    """Kept so that older code can inherit from it: every `Executor` can ask and answer without it."""


class Executor:
    """A processing unit with one handler per message type.

    Subclasses mark async methods with `@handler`. Shared settings are class attributes:

    * `policy`: timeout, retries and concurrency that the engine keeps, see `ExecutorPolicy`;
    * `serialize = True`: deliveries of one superstep run one after the other;
    * `signature_key`: names the class in the graph signature in place of module and class name, so that a workflow
      saved from a notebook can be resumed from a script.

    Args:
        id: unique in the workflow; not empty.
        type: what `to_dict()` calls this kind of executor; default: the class name.
        type_: the same, for code that avoids the builtin's name.
        defer_discovery: skip the search for handlers (the subclass brings its own).
        timeout: seconds one attempt of a handler may take; replaces the policy's.
        retries: further attempts of a handler that raised; replaces the policy's.
        max_concurrency: deliveries of one superstep at the same time; replaces the policy's.
        ignored: other keywords are accepted and ignored.

    Raises:
        ValueError: the id is empty, there is no handler, or two handlers take the same type.
    """

    serialize: bool = False
    policy: ExecutorPolicy = NO_POLICY
    signature_key: ClassVar[str | None] = None

    def __init__(
        self,
        id: str,  # noqa: A002 - the name is part of the public surface
        *,
        type: str | None = None,  # noqa: A002 - as above
        type_: str | None = None,
        defer_discovery: bool = False,
        timeout: float | None = None,
        retries: int | None = None,
        max_concurrency: int | None = None,
        **ignored: Any,
    ) -> None:
        if not id:
            msg = f"Executor id is {id!r}; expected a non-empty text that is unique in the workflow."
            raise ValueError(msg)
        self.id = id
        self.type = self.type_ = type or type_ or self.__class__.__name__
        if timeout is not None or retries is not None or max_concurrency is not None:
            self.policy = _replaced(self.policy, timeout, retries, max_concurrency)
        if ignored:
            logger.debug("Executor %r ignores the keywords %s.", id, ", ".join(sorted(ignored)))
        self._handlers: HandlerTable | None = None
        self._responses: ResponseTable | None = None
        if not defer_discovery:
            self._discover()

    def _discover(self) -> None:
        cls = self.__class__
        self._handlers = HandlerTable.of_class(cls)
        if not self._handlers.specs:
            msg = (
                f"{cls.__qualname__} has no handler. Mark at least one method (self, message: T, ctx: WorkflowContext) "
                "with @handler, or pass defer_discovery=True."
            )
            raise ValueError(msg)
        self._responses = ResponseTable.of_class(cls)

    # ---- what it takes and gives -----------------------------------------------------------------

    @property
    def input_types(self) -> list[Any]:
        """Message types, one entry per handler, in dispatch order; a union is one entry."""
        return list(self._handlers.input_types) if self._handlers is not None else []

    @property
    def output_types(self) -> list[Any]:
        """Types that handlers and response handlers send; unions flattened, first seen first."""
        return _distinct(tuple([s.signature.send_types for s in self._specs()]))

    @property
    def workflow_output_types(self) -> list[Any]:
        """Types that handlers and response handlers yield; unions flattened, first seen first."""
        return _distinct(tuple([s.signature.yield_types for s in self._specs()]))

    def _specs(self) -> list[HandlerSpec]:
        handlers = self._handlers.specs if self._handlers is not None else []
        return [*handlers, *(self._responses.specs if self._responses is not None else [])]

    def can_handle(self, message: WorkflowMessage) -> bool:
        """Whether a handler (or, for an answer, a response handler) takes this message."""
        if message.type is MessageType.RESPONSE:
            if message.original_request_info_event is None:
                logger.warning("Executor %r got an answer without its request; it cannot be handled.", self.id)
                return False
            return self.find_response_handler(message.original_request_info_event.data, message.data) is not None
        return self.find_handler(message.data) is not None

    def find_handler(self, data: Any) -> HandlerSpec | None:
        """The handler that takes `data`, or None."""
        return self._handlers.find(data) if self._handlers is not None else None

    def find_response_handler(self, request: Any, answer: Any) -> HandlerSpec | None:
        """The response handler for this request and answer, or None."""
        return self._responses.find(request, answer) if self._responses is not None else None

    def accepts_type(self, message_type: Any) -> bool:
        """Whether a handler takes values declared as `message_type`."""
        return any(is_type_compatible(message_type, taken) for taken in self.input_types)

    @property
    def is_request_response_capable(self) -> bool:
        """Whether there is a response handler."""
        return self._responses is not None and bool(self._responses.specs)

    def is_request_supported(self, request_type: Any, response_type: Any) -> bool:
        """Whether a response handler takes answers of `response_type` to requests of `request_type`."""
        return self._responses is not None and self._responses.supports(request_type, response_type)

    # ---- checkpoints -----------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """State of this executor for a checkpoint; override together with `on_checkpoint_restore`."""
        return {}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Take back what `on_checkpoint_save` returned."""

    @property
    def keeps_state(self) -> bool:
        """Whether a subclass overrides a checkpoint hook; others cost nothing when a checkpoint is taken."""
        cls = self.__class__
        return (
            cls.on_checkpoint_save is not Executor.on_checkpoint_save
            or cls.on_checkpoint_restore is not Executor.on_checkpoint_restore
        )

    # ---- the engine's entry ----------------------------------------------------------------------

    async def execute(
        self,
        message: Any,
        source_executor_ids: Sequence[str],
        state: State,
        runner_context: DeliveryContext,
        trace_contexts: list[dict[str, str]] | None = None,
        source_span_ids: list[str] | None = None,
    ) -> None:
        """Deliver one message outside a running workflow; sent messages go to `runner_context`.

        Args:
            message: a value, or a `WorkflowMessage` for an answer.
            source_executor_ids: senders; at least one.
            state: shared state.
            runner_context: takes events, requests and messages.
            trace_contexts: trace contexts of the messages behind this call.
            source_span_ids: their spans.

        Raises:
            RuntimeError: no handler takes the message.
        """
        if isinstance(message, WorkflowMessage):
            envelope = message
        else:
            envelope = WorkflowMessage(message, source_executor_ids[0], None, MessageType.STANDARD)
            envelope.trace_contexts, envelope.source_span_ids = trace_contexts, source_span_ids
        request = envelope.original_request_info_event
        spec = (
            self.find_handler(envelope.data)
            if request is None
            else self.find_response_handler(request.data, envelope.data)
        )
        delivery = Delivery(self, spec, envelope.data, tuple(source_executor_ids), (envelope,), request)
        await runner_context.deliver(delivery, state)

    def to_dict(self) -> dict[str, Any]:
        """`{"id": ..., "type": ...}`."""
        return {"id": self.id, "type": self.type}

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.id!r})"


def _replaced(
    policy: ExecutorPolicy, timeout: float | None, retries: int | None, max_concurrency: int | None
) -> ExecutorPolicy:
    return ExecutorPolicy(
        policy.timeout if timeout is None else timeout,
        policy.retries if retries is None else retries,
        policy.max_concurrency if max_concurrency is None else max_concurrency,
    )


def _distinct(groups: tuple[tuple[Any, ...], ...]) -> list[Any]:
    try:
        return list(_remembered(groups))
    except TypeError:  # a type that cannot be hashed, such as Literal[[1]]
        return list(_flattened(groups))


def _flattened(groups: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for group in groups:
        for declared in group:
            for member in flatten_union(declared):
                if member not in found:
                    found.append(member)
    return tuple(found)


# Building asks every executor for its types, and a graph has many executors of few classes.
_remembered = lru_cache(maxsize=1024)(_flattened)
