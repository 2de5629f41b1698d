"""`@handler` and `@response_handler`, and the tables in which an executor looks up a handler."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Self, TypeVar, overload

from agentbench._signatures import (
    ExplicitTypes,
    HandlerSignature,
    always_fits,
    check_for,
    decided_by_class,
    flatten_union,
    is_instance_of,
    is_type_compatible,
    python_number,
    read_handler,
    read_response_handler,
    type_name,
    types_in,
    warn_of_redefinition,
)
from agentbench._signatures.class_cache import is_lasting
from agentbench.workflows.executors.blocking import unawaited_calls
from agentbench.workflows.executors.context import WorkflowContext, context_class

logger = logging.getLogger("agentbench")

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__agentbench_handler__"
_RESPONSE_MARK = "__agentbench_response_handler__"


class HandlerSpec:
    """One handler: `function(executor, data, ctx)`, or `function(executor, request, response, ctx)` for responses.

    `context` is the class of the `ctx`, `free_context` that of workflows built with `strict_context=False`. `unawaited`
    lists the lines with a forgotten `await`.
    """

    __slots__ = ("context", "free_context", "function", "is_async", "name", "signature", "unawaited")

    def __init__(
        self, name: str, function: Callable[..., Any], signature: HandlerSignature, unawaited: tuple[int, ...] = ()
    ) -> None:
        self.name = name
        self.function = function
        self.signature = signature
        self.unawaited = unawaited
        self.is_async = inspect.iscoroutinefunction(function)
        blocking = not self.is_async
        self.context = context_class(can_send=signature.can_send, can_yield=signature.can_yield, blocking=blocking)
        self.free_context = context_class(can_send=True, can_yield=True, blocking=blocking)

    def __reduce__(self) -> Any:
        return HandlerSpec, (self.name, self.function, self.signature, self.unawaited)

    def __repr__(self) -> str:
        return f"HandlerSpec({self.name}: {type_name(self.signature.message_type)})"


@overload
def handler(func: F) -> F: ...
@overload
def handler(*, input: Any = ..., output: Any = ..., workflow_output: Any = ...) -> Callable[[F], F]: ...
def handler(
    func: Callable[..., Any] | None = None,
    *,
    input: Any = None,  # noqa: A002 - the name is part of the public surface
    output: Any = None,
    workflow_output: Any = None,
) -> Any:
    """Mark a method of an `Executor` as the handler of one message type.

    Without arguments, the types are read from the annotations of `(self, message: T, ctx: WorkflowContext[Sent,
    Yielded])`. With any keyword argument, all types come from the keyword arguments: a type, a union, or the name of a
    type as text. A message goes to the first handler that takes it, in the order of definition.

    Args:
        func: The method: async, or plain, which runs in a worker thread and calls its context without `await`.
        input: The message type; required if any keyword argument is passed.
        output: The type of messages for `ctx.send_message`; without it the context cannot send.
        workflow_output: The type of outputs for `ctx.yield_output`; without it the context cannot yield.

    Raises:
        ValueError: The signature is not that of a handler, or keyword arguments and annotations contradict each other.
        NameError: A type named as text does not exist; raised when the first executor of the class is created.

    Example:
        >>> class Measure(Executor):
        ...     @handler
        ...     async def text(self, text: str, ctx: WorkflowContext[int]) -> None:
        ...         await ctx.send_message(len(text))
        ...
        ...     @handler(input=bytes, workflow_output=int)
        ...     async def data(self, data, ctx):
        ...         await ctx.yield_output(len(data))
    """
    explicit = ExplicitTypes(input=input, output=output, workflow_output=workflow_output)

    return _mark(func, _MARK, partial(read_handler, context_type=WorkflowContext, explicit=explicit))


@overload
def response_handler(func: F) -> F: ...
@overload
def response_handler(
    *, request: Any = ..., response: Any = ..., output: Any = ..., workflow_output: Any = ...
) -> Callable[[F], F]: ...
def response_handler(
    func: Callable[..., Any] | None = None,
    *,
    request: Any = None,
    response: Any = None,
    output: Any = None,
    workflow_output: Any = None,
) -> Any:
    """Mark a method of an `Executor` as the handler of responses to its requests (`ctx.request_info`).

    Without arguments, the types are read from `(self, original_request: Req, response: Resp, ctx:
    WorkflowContext[...])`.
    A response goes to the first response handler that takes both the request's data and the response.

    Args:
        func: The method.
        request: The type of the request's data; with any keyword argument, both `request` and `response` are required.
        response: The type of the response.
        output: As for `handler`.
        workflow_output: As for `handler`.

    Raises:
        ValueError: The signature is not that of a response handler.

    Example:
        >>> class Publish(Executor):
        ...     @handler
        ...     async def draft(self, draft: str, ctx: WorkflowContext) -> None:
        ...         await ctx.request_info(draft, bool)
        ...
        ...     @response_handler
        ...     async def decision(self, draft: str, publish: bool, ctx: WorkflowContext[Never, str]) -> None:
        ...         await ctx.yield_output(draft if publish else "withdrawn")
    """
    explicit = ExplicitTypes(request=request, response=response, output=output, workflow_output=workflow_output)

    return _mark(func, _RESPONSE_MARK, partial(read_response_handler, context_type=WorkflowContext, explicit=explicit))


def _mark(func: Callable[..., Any] | None, name: str, read: Callable[[Callable[..., Any]], object]) -> Any:
    """Return the decorator that stores a method's signature in its attribute `name`, or decorate `func`."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        setattr(method, name, read(method))
        return method

    return decorate if func is None else decorate(func)


def distinct_types(groups: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the members of all types, unions flattened, each once."""
    types: list[Any] = []
    for member in [member for group in groups for declared in group for member in flatten_union(declared)]:
        if member not in types:
            types.append(member)
    return types


class _Table:
    """Handlers of one kind in dispatch order, for an executor class or (without `executor_class`) for a function."""

    __slots__ = ("executor_class", "owner", "send_types", "specs", "yield_types")

    _mark: ClassVar[str]
    _attribute: ClassVar[str]

    def __init__(self, specs: list[HandlerSpec], owner: str, executor_class: type | None = None) -> None:
        self.specs = specs
        self.owner = owner
        self.executor_class = executor_class
        self.send_types = distinct_types([spec.signature.send_types for spec in specs])
        self.yield_types = distinct_types([spec.signature.yield_types for spec in specs])

    @classmethod
    def of_class(cls, executor_class: type) -> Self:
        """Return the table of a class, built once: its own handlers in the order of definition, then inherited ones."""
        table: Self | None = vars(executor_class).get(cls._attribute)
        if table is None:
            members: dict[str, Any] = {}
            for owner in executor_class.__mro__:
                for name, member in vars(owner).items():
                    members.setdefault(name, member)
            marked = [(name, member) for name, member in members.items() if hasattr(member, cls._mark)]
            specs = [
                HandlerSpec(name, member, getattr(member, cls._mark).resolve(executor_class), unawaited_calls(member))
                for name, member in marked
            ]
            table = cls(specs, executor_class.__qualname__, executor_class)
            setattr(executor_class, cls._attribute, table)
        return table

    def __reduce__(self) -> Any:
        # Copies and pickles of executors share the table of their class.
        if self.executor_class is not None:
            return self.of_class, (self.executor_class,)
        return self.__class__, (self.specs, self.owner)


class HandlerTable(_Table):
    """Handlers of an executor class in dispatch order; look-ups are cached by the class of the message."""

    __slots__ = ("_checks", "_declared", "by_class", "input_types")

    _mark = _MARK
    _attribute = "_ab_handler_table"

    def __init__(self, specs: list[HandlerSpec], owner: str, executor_class: type | None = None) -> None:
        super().__init__(specs, owner, executor_class)
        self.input_types: list[Any] = [spec.signature.message_type for spec in specs]
        types = zip(self.input_types, specs, strict=True)
        self._checks = [(check_for(taken, exact=True), decided_by_class(taken), spec) for taken, spec in types]
        self._declared = {each for taken in self.input_types for each in flatten_union(taken) if isinstance(each, type)}
        self.by_class: dict[type, HandlerSpec | None] = {}
        """Cached results of `find`, for classes that alone decide the handler."""
        for i, spec in enumerate(specs):
            self._compare_with_earlier(spec, specs[:i])

    def _compare_with_earlier(self, spec: HandlerSpec, earlier: list[HandlerSpec]) -> None:
        """Reject a handler whose type already has one, and warn about one that is never reached."""
        taken = spec.signature.message_type
        for other in earlier:
            if other.signature.message_type == taken:
                msg = (
                    f"{self.owner} has two handlers for {type_name(taken)}: {other.name!r} and {spec.name!r}. "
                    "A message goes to one handler; remove one, or let it take another type."
                )
                raise ValueError(msg)
        for other in earlier:
            if always_fits(taken, other.signature.message_type):
                logger.warning(
                    f"{self.owner}: handler {spec.name!r} ({type_name(taken)}) is never reached: {other.name!r} "
                    f"({type_name(other.signature.message_type)}), defined earlier, takes the same messages. Define "
                    "the handler of the narrower type first."
                )
                return

    def find(self, data: Any) -> HandlerSpec | None:
        """Return the first handler whose type matches the data, or None.

        A handler that takes the data only by conversion, such as `float` for an `int`, comes after all others.
        """
        by_class_alone = True
        match = None
        for fits, by_class, spec in self._checks:
            by_class_alone = by_class_alone and by_class
            if fits(data):
                match = spec
                break
        else:
            number = python_number(data)
            alike = [spec for fits, _, spec in self._checks if number is not data and fits(number)]
            alike += [spec for spec in self.specs if is_instance_of(data, spec.signature.message_type)]
            if alike:
                match = alike[0]
                warn_of_redefinition(types_in(data), [match.signature.message_type], "the message", repr(self.owner))
        # The cache must not keep a short-lived class alive: this table may belong to a class that lives longer.
        if by_class_alone and (data.__class__ in self._declared or is_lasting(data.__class__)):
            self.by_class[data.__class__] = match
        return match


class ResponseTable(_Table):
    """Response handlers of an executor class."""

    __slots__ = ()

    _mark = _RESPONSE_MARK
    _attribute = "_ab_response_table"

    def __init__(self, specs: list[HandlerSpec], owner: str, executor_class: type | None = None) -> None:
        super().__init__(specs, owner, executor_class)
        pairs = [(spec.signature.request_type, spec.signature.response_type) for spec in specs]
        for request, response in [pair for i, pair in enumerate(pairs) if pair in pairs[:i]]:
            msg = (
                f"{owner} has two response handlers for ({type_name(request)}, {type_name(response)}). "
                "Remove one, or let it take another request or response type."
            )
            raise ValueError(msg)

    def find(self, request: Any, answer: Any) -> HandlerSpec | None:
        """Return the first handler whose request type and response type both match."""
        for spec in self.specs:
            types = spec.signature
            if is_instance_of(request, types.request_type) and is_instance_of(answer, types.response_type):
                return spec
        return None

    def find_unhandled(self, request: Any, response_type: Any) -> list[Any]:
        """Return the members of a response type for which no handler can take the response to a request.

        A handler of a narrower type counts, because `object` is often declared for a single type.
        """
        taken = [
            spec.signature.response_type for spec in self.specs if is_instance_of(request, spec.signature.request_type)
        ]
        return [
            member
            for member in flatten_union(response_type)
            if not any(is_type_compatible(member, each) or is_type_compatible(each, member) for each in taken)
        ]

    def supports(self, request_type: Any, response_type: Any) -> bool:
        """Return whether a handler takes these types, judging by the types alone."""
        return any(
            is_type_compatible(request_type, spec.signature.request_type)
            and is_type_compatible(response_type, spec.signature.response_type)
            for spec in self.specs
        )
