"""The node of a workflow: a named object with handlers."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agentbench._signatures import HandlerSignature, is_type_compatible
from agentbench.workflows.executors.handlers import HandlerSpec, HandlerTable, ResponseTable
from agentbench.workflows.executors.host import by_hand
from agentbench.workflows.executors.json_form import JsonForm
from agentbench.workflows.executors.message import WITHDRAWN, Delivery, MessageType, WorkflowMessage, require_sources
from agentbench.workflows.executors.options import NO_POLICY, ExecutorPolicy, PlacementName

if TYPE_CHECKING:
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.executors.host import RunnerContext
    from agentbench.workflows.executors.state import State

logger = logging.getLogger("agentbench")


class RequestInfoMixin:
    """A base class without members, for compatibility: every `Executor` can send requests without it.

    Example:
        >>> class Reviewer(RequestInfoMixin, Executor):
        ...     @handler
        ...     async def review(self, draft: str, ctx: WorkflowContext) -> None:
        ...         await ctx.request_info(draft, bool)
    """


class Executor(JsonForm):
    """A node of a workflow: a named object with one handler per message type.

    A subclass marks its handlers with `@handler`, and its handlers of responses to its requests with
    `@response_handler`. A subclass is configured by class attributes:

    * `policy`: timeout, retries and concurrency, which the engine enforces, see `ExecutorPolicy`;
    * `placement = "workers"`: handlers run on the workers of `RunOptions(workers=)`, if a run has them;
    * `serialize = True`: deliveries of one superstep run one after the other;
    * `signature_key`: identifies the class in the graph signature instead of module and class name, so that a workflow
      saved from a notebook can be resumed from a script.

    Fields of an executor outlive a run, and clones of a workflow share its executors. A subclass that stores a run's
    data in fields overrides `fresh`, and for checkpoints `on_checkpoint_save` and `on_checkpoint_restore` too. An
    executor can be pickled if its class can be found by name and its fields can be pickled.

    Args:
        id: A non-empty text that is unique in the workflow.
        type: The name of this kind of executor in `to_dict()`; by default the class name. Also spelled `type_`.
        defer_discovery: Skip the search for handlers; for subclasses that create their own.
        timeout: Seconds that one attempt of a handler may take; replaces the policy's.
        retries: Further attempts after a handler has raised; replaces the policy's.
        max_concurrency: Maximum number of concurrent deliveries in one superstep; replaces the policy's.
        placement: Where handlers run; replaces the placement of the class.
        ignored: Other keyword arguments are ignored, with a logged warning.

    Raises:
        ValueError: The id is empty, there are no handlers, two handlers take the same type, or the placement is
            unknown.

    Example:
        >>> class Upper(Executor):
        ...     @handler
        ...     async def shout(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ...         await ctx.send_message(text.upper())  # to connected executors
        ...         await ctx.yield_output(text)  # out of the workflow
        >>> workflow = WorkflowBuilder(start_executor=Upper("upper")).build()
        >>> result = await workflow.run("hello")
    """

    serialize: bool = False
    policy: ExecutorPolicy = NO_POLICY
    placement: PlacementName | None = None
    signature_key: ClassVar[str | None] = None

    _ab_handlers = HandlerTable([], "Executor")
    _ab_responses = ResponseTable([], "Executor")
    _ab_yielded: frozenset[type] = frozenset()
    """Output classes already found to match the declared types."""

    def __init__(  # noqa: PLR0913 - the published signature, limits and placement
        self,
        id: str,  # noqa: A002 - the name is part of the public surface
        *,
        type: str | None = None,  # noqa: A002 - as above
        type_: str | None = None,
        defer_discovery: bool = False,
        timeout: float | None = None,
        retries: int | None = None,
        max_concurrency: int | None = None,
        placement: PlacementName | None = None,
        **ignored: Any,
    ) -> None:
        if not id:
            msg = f"Executor id is {id!r}; expected a non-empty text that is unique in the workflow."
            raise ValueError(msg)
        cls = self.__class__
        self.id = id
        self.type = self.type_ = type or type_ or cls.__name__
        if timeout is not None or retries is not None or max_concurrency is not None:
            limits: dict[str, Any] = {"timeout": timeout, "retries": retries, "max_concurrency": max_concurrency}
            self.policy = replace(self.policy, **{k: limit for k, limit in limits.items() if limit is not None})
        if placement is not None:
            self.placement = placement
        if self.placement not in (None, "workers"):
            msg = f"Executor {id!r} has the placement {self.placement!r}; expected 'workers', or None to run it here."
            raise ValueError(msg)
        if ignored:
            logger.warning(
                "Executor %r ignores the keyword %s: Executor accepts id, type, defer_discovery, timeout, retries, "
                "max_concurrency and placement. Correct its name, or keep it out of super().__init__().",
                id,
                ", ".join(sorted(ignored)),
            )
        if defer_discovery:
            return
        self._ab_handlers = HandlerTable.of_class(cls)
        if not self._ab_handlers.specs:
            msg = (
                f"{cls.__qualname__} has no handler. Mark at least one method (self, message: T, ctx: WorkflowContext) "
                "with @handler, or pass defer_discovery=True."
            )
            raise ValueError(msg)
        self._ab_responses = ResponseTable.of_class(cls)

    @property
    def input_types(self) -> list[Any]:
        """The message types, one entry per handler, in dispatch order; a union is one entry."""
        return list(self._ab_handlers.input_types)

    @property
    def output_types(self) -> list[Any]:
        """The types that handlers and response handlers send, each once; unions flattened."""
        sent = self._ab_handlers.send_types
        return [*sent, *[each for each in self._ab_responses.send_types if each not in sent]]

    @property
    def _ab_sends_never(self) -> bool:
        """Whether every handler and response handler declares that it sends nothing: `WorkflowContext[Never, ...]`."""
        specs = [*self._ab_handlers.specs, *self._ab_responses.specs]
        return bool(specs) and all(spec.signature.sends_never for spec in specs)

    @property
    def workflow_output_types(self) -> list[Any]:
        """The types that handlers and response handlers yield, each once; unions flattened."""
        yielded = self._ab_handlers.yield_types
        return [*yielded, *[each for each in self._ab_responses.yield_types if each not in yielded]]

    def can_handle(self, message: WorkflowMessage) -> bool:
        """Return whether a handler (or, for a response, a response handler) takes this message."""
        if message.type is not MessageType.RESPONSE:
            return self.find_handler(message.data) is not None
        request = message.original_request_info_event
        if request is None:
            logger.warning("Executor %r got a response without its request, so no handler can be found.", self.id)
            return False
        return self.find_response_handler(request.data, message.data) is not None

    def find_handler(self, data: Any) -> HandlerSpec | None:
        """Return the handler that takes `data`, or None."""
        try:
            return self._ab_handlers.by_class[data.__class__]
        except KeyError:
            return self._ab_handlers.find(data)

    def find_response_handler(self, request: Any, answer: Any) -> HandlerSpec | None:
        """Return the response handler for this request and response, or None."""
        return _NO_RESPONSE if answer is WITHDRAWN else self._ab_responses.find(request, answer)

    def accepts_type(self, message_type: Any) -> bool:
        """Return whether a handler takes values declared as `message_type`."""
        return any(is_type_compatible(message_type, taken) for taken in self.input_types)

    @property
    def is_request_response_capable(self) -> bool:
        """Whether the executor has a response handler."""
        return bool(self._ab_responses.specs)

    @property
    def asks_person(self) -> bool:
        """Whether drawings mark this executor as asking a person; override it if it can but never does."""
        return self.is_request_response_capable

    def is_request_supported(self, request_type: Any, response_type: Any) -> bool:
        """Return whether a response handler takes responses of `response_type` to requests of `request_type`."""
        return self._ab_responses.supports(request_type, response_type)

    def fresh(self) -> Executor:
        """Return the executor for another run; by default this one.

        `workflow.clone()` and every started run (`workflow.start()`, steppers, batches) call it for each executor. A
        subclass that stores a run's data in fields returns a copy without that data, so that runs do not share it:
        `def fresh(self): return Count(self.id)`.
        """
        return self

    def on_fresh(self, executors: Mapping[str, Executor]) -> None:
        """Called on every executor of a new run, with all of them by id, after `fresh()` has created them.

        Executors that share an object can find the other executors here and keep sharing it.
        """

    def on_rolled_back(self, open_requests: Mapping[str, WorkflowEvent[Any]]) -> None:
        """Called if a superstep in which this executor got messages fails or is interrupted.

        The requests it made and the responses it got in that superstep are undone. Executors that track their requests
        update here which of them are open.

        Args:
            open_requests: The open requests of this executor, by id.
        """

    def count_unanswered(self) -> int:
        """Return how many requests wait inside this node without the outer run knowing them; 0 except for workflows."""
        return 0

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the state of this executor for a checkpoint; override together with `on_checkpoint_restore`."""
        return {}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `on_checkpoint_save` returned."""

    @property
    def keeps_state(self) -> bool:
        """Whether a subclass overrides a checkpoint hook; other executors cost nothing in a checkpoint."""
        hooks = ("on_checkpoint_save", "on_checkpoint_restore")
        return any(getattr(self.__class__, hook) is not getattr(Executor, hook) for hook in hooks)

    async def execute(
        self,
        message: Any,
        source_executor_ids: Sequence[str],
        state: State,
        runner_context: RunnerContext,
        trace_contexts: list[dict[str, str]] | None = None,
        source_span_ids: list[str] | None = None,
    ) -> None:
        """Deliver one value (or a `WorkflowMessage`, for a response) outside a running workflow.

        `runner_context` receives the messages, events and requests of the handler. `RuntimeError` if no handler takes
        the value. If tracing is on, the span of the call is linked to `trace_contexts`.
        """
        envelope, sources = message, require_sources(source_executor_ids)
        if not isinstance(message, WorkflowMessage):
            envelope = WorkflowMessage(message, sources[0])
        if trace_contexts is not None:
            envelope = replace(envelope, trace_contexts=trace_contexts, source_span_ids=source_span_ids)
        request, data = envelope.original_request_info_event, envelope.data
        spec = self.find_handler(data) if request is None else self.find_response_handler(request.data, data)
        delivery = Delivery(self, spec, data, sources, (envelope,), request)
        await by_hand().deliver([delivery], state, runner_context)

    def to_dict(self) -> dict[str, Any]:
        """Return `{"id": ..., "type": ...}`."""
        return {"id": self.id, "type": self.type}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create an executor with the entries as arguments of its class."""
        return cls(**data)

    def clone(self, deep: bool = True) -> Self:
        """Return a copy; `deep` copies its fields too."""
        return copy.deepcopy(self) if deep else copy.copy(self)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.id!r})"


async def _take_no_response(executor: Executor, request: Any, withdrawn: Any, ctx: Any) -> None:
    """Take the withdrawal of a request, so that the run goes on without its response."""


_NO_RESPONSE = HandlerSpec("withdrawn", _take_no_response, HandlerSignature(Any))
