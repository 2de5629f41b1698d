"""Middleware by kind, for agent runs, model calls or tool calls, and the chains that call it."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple, NoReturn

from agentbench._signatures.annotations import UnknownNameError, holds_text, scope_of, take_apart
from agentbench._signatures.forms import flatten_union, unwrap
from agentbench._user_code import warn_user
from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import (
    MARK,
    AgentContext,
    AgentMiddleware,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareType,
)
from agentbench.exceptions import MiddlewareException, MiddlewareTermination
from agentbench.messages.stream import ResponseStream

_AGENT, _CHAT, _FUNCTION = MiddlewareType.AGENT, MiddlewareType.CHAT, MiddlewareType.FUNCTION
_CLASSES: dict[type, MiddlewareType] = {AgentMiddleware: _AGENT, ChatMiddleware: _CHAT, FunctionMiddleware: _FUNCTION}
_CONTEXTS: dict[type, MiddlewareType] = {AgentContext: _AGENT, ChatContext: _CHAT, FunctionInvocationContext: _FUNCTION}
_CONTEXT_NAMES = {cls.__name__: cls for cls in _CONTEXTS}

_HOW = (
    "Expected an instance of AgentMiddleware, ChatMiddleware or FunctionMiddleware, or an async function "
    "(context, call_next) whose first parameter is annotated with AgentContext, ChatContext or "
    "FunctionInvocationContext, or which is decorated with @agent_middleware, @chat_middleware or @function_middleware."
)

_known_kinds: weakref.WeakKeyDictionary[Callable[..., Any], MiddlewareType] = weakref.WeakKeyDictionary()
"""A cache of the kinds of functions. It is weak, so that functions of a notebook cell that is run again are freed."""


class SortedMiddleware(NamedTuple):
    """Middleware by kind, each as a callable `(context, call_next)`, outermost first."""

    agent: tuple[Callable[..., Any], ...] = ()
    chat: tuple[Callable[..., Any], ...] = ()
    function: tuple[Callable[..., Any], ...] = ()


def sort_middleware(*middleware: object, otherwise: MiddlewareType | None = None) -> SortedMiddleware:
    """Sort middleware by kind. Each argument is `None`, one middleware, or a sequence, possibly nested.

    Functions without a declared kind are of the kind `otherwise`; without `otherwise` they raise an error.
    """
    entries = [one for item in middleware for one in flat_middleware(item)]
    if not entries:
        return SortedMiddleware()
    sorted_: dict[MiddlewareType, list[Callable[..., Any]]] = {_AGENT: [], _CHAT: [], _FUNCTION: []}
    for one in entries:
        kinds, call = _read(one, otherwise)
        for kind in kinds:
            sorted_[kind].append(call)
    return SortedMiddleware(tuple(sorted_[_AGENT]), tuple(sorted_[_CHAT]), tuple(sorted_[_FUNCTION]))


def flat_middleware(middleware: object) -> list[Any]:
    """Flatten middleware to a list. The argument is `None`, one middleware, or a sequence, possibly nested."""
    if middleware is None:
        return []
    if isinstance(middleware, Sequence) and not isinstance(middleware, (str, bytes)):
        return [one for item in middleware for one in ([item] if item is None else flat_middleware(item))]
    return [middleware]


def _read(one: object, otherwise: MiddlewareType | None) -> tuple[tuple[MiddlewareType, ...], Callable[..., Any]]:
    """Return the kinds of a middleware and the callable. An instance of several base classes has several kinds."""
    if isinstance(one, type):
        _refuse(one, f"is a class. Expected an instance: {one.__name__}() instead of {one.__name__}.")
    kinds = tuple(kind for cls, kind in _CLASSES.items() if isinstance(one, cls))
    if kinds:
        return kinds, one.process  # type: ignore[attr-defined]
    if not callable(one):
        _refuse(one, f"is not middleware. {_HOW}")
    kind = _kind_of(one) or otherwise
    if kind is None:
        _refuse(one, f"has no kind. {_HOW}")
    return (kind,), one


def _kind_of(func: Callable[..., Any]) -> MiddlewareType | None:
    try:
        kind = _known_kinds.get(func)
    except TypeError:  # the function is not hashable or does not support weak references
        return _find_kind(func)
    if kind is None:
        kind = _find_kind(func)
        if kind is not None:
            _known_kinds[func] = kind
    return kind


def _find_kind(func: Callable[..., Any]) -> MiddlewareType | None:
    mark: MiddlewareType | None = getattr(func, MARK, None)
    annotated = _annotated_kinds(func)
    if mark is None:
        if len(annotated) > 1:
            _refuse(func, f"takes several contexts, so its kind is unclear. {_HOW}")
        return annotated[0] if annotated else None
    if annotated and mark not in annotated:
        stated, meant = mark.value, " or ".join(kind.value for kind in annotated)
        _refuse(
            func,
            f"is decorated as {stated} middleware, but its first parameter is the context of {meant} middleware. "
            "Expected both to name the same kind: change the decorator or the annotation.",
        )
    return mark


def _annotated_kinds(func: Callable[..., Any]) -> list[MiddlewareType]:
    """Return the kinds that belong to the annotation of the first parameter."""
    signature = inspect.signature(func)
    try:
        signature.bind(None, None)
    except TypeError:
        _refuse(func, f"cannot be called with two arguments: its parameters are {signature}. {_HOW}")
    callee = take_apart(func)
    if not callee.parameters:  # *args accepts both arguments
        return []
    written = callee.annotations.get(callee.parameters[0])
    if holds_text(written):
        scope = scope_of(callee, known={}, fallbacks=_CONTEXT_NAMES)
        try:
            written = scope.resolve(written)
        except (UnknownNameError, ValueError):
            written = _CONTEXT_NAMES.get(str(written).strip("'\" ").rpartition(".")[2])
    members = [unwrap(member) for member in flatten_union(written)]
    classes = [member for member in members if isinstance(member, type)]
    return [kind for context, kind in _CONTEXTS.items() if any(issubclass(cls, context) for cls in classes)]


def _refuse(one: object, problem: str) -> NoReturn:
    name = getattr(one, "__qualname__", None) or repr(one)
    message = f"{name} {problem}"
    raise MiddlewareException(message)


async def run_pipeline(
    middleware: Sequence[Callable[..., Any]], context: Any, innermost: Callable[[], Awaitable[None]]
) -> bool:
    """Run a call inside its middleware. Return whether a `MiddlewareTermination` raised by the middleware ended it."""
    raised_by_call: MiddlewareTermination | None = None

    async def call() -> None:
        nonlocal raised_by_call
        try:
            await innermost()
        except MiddlewareTermination as termination:
            raised_by_call = termination
            raise

    for one in reversed(middleware):
        call = _around(call, one, context)
    try:
        await call()
    except MiddlewareTermination as termination:
        if termination is raised_by_call:
            raise
        if context.result is None:
            context.result = termination.result
        return True
    return False


def _around(
    inner: Callable[[], Awaitable[None]], middleware: Callable[..., Any], context: Any
) -> Callable[[], Coroutine[Any, Any, None]]:
    async def call_next(*arguments: object) -> None:
        if arguments:
            message = "call_next() takes no arguments. Change the context if necessary, then `await call_next()`."
            raise TypeError(message)
        await inner()

    async def call() -> None:
        pending = middleware(context, call_next)
        if pending is not None:  # a sync function returns None
            returned = await pending
            if returned is not None and context.result is None:
                _warn_of_return(middleware, returned)

    return call


def _warn_of_return(middleware: Callable[..., Any], returned: object) -> None:
    name = getattr(middleware, "__qualname__", None) or type(middleware).__name__
    message = (
        f"The middleware {name} returned a value ({describe(returned)}), which is ignored, and set no result. "
        "To answer, set context.result; to continue, `await call_next()`."
    )
    warn_user(message, RuntimeWarning)


def with_stream_hooks(stream: object, context: AgentContext | ChatContext) -> ResponseStream[Any, Any]:
    """Add the hooks of a context to the stream that is the result of its call, and return the stream."""
    if not isinstance(stream, ResponseStream):
        message = (
            f"The result of a streaming call is of type {type(stream).__name__}. Expected a ResponseStream: when "
            "context.stream is true, a middleware must set context.result to a ResponseStream."
        )
        raise ValueError(message)
    for transform in context.stream_transform_hooks:
        stream.with_transform_hook(transform)
    for hook in context.stream_result_hooks:
        stream.with_result_hook(hook)
    for cleanup in context.stream_cleanup_hooks:
        stream.with_cleanup_hook(cleanup)
    return stream
