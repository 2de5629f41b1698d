"""`@handler` and `@response_handler`, and the tables in which an executor looks a handler up."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from agentbench._signatures import (
    NOT_GIVEN,
    ExplicitTypes,
    HandlerSignature,
    PendingSignature,
    always_fits,
    decided_by_class,
    is_instance_of,
    is_type_compatible,
    read_handler,
    read_response_handler,
    type_name,
)
from agentbench.workflows.executors.context import WorkflowContext, context_class

if TYPE_CHECKING:
    from agentbench.workflows.executors.context import WorkflowContextBase

logger = logging.getLogger("agentbench")

F = TypeVar("F", bound=Callable[..., Any])
AnySignature = HandlerSignature | PendingSignature

_MARK = "__agentbench_handler__"
_RESPONSE_MARK = "__agentbench_response_handler__"


class HandlerSpec:
    """One handler as the engine calls it.

    Attributes:
        name: the method's name.
        function: called with `(executor, data, ctx)`, or `(executor, request, answer, ctx)` for answers.
        signature: its types.
        context: the class of context it gets; decides which members are there.
        is_async: a coroutine function; others run in a worker thread.
    """

    __slots__ = ("context", "free_context", "function", "is_async", "name", "signature")

    def __init__(self, name: str, function: Callable[..., Any], signature: HandlerSignature) -> None:
        self.name = name
        self.function = function
        self.signature = signature
        self.is_async = inspect.iscoroutinefunction(function)
        blocking = not self.is_async
        self.context: type[WorkflowContextBase] = context_class(
            can_send=signature.can_send, can_yield=signature.can_yield, blocking=blocking
        )
        self.free_context: type[WorkflowContextBase] = context_class(can_send=True, can_yield=True, blocking=blocking)

    def __repr__(self) -> str:
        return f"HandlerSpec({self.name}: {type_name(self.signature.message_type)})"


# ---- decorators ------------------------------------------------------------------------------------


@overload
def handler(func: F) -> F: ...
@overload
def handler(*, input: Any = ..., output: Any = ..., workflow_output: Any = ...) -> Callable[[F], F]: ...
def handler(
    func: Callable[..., Any] | None = None,
    *,
    input: Any = NOT_GIVEN,  # noqa: A002 - the name is part of the public surface
    output: Any = NOT_GIVEN,
    workflow_output: Any = NOT_GIVEN,
) -> Any:
    """Mark a method as the handler of one message type.

    Bare, the types are read from the annotations of `(self, message: T, ctx: WorkflowContext[Out, WorkflowOut])`.
    With any keyword all types come from the keywords: a type, a union, or a name as text.

    Args:
        func: the method; async, or plain (then it runs in a worker thread with a blocking context).
        input: message type; mandatory as soon as one keyword is given.
        output: type of what `ctx.send_message` sends; without it the context cannot send.
        workflow_output: type of what `ctx.yield_output` yields; without it the context cannot yield.

    Raises:
        ValueError: the signature is not a handler's, or keywords and annotations contradict each other.
        NameError: a type given as text does not exist.
    """
    explicit = ExplicitTypes(input=input, output=output, workflow_output=workflow_output)
    return _decorate(func, _MARK, lambda f: read_handler(f, context_type=WorkflowContext, explicit=explicit))


@overload
def response_handler(func: F) -> F: ...
@overload
def response_handler(
    *, request: Any = ..., response: Any = ..., output: Any = ..., workflow_output: Any = ...
) -> Callable[[F], F]: ...
def response_handler(
    func: Callable[..., Any] | None = None,
    *,
    request: Any = NOT_GIVEN,
    response: Any = NOT_GIVEN,
    output: Any = NOT_GIVEN,
    workflow_output: Any = NOT_GIVEN,
) -> Any:
    """Mark a method as the handler of answers to requests.

    Its signature is `(self, original_request: Req, response: Resp, ctx: WorkflowContext[...])`.

    Args:
        func: the method.
        request: type of the request's data; with any keyword both `request` and `response` are mandatory.
        response: type of the answer.
        output: as for `handler`.
        workflow_output: as for `handler`.

    Raises:
        ValueError: the signature is not a response handler's.
    """
    explicit = ExplicitTypes(request=request, response=response, output=output, workflow_output=workflow_output)
    return _decorate(
        func, _RESPONSE_MARK, lambda f: read_response_handler(f, context_type=WorkflowContext, explicit=explicit)
    )


def _decorate(func: Callable[..., Any] | None, mark: str, read: Callable[[Callable[..., Any]], AnySignature]) -> Any:
    def apply(f: Callable[..., Any]) -> Callable[..., Any]:
        setattr(f, mark, read(f))
        return f

    return apply if func is None else apply(func)


# ---- discovery -------------------------------------------------------------------------------------


def _marked(cls: type, mark: str) -> Iterator[tuple[str, Callable[..., Any], AnySignature]]:
    """Marked methods of a class: most derived class first, definition order inside; overridden names count once."""
    seen: set[str] = set()
    for owner in cls.__mro__:
        for name, member in vars(owner).items():
            if name in seen:
                continue
            seen.add(name)
            signature = getattr(member, mark, None)
            if signature is not None:
                yield name, member, signature


def _specs(cls: type, mark: str) -> list[HandlerSpec]:
    found = []
    for name, function, signature in _marked(cls, mark):
        found.append(HandlerSpec(name, function, signature.resolve(cls)))
    return found


class HandlerTable:
    """Handlers of an executor class in dispatch order; look-ups are remembered by concrete message type."""

    __slots__ = ("_by_class", "input_types", "specs")

    def __init__(self, specs: list[HandlerSpec], owner: str) -> None:
        self.specs = specs
        self.input_types: list[Any] = [s.signature.message_type for s in specs]
        self._by_class: dict[type, HandlerSpec | None] = {}
        self._refuse_duplicates(owner)
        self._warn_of_shadows(owner)

    @classmethod
    def of_class(cls, executor_class: type) -> HandlerTable:
        """The table of a class, made once."""
        table: HandlerTable | None = vars(executor_class).get("_handler_table")
        if table is None:
            table = cls(_specs(executor_class, _MARK), executor_class.__qualname__)
            type.__setattr__(executor_class, "_handler_table", table)
        return table

    def find(self, data: Any) -> HandlerSpec | None:
        """The first handler whose type matches the data, or None."""
        try:
            return self._by_class[data.__class__]
        except KeyError:
            return self._scan(data)

    def _scan(self, data: Any) -> HandlerSpec | None:
        by_class_alone = True
        for spec in self.specs:
            message_type = spec.signature.message_type
            by_class_alone = by_class_alone and decided_by_class(message_type)
            if is_instance_of(data, message_type):
                if by_class_alone:
                    self._by_class[data.__class__] = spec
                return spec
        if by_class_alone:
            self._by_class[data.__class__] = None
        return None

    def _refuse_duplicates(self, owner: str) -> None:
        for i, spec in enumerate(self.specs):
            for other in self.specs[:i]:
                if other.signature.message_type == spec.signature.message_type:
                    msg = (
                        f"{owner} has two handlers for {type_name(spec.signature.message_type)}: {other.name!r} and "
                        f"{spec.name!r}. A message goes to one handler; remove one or give it another type."
                    )
                    raise ValueError(msg)

    def _warn_of_shadows(self, owner: str) -> None:
        for i, spec in enumerate(self.specs):
            for earlier in self.specs[:i]:
                if always_fits(spec.signature.message_type, earlier.signature.message_type):
                    logger.warning(
                        "%s: handler %r (%s) is never reached, %r (%s) before it takes the same messages. "
                        "Define the handler of the narrower type first.",
                        owner,
                        spec.name,
                        type_name(spec.signature.message_type),
                        earlier.name,
                        type_name(earlier.signature.message_type),
                    )
                    break


class ResponseTable:
    """Response handlers of an executor class."""

    __slots__ = ("specs",)

    def __init__(self, specs: list[HandlerSpec], owner: str) -> None:
        self.specs = specs
        pairs: list[tuple[Any, Any]] = []
        for spec in specs:
            pair = (spec.signature.request_type, spec.signature.response_type)
            if pair in pairs:
                msg = (
                    f"{owner} has two response handlers for ({type_name(pair[0])}, {type_name(pair[1])}). "
                    "Remove one, or give it another request or response type."
                )
                raise ValueError(msg)
            pairs.append(pair)

    @classmethod
    def of_class(cls, executor_class: type) -> ResponseTable:
        """The table of a class, made once."""
        table: ResponseTable | None = vars(executor_class).get("_response_table")
        if table is None:
            table = cls(_specs(executor_class, _RESPONSE_MARK), executor_class.__qualname__)
            type.__setattr__(executor_class, "_response_table", table)
        return table

    def find(self, request: Any, answer: Any) -> HandlerSpec | None:
        """The first handler whose request type and response type both match."""
        for spec in self.specs:
            types = spec.signature
            if is_instance_of(request, types.request_type) and is_instance_of(answer, types.response_type):
                return spec
        return None

    def supports(self, request_type: Any, response_type: Any) -> bool:
        """Whether a handler takes these types, judged by the types alone."""
        return any(
            is_type_compatible(request_type, s.signature.request_type)
            and is_type_compatible(response_type, s.signature.response_type)
            for s in self.specs
        )
